/* NVLinks of GPUs: states and errors of the fake libnvidia-ml. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#define MAX_LINKS 36
#define UP 3 /* dcgmNvLinkLinkState_t */

ret_t link_number(struct call *c, unsigned link, uint16_t field, double *out, int64_t *whole)
{
    return number(&c->t, KIND_LINK, LINK_ID(KIND_GPU, c->gpu->gpu_id, link), field, out, whole);
}

ret_t nvmlDeviceGetNvLinkState(device_t d, unsigned link, unsigned *out)
{
    double value;
    int64_t state;
    ENTER(c, enter_gpu(&c, __func__, d));
    ret_t r = link < MAX_LINKS ? link_number(&c, link, MARK_FIELD, &value, &state) : INVALID_ARGUMENT;
    if (r == OK)
        *out = state == UP;
    return leave(&c, r);
}

/* By nvmlNvLinkErrorCounter_t (replay, recovery, flow control packets, data packets): fields of the link itself, or
 * those that a GPU has of its links 0 to 17. */
ret_t nvmlDeviceGetNvLinkErrorCounter(device_t d, unsigned link, unsigned counter, unsigned long long *out)
{
    static const uint16_t first[4][4] = {
        {420, 463, 426, 487}, {430, 469, 436, 491}, {400, 451, 406, 481}, {410, 457, 416, 484}};
    static const uint16_t own[4] = {1527, 1528, 1525, 1526};
    double value;
    int64_t whole;
    if (link > 17 || counter > 3)
        return INVALID_ARGUMENT;
    unsigned block = link < 6 ? 0 : link < 12 ? 1 : link < 15 ? 2 : 3;
    ENTER(c, enter_gpu(&c, __func__, d));
    ret_t r = link_number(&c, link, own[counter], &value, &whole);
    if (r == NOT_SUPPORTED)
        r = gpu_number(&c, (uint16_t)(first[counter][block] + link - (unsigned[]){0, 6, 12, 15}[block]), &value, &whole);
    if (r == OK)
        *out = (unsigned long long)whole;
    return leave(&c, r);
}
