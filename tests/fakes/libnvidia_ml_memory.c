/* Framebuffer and BAR1 of the fake libnvidia-ml. An old driver has no second version of the record. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

struct memory_v1 { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
struct bar1 { unsigned long long total, free, used; };
_Static_assert(sizeof(struct memory_v2) == 40, "memory v2");

static ret_t mebibytes(struct call *c, uint16_t field, unsigned long long *out)
{
    double value;
    int64_t whole;
    ret_t r = own_number(c, field, &value, &whole);
    if (r == OK)
        *out = (unsigned long long)whole * MIB;
    return r;
}

static ret_t memory_of(struct call *c, struct memory_v2 *m)
{
    ret_t r = mebibytes(c, 250, &m->total);
    if (r == OK)
        r = mebibytes(c, 251, &m->free);
    if (r == OK)
        r = mebibytes(c, 252, &m->used);
    if (r == OK)
        r = mebibytes(c, 253, &m->reserved);
    return r;
}

ret_t nvmlDeviceGetMemoryInfo(device_t d, struct memory_v1 *out)
{
    struct memory_v2 m;
    ENTER(c, enter_device(&c, __func__, d));
    ret_t r = memory_of(&c, &m);
    if (r == OK)
        *out = (struct memory_v1){m.total, m.free, m.used + m.reserved};
    return leave(&c, r);
}

ret_t nvmlDeviceGetBAR1MemoryInfo(device_t d, struct bar1 *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    ret_t r = mebibytes(&c, 90, &out->total);
    if (r == OK)
        r = mebibytes(&c, 92, &out->used);
    if (r == OK)
        r = mebibytes(&c, 93, &out->free);
    return leave(&c, r);
}

#ifndef OLD_DRIVER

ret_t nvmlDeviceGetMemoryInfo_v2(device_t d, struct memory_v2 *out)
{
    if (out->version != (sizeof *out | 2u << 24))
        return VERSION_MISMATCH;
    ENTER(c, enter_device(&c, __func__, d));
    return leave(&c, memory_of(&c, out));
}

#endif
