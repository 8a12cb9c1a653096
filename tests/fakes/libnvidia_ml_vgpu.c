/* vGPUs of the fake libnvidia-ml: those of a hypervisor, by their numbers, and what a virtual machine sees of its own. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#include <stdio.h>
#include <string.h>

#define VGPU_GUEST 2 /* nvmlGpuVirtualizationMode_t */
#define VGPU_HOST 3
#define FEATURE_VGPU 1

static int is_vgpu_of(const struct table_sample *row, uint32_t gpu_id)
{
    return row->kind == KIND_VGPU && row->field == MARK_FIELD && row->value.i64 == (int64_t)gpu_id;
}

/* As NVML: a GPU that is not one of a vGPU host does not support it; with vGPUs, their number comes first. */
ret_t nvmlDeviceGetActiveVgpus(device_t d, unsigned *count, unsigned *out)
{
    uint32_t rows;
    double value;
    int64_t mode;
    ENTER(c, enter_gpu(&c, __func__, d));
    if (gpu_number(&c, 500, &value, &mode) != OK || mode < VGPU_HOST)
        return leave(&c, NOT_SUPPORTED);
    const struct table_sample *row = table_samples(&c.t, &rows);
    unsigned found = 0, capacity = *count;
    for (uint32_t i = 0; i < rows; i++)
        if (is_vgpu_of(&row[i], c.gpu->gpu_id)) {
            if (out && found < capacity)
                out[found] = row[i].entity_id;
            found++;
        }
    *count = found;
    return leave(&c, found > capacity || (found && !out) ? INSUFFICIENT_SIZE : OK);
}

/* A vGPU that there is not (any more) is not found. */
static ret_t enter_vgpu(struct call *c, const char *function, unsigned vgpu)
{
    ret_t r = enter_entity(c, function, KIND_VGPU, vgpu);
    if (r != OK)
        return r;
    return table_sample(&c->t, KIND_VGPU, vgpu, MARK_FIELD) ? OK : leave(c, NOT_FOUND);
}

static ret_t vgpu_number(const char *function, unsigned vgpu, uint16_t field, int64_t *out)
{
    double value;
    ENTER(c, enter_vgpu(&c, function, vgpu));
    return leave(&c, number(&c.t, KIND_VGPU, vgpu, field, &value, out));
}

static ret_t vgpu_text(const char *function, unsigned vgpu, uint16_t field, char *out, unsigned size)
{
    ENTER(c, enter_vgpu(&c, function, vgpu));
    const struct table_sample *row = table_sample(&c.t, KIND_VGPU, vgpu, field);
    return leave(&c, row && row->status == 0 && strncmp(row->text, "<<<", 3) != 0 ? copy_text(row->text, out, size)
                                                                                  : NOT_SUPPORTED);
}

ret_t nvmlVgpuInstanceGetVmID(unsigned vgpu, char *out, unsigned size, unsigned *type)
{
    *type = 1; /* a UUID, not the number of a Xen domain */
    return vgpu_text(__func__, vgpu, 520, out, size);
}

ret_t nvmlVgpuInstanceGetUUID(unsigned vgpu, char *out, unsigned size)
{
    return vgpu_text(__func__, vgpu, MARK_FIELD, out, size);
}

ret_t nvmlVgpuInstanceGetVmDriverVersion(unsigned vgpu, char *out, unsigned size)
{
    return vgpu_text(__func__, vgpu, 524, out, size);
}

ret_t nvmlVgpuInstanceGetGpuPciId(unsigned vgpu, char *out, unsigned *size)
{
    return vgpu_text(__func__, vgpu, 533, out, *size);
}

/* In bytes: 64 bits. */
ret_t nvmlVgpuInstanceGetFbUsage(unsigned vgpu, unsigned long long *out)
{
    int64_t mib;
    ret_t r = vgpu_number(__func__, vgpu, 525, &mib);
    if (r == OK)
        *out = (unsigned long long)mib * MIB;
    return r;
}

static ret_t short_number(const char *function, unsigned vgpu, uint16_t field, unsigned *out)
{
    int64_t whole;
    ret_t r = vgpu_number(function, vgpu, field, &whole);
    if (r == OK)
        *out = (unsigned)whole;
    return r;
}

