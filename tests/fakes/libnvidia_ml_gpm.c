/* GPU performance monitoring (GPM) of the fake libnvidia-ml. An old driver has none of it. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>



#ifndef OLD_DRIVER

struct gpm_support { unsigned version, supported; };

ret_t nvmlGpmQueryDeviceSupport(device_t d, struct gpm_support *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    out->supported = c.gpu->architecture >= 9;
    return leave(&c, out->version == 1 ? OK : VERSION_MISMATCH);
}

#define SAMPLE_MAGIC 0x53414d50u

struct gpm_sample {
    unsigned magic;
    uint32_t kind, entity;
    uint64_t identity;
    int64_t taken; /* monotonic nanoseconds; 0 while empty */
};

ret_t nvmlGpmSampleAlloc(struct gpm_sample **out)
{
    ENTER(c, enter(&c, __func__));
    *out = calloc(1, sizeof **out);
    if (*out)
        (*out)->magic = SAMPLE_MAGIC;
    return leave(&c, *out ? OK : NO_MEMORY);
}

ret_t nvmlGpmSampleFree(struct gpm_sample *sample)
{
    if (!sample || sample->magic != SAMPLE_MAGIC)
        return INVALID_ARGUMENT;
    sample->magic = 0;
    free(sample);
    return OK;
}

static ret_t take_sample(struct call *c, struct gpm_sample *sample, uint32_t kind, uint32_t entity, uint64_t identity)
{
    struct timespec now;
    if (!sample || sample->magic != SAMPLE_MAGIC)
        return INVALID_ARGUMENT;
    if (c->gpu->architecture < 9)
        return NOT_SUPPORTED;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sample->kind = kind;
    sample->entity = entity;
    sample->identity = identity;
    sample->taken = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    return OK;
}

ret_t nvmlGpmSampleGet(device_t d, struct gpm_sample *sample)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    return leave(&c, take_sample(&c, sample, KIND_GPU, c.gpu->gpu_id, c.gpu->identity));
}

ret_t nvmlGpmMigSampleGet(device_t d, unsigned gi, struct gpm_sample *sample)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    const struct table_instance *instance = instance_of(&c.t, c.gpu->gpu_id, gi, -1);
    if (!instance)
        return leave(&c, NOT_FOUND);
    return leave(&c, take_sample(&c, sample, KIND_GI, instance->entity_id, instance->identity));
}

struct gpm_metric {
    unsigned id;
    ret_t code;
    double value;
    const char *texts[3];
};

struct gpm_request {
    unsigned version, count;
    struct gpm_sample *older, *newer;
    struct gpm_metric metrics[];
};
_Static_assert(sizeof(struct gpm_metric) == 40 && sizeof(struct gpm_request) == 24, "gpm request");

/* The DCGM field of the same quantity, and the factor from its unit to that of the metric. */
static uint16_t gpm_field(unsigned metric, double *scale)
{
    static const uint16_t ratios[] = {0, 1001, 1002, 1003, 1016, 1004, 1015, 1014, 0, 1013, 1005, 1006, 1007, 1008};
    *scale = 100;
    if (metric < sizeof ratios / sizeof ratios[0])
        return ratios[metric];
    if (metric >= 30 && metric < 38)
        return (uint16_t)(1017 + metric - 30);
    if (metric >= 40 && metric < 48)
        return (uint16_t)(1025 + metric - 40);
    if (metric == 50 || metric == 51)
        return (uint16_t)(1033 + metric - 50);
    *scale = 1.0 / MIB;
    if (metric == 20 || metric == 21)
        return (uint16_t)(1009 + metric - 20);
    if (metric == 60 || metric == 61)
        return metric == 61 ? 1011 : 1012;
    if (metric >= 62 && metric < 98)
        return (uint16_t)(metric % 2 ? 1040 + metric - 63 : 1041 + metric - 62);
    if (metric >= 100 && metric < 104)
        return (uint16_t)((const uint16_t[]){1076, 1078, 1077, 1079}[metric - 100]);
    return 0;
}

/* Bytes over one link: of a GPU without a field of its own for them, those of the link. */
static ret_t gpm_number(struct call *c, const struct gpm_request *request, unsigned id, uint16_t field, double *value)
{
    int64_t whole;
    uint32_t kind = request->newer->kind, entity = request->newer->entity;
    unsigned low = id >= 62 && id < 98, link = low ? (id - 62) / 2 : 18 + (id - 212) / 2;
    ret_t r = field ? number(&c->t, kind, entity, field, value, &whole) : INVALID_ARGUMENT;
    if ((low && r == NOT_SUPPORTED) || (id >= 212 && id < 248))
        r = number(&c->t, KIND_LINK, LINK_ID(kind, entity, link), id % 2 ? 1532 : 1533, value, &whole);
    return r;
}

static void gpm_metric(struct call *c, const struct gpm_request *request, struct gpm_metric *metric)
{
    double scale, value;
    uint16_t field = gpm_field(metric->id, &scale);
    metric->value = NAN;
    metric->code = gpm_number(c, request, metric->id, field, &value);
    if (metric->code == UNKNOWN || request->newer->taken <= request->older->taken)
        metric->code = OK; /* and NaN, of which DCGM makes a blank */
    else if (metric->code == OK)
        metric->value = value * scale;
}

ret_t nvmlGpmMetricsGet(struct gpm_request *request)
{
    ENTER(c, enter(&c, __func__));
    const struct gpm_sample *older = request->older, *newer = request->newer;
    if (request->version != 1)
        return leave(&c, VERSION_MISMATCH);
    if (!older || !newer || older->magic != SAMPLE_MAGIC || newer->magic != SAMPLE_MAGIC || request->count > 476)
        return leave(&c, INVALID_ARGUMENT);
    if (!older->taken || !newer->taken || older->identity != newer->identity)
        return leave(&c, INVALID_ARGUMENT);
    for (unsigned i = 0; i < request->count; i++)
        gpm_metric(&c, request, &request->metrics[i]);
    return leave(&c, OK);
}

#endif
