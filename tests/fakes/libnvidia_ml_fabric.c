/* The NVLink fabric of the fake libnvidia-ml. An old driver knows nothing of it.
 *
 * A fault of the function "nvmlDeviceGetGpuFabricInfoV 3" concerns only calls with the third version of the record.
 */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#include <stdio.h>
#include <string.h>

#ifndef OLD_DRIVER

#define COMPLETED 3
#define FAILED 4 /* DCGM's status: completed, with an error */

struct fabric_v1 { unsigned char cluster[16]; ret_t status; unsigned clique, state; };
struct fabric_v2 { unsigned version; struct fabric_v1 fabric; unsigned mask; };
struct fabric_v3 { unsigned version; struct fabric_v1 fabric; unsigned mask; unsigned char summary; };
_Static_assert(sizeof(struct fabric_v1) == 28 && sizeof(struct fabric_v2) == 36 && sizeof(struct fabric_v3) == 40, "fabric");

static int64_t fabric_number(struct call *c, uint16_t field)
{
    double value;
    int64_t whole = 0;
    return gpu_number(c, field, &value, &whole) == OK ? whole : 0;
}

static void cluster_of(struct call *c, unsigned char out[16])
{
    const char *text = gpu_text(c, 172);
    unsigned byte, n = 0;
    for (; text && *text && n < 16; text += *text == '-' ? 1 : 2)
        if (*text != '-' && sscanf(text, "%2x", &byte) == 1)
            out[n++] = (unsigned char)byte;
}

static ret_t fabric_of(struct call *c, struct fabric_v3 *out)
{
    double value;
    int64_t state;
    ret_t r = gpu_number(c, 170, &value, &state);
    if (r != OK)
        return r;
    memset(&out->fabric, 0, sizeof out->fabric);
    cluster_of(c, out->fabric.cluster);
    out->fabric.state = state == FAILED ? COMPLETED : (unsigned)state;
    out->fabric.status = state != FAILED ? OK : fabric_number(c, 171) == -11 ? TIMEOUT : UNKNOWN;
    out->fabric.clique = (unsigned)fabric_number(c, 173);
    out->mask = (unsigned)fabric_number(c, 174);
    out->summary = (unsigned char)fabric_number(c, 175);
    return OK;
}

ret_t nvmlDeviceGetGpuFabricInfo(device_t d, struct fabric_v1 *out)
{
    struct fabric_v3 found;
    ENTER(c, enter_gpu(&c, __func__, d));
    ret_t r = fabric_of(&c, &found);
    if (r == OK)
        *out = found.fabric;
    return leave(&c, r);
}

ret_t nvmlDeviceGetGpuFabricInfoV(device_t d, struct fabric_v2 *out)
{
    struct fabric_v3 found;
    int third = out->version == (sizeof found | 3u << 24);
    if (!third && out->version != (sizeof *out | 2u << 24))
        return VERSION_MISMATCH;
    ret_t newest = third ? fault("nvmlDeviceGetGpuFabricInfoV 3", NULL) : OK;
    if (newest != OK)
        return newest;
    ENTER(c, enter_gpu(&c, __func__, d));
    ret_t r = fabric_of(&c, &found);
    if (r == OK) {
        out->fabric = found.fabric;
        out->mask = found.mask;
        if (third)
            ((struct fabric_v3 *)out)->summary = found.summary;
    }
    return leave(&c, r);
}

#endif
