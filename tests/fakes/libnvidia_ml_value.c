/* Single values of the fake libnvidia-ml: numbers and texts of a GPU. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#include <math.h>
#include <string.h>

ret_t copy_text(const char *text, char *out, unsigned size)
{
    if (strlen(text) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return OK;
}

ret_t gpu_number(struct call *c, uint16_t field, double *out, int64_t *whole)
{
    return number(&c->t, KIND_GPU, c->gpu->gpu_id, field, out, whole);
}

/* Read a field of a GPU, or of a MIG device: that of its GPU instance, else its own. */
ret_t own_number(struct call *c, uint16_t field, double *out, int64_t *whole)
{
    if (!c->instance)
        return gpu_number(c, field, out, whole);
    const struct table_instance *gi = instance_of(&c->t, c->gpu->gpu_id, c->instance->gi, -1);
    if (gi && table_sample(&c->t, KIND_GI, gi->entity_id, field))
        return number(&c->t, KIND_GI, gi->entity_id, field, out, whole);
    return number(&c->t, KIND_CI, c->instance->entity_id, field, out, whole);
}

ret_t plain(const char *function, device_t d, uint16_t field, double scale, int not_under_mig, unsigned *out)
{
    double value;
    int64_t whole;
    ENTER(c, enter_gpu(&c, function, d));
    ret_t r = not_under_mig && c.gpu->mig == 1 ? NOT_SUPPORTED : gpu_number(&c, field, &value, &whole);
    if (r == OK)
        *out = (unsigned)llround(value * scale);
    return leave(&c, r);
}

ret_t long_plain(const char *function, device_t d, uint16_t field, unsigned long long *out)
{
    double value;
    int64_t whole;
    ENTER(c, enter_gpu(&c, function, d));
    ret_t r = gpu_number(&c, field, &value, &whole);
    if (r == OK)
        *out = (unsigned long long)whole;
    return leave(&c, r);
}

PLAIN(nvmlDeviceGetPerformanceState, 190, 1)
PLAIN(nvmlDeviceGetMaxPcieLinkGeneration, 235, 1)
PLAIN(nvmlDeviceGetMaxPcieLinkWidth, 236, 1)
PLAIN(nvmlDeviceGetCurrPcieLinkGeneration, 237, 1)
PLAIN(nvmlDeviceGetCurrPcieLinkWidth, 238, 1)
PLAIN(nvmlDeviceGetPersistenceMode, 66, 1)
PLAIN(nvmlDeviceGetVirtualizationMode, 500, 1)

struct utilization { unsigned gpu, memory; };

ret_t nvmlDeviceGetUtilizationRates(device_t d, struct utilization *out)
{
    ret_t r = plain(__func__, d, 203, 1, 1, &out->gpu);
    return r == OK ? plain("", d, 204, 1, 1, &out->memory) : r;
}

ret_t nvmlDeviceGetEncoderUtilization(device_t d, unsigned *out, unsigned *period_us)
{
    *period_us = 1000000;
    return plain(__func__, d, 206, 1, 1, out);
}

ret_t nvmlDeviceGetDecoderUtilization(device_t d, unsigned *out, unsigned *period_us)
{
    *period_us = 1000000;
    return plain(__func__, d, 207, 1, 1, out);
}

const char *gpu_text(const struct call *c, uint16_t field)
{
    const struct table_sample *found = table_sample(&c->t, KIND_GPU, c->gpu->gpu_id, field);
    return found && found->status == 0 && found->text[0] && strncmp(found->text, "<<<", 3) != 0 ? found->text : NULL;
}

static ret_t text_of(const char *function, device_t d, uint16_t field, char *out, unsigned size)
{
    ENTER(c, enter_gpu(&c, function, d));
    const char *text = gpu_text(&c, field);
    return leave(&c, text ? copy_text(text, out, size) : NOT_SUPPORTED);
}

/* Objects of the InfoROM: OEM, ECC, power. */
ret_t nvmlDeviceGetInforomVersion(device_t d, unsigned object, char *out, unsigned size)
{
    const uint16_t fields[] = {56, 80, 81};
    return object < 3 ? text_of(__func__, d, fields[object], out, size) : INVALID_ARGUMENT;
}

ret_t nvmlDeviceGetInforomImageVersion(device_t d, char *out, unsigned size) { return text_of(__func__, d, 82, out, size); }

/* nvmlBrandType_t, with DCGM's texts of some brands; 0 is unknown. */
ret_t nvmlDeviceGetBrand(device_t d, unsigned *out)
{
    static const char *const brands[] = {"", "Quadro", "Tesla", "NVS", "Grid", "GeForce", "Titan"};
    ENTER(c, enter_gpu(&c, __func__, d));
    const char *text = gpu_text(&c, 51);
    *out = 0;
    for (unsigned i = 1; text && i < sizeof brands / sizeof brands[0]; i++)
        if (strcmp(text, brands[i]) == 0)
            *out = i;
    return leave(&c, text ? OK : NOT_SUPPORTED);
}

/* nvmlComputeMode_t has 2 for prohibited and 3 for an exclusive process; DCGM has 1 and 2. */
ret_t nvmlDeviceGetComputeMode(device_t d, unsigned *out)
{
    ret_t r = plain(__func__, d, 65, 1, 0, out);
    *out += r == OK && *out > 0;
    return r;
}
