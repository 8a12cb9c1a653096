/* What the fake libnvidia-ml reads from the table: numbers, with the codes that NVML has for blanks and failures. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#include <string.h>
#include <time.h>

#define BLANK_I64 0x7ffffffffffffff0LL
#define BLANK_DBL 140737488355328.0

const struct table_device *gpu_by_uuid(const struct table_view *t, const char *uuid)
{
    const struct table_device *all = RECORDS(t, table_device, devices);
    for (uint32_t i = 0; i < t->header->devices.count; i++)
        if (strcmp(all[i].uuid, uuid) == 0)
            return &all[i];
    return NULL;
}

const struct table_instance *instance_of(const struct table_view *t, uint32_t gpu_id, uint32_t gi, int32_t ci)
{
    const struct table_instance *all = RECORDS(t, table_instance, instances);
    for (uint32_t i = 0; i < t->header->instances.count; i++)
        if (all[i].gpu_id == gpu_id && all[i].gi == gi && all[i].ci == ci)
            return &all[i];
    return NULL;
}

static ret_t of_sentinel(int64_t above_blank)
{
    return above_blank == 1 ? NOT_FOUND : above_blank == 2 ? NOT_SUPPORTED : above_blank == 3 ? NO_PERMISSION : UNKNOWN;
}

static ret_t of_status(int32_t status)
{
    switch (status) {
    case -6: case -32: case -36: return NOT_SUPPORTED;
    case -14: return NO_DATA;
    case -17: case -29: return NO_PERMISSION;
    case -18: case -19: return GPU_IS_LOST;
    case -45: case -46: return NOT_FOUND;
    default: return UNKNOWN;
    }
}

/* Read a number from the table; a sentinel or a status of DCGM becomes the code that NVML returns for it. */
ret_t number(const struct table_view *t, uint32_t kind, uint32_t entity, uint16_t field, double *out,
                    int64_t *whole)
{
    const struct table_sample *sample = table_sample(t, kind, entity, field);
    if (!sample)
        return NOT_SUPPORTED;
    if (sample->status != 0)
        return of_status(sample->status);
    if (sample->type == 'i') {
        if (sample->value.i64 >= BLANK_I64)
            return of_sentinel(sample->value.i64 - BLANK_I64);
        *out = (double)sample->value.i64;
        *whole = sample->value.i64;
        return OK;
    }
    if (sample->type != 'd')
        return NOT_SUPPORTED;
    if (sample->value.dbl >= BLANK_DBL)
        return of_sentinel((int64_t)(sample->value.dbl - BLANK_DBL));
    *out = sample->value.dbl;
    *whole = (int64_t)sample->value.dbl;
    return OK;
}

int64_t wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void sleep_ms(unsigned milliseconds)
{
    struct timespec length = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    nanosleep(&length, NULL);
}

/* Apply the scenario's fault of this function, of all GPUs or of the one with this UUID. NVML's codes are positive: a
 * negative one is for DCGM. */
ret_t fault(const char *function, const char *uuid)
{
    int status = table_fault_on(function, uuid);
    return status > 0 ? status : OK;
}
