/* Processes of the fake libnvidia-ml: the lists of those that run, and the ring of samples of their utilization. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#include <stdio.h>
#include <string.h>

#define SAMPLE_US 250000LL /* between two samples of the ring */
#define RING 60            /* samples that it has of each process */

struct process_v1 { unsigned pid; unsigned long long used; };
struct process_v2 { unsigned pid; unsigned long long used; unsigned gi, ci; };
_Static_assert(sizeof(struct process_v1) == 16, "process v1");
_Static_assert(sizeof(struct process_v2) == 24, "process v2");

static int is_listed(const struct call *c, const struct table_process *p, uint32_t kind)
{
    int same = p->gpu_id == c->gpu->gpu_id && (p->kinds & kind);
    return same && (!c->instance || (p->gi == c->instance->gi && p->ci == (uint32_t)c->instance->ci));
}

/* A fault of `<function>/all` is one of a MIG-enabled GPU as a whole: to list all of its instances takes privileges. */
static ret_t fault_of_all(const struct call *c, const char *function)
{
    char name[64];
    if (c->instance || c->gpu->mig != 1)
        return OK;
    snprintf(name, sizeof name, "%s/all", function);
    return fault(name, c->gpu->uuid);
}

/* As NVML: without room for all, the needed size is returned. Of a GPU, all of its MIG devices are listed. */
static ret_t list(const char *function, device_t d, uint32_t kind, unsigned *count, void *out, int version)
{
    ENTER(c, enter_device(&c, function, d));
    ret_t code = fault_of_all(&c, function);
    if (code != OK)
        return leave(&c, code);
    const struct table_process *all = RECORDS(&c.t, table_process, processes);
    unsigned found = 0, room = out ? *count : 0;
    for (uint32_t i = 0; i < c.t.header->processes.count; i++) {
        if (!is_listed(&c, &all[i], kind))
            continue;
        if (found < room && version == 1)
            ((struct process_v1 *)out)[found] = (struct process_v1){all[i].pid, all[i].used_bytes};
        else if (found < room)
            ((struct process_v2 *)out)[found] = (struct process_v2){all[i].pid, all[i].used_bytes, all[i].gi, all[i].ci};
        found++;
    }
    *count = found;
    return leave(&c, found > room ? INSUFFICIENT_SIZE : OK);
}

#define LIST(function, kind, version)                                                                                  \
    ret_t function(device_t d, unsigned *count, void *out) { return list(__func__, d, kind, count, out, version); }

LIST(nvmlDeviceGetComputeRunningProcesses, PROCESS_COMPUTE, 1)
LIST(nvmlDeviceGetGraphicsRunningProcesses, PROCESS_GRAPHICS, 1)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, PROCESS_MPS, 1)

#ifndef OLD_DRIVER

LIST(nvmlDeviceGetComputeRunningProcesses_v2, PROCESS_COMPUTE, 2)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, PROCESS_GRAPHICS, 2)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, PROCESS_MPS, 2)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, PROCESS_COMPUTE, 2)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, PROCESS_GRAPHICS, 2)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, PROCESS_MPS, 2)

#endif

struct sample { unsigned pid; unsigned long long at; unsigned sm, memory, encoder, decoder; };
struct sample_info { unsigned long long at; unsigned pid, sm, memory, encoder, decoder, jpeg, ofa; };
struct samples_info { unsigned version, count; unsigned long long since; struct sample_info *samples; };
_Static_assert(sizeof(struct sample) == 32, "sample");
_Static_assert(sizeof(struct sample_info) == 40, "sample info");
_Static_assert(sizeof(struct samples_info) == 24, "samples info");

/* Yields the samples after `since` of the processes that used the GPU: their number, and up to `room` of them. */
static unsigned samples_of(const struct call *c, unsigned long long since, struct sample *out, unsigned room)
{
    const struct table_process *all = RECORDS(&c->t, table_process, processes);
    long long newest = c->t.header->now_us / SAMPLE_US;
    unsigned found = 0;
    for (long long step = newest - RING + 1; step <= newest; step++)
        for (uint32_t i = 0; i < c->t.header->processes.count; i++) {
            unsigned long long at = (unsigned long long)(step * SAMPLE_US);
            if (at <= since || all[i].gpu_id != c->gpu->gpu_id || all[i].sm_percent == 0)
                continue;
            if (found < room)
                out[found] = (struct sample){all[i].pid, at, all[i].sm_percent, 0, 0, 0};
            found++;
        }
    return found;
}

ret_t nvmlDeviceGetProcessUtilization(device_t d, struct sample *out, unsigned *count, unsigned long long since)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    if (c.gpu->mig == 1)
        return leave(&c, NOT_SUPPORTED);
    unsigned room = out ? *count : 0;
    *count = samples_of(&c, since, out, room);
    return leave(&c, *count == 0 ? NOT_FOUND : *count > room ? INSUFFICIENT_SIZE : OK);
}

#ifndef OLD_DRIVER

ret_t nvmlDeviceGetProcessesUtilizationInfo(device_t d, struct samples_info *info)
{
    if (info->version != (sizeof *info | 1u << 24))
        return VERSION_MISMATCH;
    ENTER(c, enter_gpu(&c, __func__, d));
    if (c.gpu->mig == 1)
        return leave(&c, NOT_SUPPORTED);
    static struct sample found[4096];
    unsigned room = info->samples ? info->count : 0, most = sizeof found / sizeof found[0];
    info->count = samples_of(&c, info->since, found, most);
    for (unsigned i = 0; i < info->count && i < room && i < most; i++)
        info->samples[i] = (struct sample_info){.at = found[i].at, .pid = found[i].pid, .sm = found[i].sm};
    return leave(&c, info->count == 0 ? NOT_FOUND : info->count > room ? INSUFFICIENT_SIZE : OK);
}

#endif
