/* Counters of the ports of NVLinks, from PRM registers, of the fake libnvidia-ml. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#ifndef OLD_DRIVER

struct prm_counter {
    unsigned id, port;
    ret_t status;
    unsigned type;
    unsigned long long value;
};
struct prm_list { unsigned count; struct prm_counter *counters; };
_Static_assert(sizeof(struct prm_counter) == 24 && sizeof(struct prm_list) == 16, "prm");

static const struct { uint16_t id, field; } COUNTERS[] = {
    {1, 585}, {2, 584}, {101, 583}, {102, 581}, {103, 582}, {201, 1509}, {301, 586}, {302, 587}, {303, 588},
    {304, 589}, {305, 590}, {306, 591}, {307, 592}, {1001, 580}};

/* Ports are numbered from 1, except those of counter 201, which has the numbers of links. */
static ret_t prm_value(struct call *c, const char *function, uint16_t field, struct prm_counter *counter)
{
    double value;
    int64_t whole;
    unsigned link = field == 1509 ? counter->port : counter->port - 1;
    struct table_entity entity = {KIND_LINK, LINK_ID(KIND_GPU, c->gpu->gpu_id, link)};
    if (!table_sample(&c->t, KIND_LINK, entity.id, MARK_FIELD))
        return INVALID_ARGUMENT;
    int status = table_fault_about(&c->t, function, &entity, 1, &field, 1);
    ret_t r = status > 0 ? status : link_number(c, link, field, &value, &whole);
    counter->type = 3;
    if (r == OK)
        counter->value = (unsigned long long)whole;
    return r;
}

ret_t nvmlDeviceReadPRMCounters_v1(device_t d, struct prm_list *list)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    for (unsigned n = 0; n < list->count; n++) {
        list->counters[n].status = INVALID_ARGUMENT;
        for (unsigned i = 0; i < sizeof COUNTERS / sizeof COUNTERS[0]; i++)
            if (COUNTERS[i].id == list->counters[n].id)
                list->counters[n].status = prm_value(&c, __func__, COUNTERS[i].field, &list->counters[n]);
    }
    return leave(&c, OK);
}

#endif
