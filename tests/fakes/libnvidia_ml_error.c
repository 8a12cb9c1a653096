/* Errors that the fake libnvidia-ml counts: of memory, of PCIe and of NVLinks. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#include <string.h>

PLAIN(nvmlDeviceGetPcieReplayCounter, 202, 1)
PLAIN(nvmlDeviceGetRetiredPagesPendingStatus, 392, 1)

ret_t nvmlDeviceGetTotalEccErrors(device_t d, unsigned type, unsigned counter, unsigned long long *out)
{
    return type < 2 && counter < 2 ? long_plain(__func__, d, (uint16_t)(310 + type + 2 * counter), out) : INVALID_ARGUMENT;
}

/* Volatile counters are fields 314 and up, lifetime ones 324 and up, by location (L1, L2, device, register, texture)
 * and type. */
ret_t nvmlDeviceGetMemoryErrorCounter(device_t d, unsigned type, unsigned counter, unsigned location, unsigned long long *out)
{
    if (type > 1 || counter > 1 || location > 7)
        return INVALID_ARGUMENT;
    uint16_t field = (uint16_t)(314 + 10 * counter + 2 * location + type);
    return location > 4 ? NOT_SUPPORTED : long_plain(__func__, d, field, out);
}

ret_t nvmlDeviceGetRemappedRows(device_t d, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed)
{
    ret_t r = plain(__func__, d, 394, 1, 0, corrected);
    if (r == OK)
        r = plain("", d, 393, 1, 0, uncorrected);
    if (r == OK)
        r = plain("", d, 396, 1, 0, pending);
    return r == OK ? plain("", d, 395, 1, 0, failed) : r;
}

ret_t nvmlDeviceGetRowRemapperHistogram(device_t d, unsigned out[5])
{
    ret_t r = OK;
    for (uint16_t i = 0; i < 5 && r == OK; i++)
        r = plain(i ? "" : __func__, d, (uint16_t)(385 + i), 1, 0, &out[i]);
    return r;
}

struct sram {
    unsigned version;
    unsigned long long counts[11];
    unsigned exceeded;
};
_Static_assert(sizeof(struct sram) == 104, "sram");

ret_t nvmlDeviceGetSramEccErrorStatus(device_t d, struct sram *out)
{
    if (out->version != (sizeof *out | 1u << 24))
        return VERSION_MISMATCH;
    memset(out->counts, 0, sizeof out->counts);
    return plain(__func__, d, 346, 1, 0, &out->exceeded);
}

static ret_t retired_pages(const char *function, device_t d, unsigned cause, unsigned *count, unsigned long long *pages,
                           unsigned long long *times)
{
    unsigned found;
    if (cause > 1)
        return INVALID_ARGUMENT;
    ret_t r = plain(function, d, cause ? 391 : 390, 1, 0, &found);
    if (r != OK)
        return r;
    unsigned capacity = *count;
    *count = found;
    if (!pages || capacity < found)
        return found ? INSUFFICIENT_SIZE : OK;
    for (unsigned i = 0; i < found; i++) {
        pages[i] = 0x1000ULL * (i + 1);
        if (times)
            times[i] = i;
    }
    return OK;
}

ret_t nvmlDeviceGetRetiredPages(device_t d, unsigned cause, unsigned *count, unsigned long long *pages)
{
    return retired_pages(__func__, d, cause, count, pages, NULL);
}

ret_t nvmlDeviceGetRetiredPages_v2(device_t d, unsigned cause, unsigned *count, unsigned long long *pages, unsigned long long *times)
{
    return retired_pages(__func__, d, cause, count, pages, times);
}