ret_t nvmlVgpuInstanceGetType(unsigned vgpu, unsigned *out) { return short_number(__func__, vgpu, 522, out); }
ret_t nvmlVgpuInstanceGetFrameRateLimit(unsigned vgpu, unsigned *out) { return short_number(__func__, vgpu, 527, out); }

/* On a GPU without GPU instances there is no such number. */
ret_t nvmlVgpuInstanceGetGpuInstanceId(unsigned vgpu, unsigned *out)
{
    ret_t r = short_number(__func__, vgpu, 534, out);
    if (r == NOT_SUPPORTED) {
        *out = NO_ID;
        r = OK;
    }
    return r;
}

union value { double d; unsigned ui; unsigned long long ull; };
struct vgpu_utilization { unsigned vgpu; unsigned long long timestamp_us; union value shares[4]; };
_Static_assert(sizeof(struct vgpu_utilization) == 48, "vgpu utilization");

/* The samples newer than a time: one for each vGPU that has some, in four bytes of field 504. */
ret_t nvmlDeviceGetVgpuUtilization(device_t d, unsigned long long since_us, unsigned *type, unsigned *count,
                                   struct vgpu_utilization *out)
{
    uint32_t rows;
    unsigned found = 0, capacity = *count;
    ENTER(c, enter_gpu(&c, __func__, d));
    const struct table_sample *row = table_samples(&c.t, &rows);
    for (uint32_t i = 0; i < rows; i++) {
        if (!is_vgpu_of(&row[i], c.gpu->gpu_id))
            continue;
        const struct table_sample *used = table_sample(&c.t, KIND_VGPU, row[i].entity_id, 504);
        if (!used || (unsigned long long)used->timestamp_us <= since_us)
            continue;
        if (out && found < capacity) {
            out[found] = (struct vgpu_utilization){row[i].entity_id, (unsigned long long)used->timestamp_us, {{0}}};
            for (unsigned n = 0; n < 4; n++)
                out[found].shares[n].ui = (unsigned)(used->value.raw >> (8 * n)) & 0xFF;
        }
        found++;
    }
    *type = 1;
    *count = found;
    return leave(&c, !found ? NOT_FOUND : found > capacity || !out ? INSUFFICIENT_SIZE : OK);
}

struct license_expiry { uint32_t year; uint16_t month, day, hour, min, sec; uint8_t status; };

#ifndef OLD_DRIVER

struct license_info { uint8_t licensed; struct license_expiry expiry; unsigned state; };
_Static_assert(sizeof(struct license_info) == 24, "license info");

static const char *const STATES[] = {
    "Unknown", "Uninitialized", "Unlicensed (Unrestricted)", "Unlicensed (Restricted)", "Unlicensed", "Licensed"};

ret_t nvmlVgpuInstanceGetLicenseInfo_v2(unsigned vgpu, struct license_info *out)
{
    char text[256];
    ret_t r = vgpu_text(__func__, vgpu, 532, text, sizeof text);
    if (r != OK)
        return r;
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < sizeof STATES / sizeof STATES[0]; i++)
        if (strcmp(text, STATES[i]) == 0)
            out->state = i;
    out->licensed = out->state == 5;
    return OK;
}

struct feature {
    unsigned code, state;
    char info[128], product[128];
    unsigned enabled;
    struct license_expiry expiry;
};
struct features { int supported; unsigned count; struct feature features[3]; };
_Static_assert(sizeof(struct features) == 8 + 3 * 284, "features");

/* Of a virtual machine's GPU: whether its vGPU has a license. */
ret_t nvmlDeviceGetGridLicensableFeatures_v4(device_t d, struct features *out)
{
    double value;
    int64_t mode, license = 0;
    ENTER(c, enter_gpu(&c, __func__, d));
    memset(out, 0, sizeof *out);
    out->supported = gpu_number(&c, 500, &value, &mode) == OK && mode == VGPU_GUEST;
    if (!out->supported)
        return leave(&c, OK);
    ret_t r = gpu_number(&c, 526, &value, &license);
    out->count = r == OK;
    out->features[0].code = FEATURE_VGPU;
    out->features[0].state = (unsigned)license;
    snprintf(out->features[0].product, sizeof out->features[0].product, "NVIDIA Virtual Compute Server");
    return leave(&c, r == NOT_SUPPORTED ? OK : r);
}

#endif
