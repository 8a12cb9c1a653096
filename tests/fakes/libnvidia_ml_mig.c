/* MIG devices of the fake libnvidia-ml. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#include <string.h>

ret_t nvmlDeviceGetMigMode(device_t d, unsigned *current, unsigned *pending)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    if (c.gpu->mig < 0)
        return leave(&c, NOT_SUPPORTED);
    *current = *pending = (unsigned)c.gpu->mig;
    return leave(&c, OK);
}

ret_t nvmlDeviceGetMaxMigDeviceCount(device_t d, unsigned *out)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    *out = c.gpu->mig < 0 ? 0 : c.gpu->max_slices;
    return leave(&c, OK);
}

ret_t nvmlDeviceGetMigDeviceHandleByIndex(device_t d, unsigned index, device_t *out)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    const struct table_instance *all = RECORDS(&c.t, table_instance, instances);
    if (c.gpu->mig < 0 || index >= c.gpu->max_slices)
        return leave(&c, c.gpu->mig < 0 ? NOT_SUPPORTED : INVALID_ARGUMENT);
    for (uint32_t i = 0; i < c.t.header->instances.count; i++)
        if (all[i].kind == KIND_CI && all[i].gpu_id == c.gpu->gpu_id && all[i].mig_index == (int32_t)index)
            return leave(&c, return_mig_device(&c, &all[i], out));
    return leave(&c, NOT_FOUND);
}

ret_t nvmlDeviceIsMigDeviceHandle(device_t d, unsigned *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    *out = c.instance != NULL;
    return leave(&c, OK);
}

ret_t nvmlDeviceGetGpuInstanceId(device_t d, unsigned *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    *out = c.instance ? c.instance->gi : 0;
    return leave(&c, c.instance ? OK : NOT_SUPPORTED);
}

ret_t nvmlDeviceGetComputeInstanceId(device_t d, unsigned *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    *out = c.instance ? (unsigned)c.instance->ci : 0;
    return leave(&c, c.instance ? OK : NOT_SUPPORTED);
}

ret_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device_t d, device_t *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    return leave(&c, c.instance ? return_gpu(&c, c.gpu->uuid, out) : INVALID_ARGUMENT);
}

struct attributes {
    unsigned multiprocessors, copy_engines, decoders, encoders, jpeg, ofa, gi_slices, ci_slices;
    unsigned long long memory_mb;
};
_Static_assert(sizeof(struct attributes) == 40, "attributes");

ret_t nvmlDeviceGetAttributes_v2(device_t d, struct attributes *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    if (!c.instance)
        return leave(&c, NOT_SUPPORTED);
    const struct table_instance *gi = instance_of(&c.t, c.gpu->gpu_id, c.instance->gi, -1);
    memset(out, 0, sizeof *out);
    out->gi_slices = gi ? gi->slices : c.instance->slices;
    out->ci_slices = c.instance->slices;
    out->memory_mb = c.instance->memory_mib;
    return leave(&c, OK);
}
