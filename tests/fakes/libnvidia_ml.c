/* A fake libnvidia-ml.so.1: the part of NVML that pynvml and the exporter use. Every value comes from the flat table.
 *
 * It returns the errors of the real library: for calls before nvmlInit (1), handles that are not its own or are from
 * before a shutdown (2), buffers that are too small (7), records of another version (25), and any call on a lost GPU
 * (15). Record layouts are those of nvml.h as pynvml declares them.
 * With -DOLD_DRIVER the newer functions (memory v2, TemperatureV, ClocksEventReasons, GPM, system events) are missing.
 */
#define _GNU_SOURCE
#include "libnvidia_ml.h"
#include "open_gpus.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define NO_ID 0xFFFFFFFFu
#define BLANK_I64 0x7ffffffffffffff0LL
#define BLANK_DBL 140737488355328.0
#define MIB (1ULL << 20)
#define MAX_GPUS 64
#define MAX_HANDLES 4096

/* ---- the table ------------------------------------------------------------------------------------------------- */

#define RECORDS(t, type, section) ((const struct type *)((t)->base + (t)->header->section.offset))

static const struct table_device *gpu_by_uuid(const struct table_view *t, const char *uuid)
{
    const struct table_device *all = RECORDS(t, table_device, devices);
    for (uint32_t i = 0; i < t->header->devices.count; i++)
        if (strcmp(all[i].uuid, uuid) == 0)
            return &all[i];
    return NULL;
}

static const struct table_instance *instance_of(const struct table_view *t, uint32_t gpu_id, uint32_t gi, int32_t ci)
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
static ret_t number(const struct table_view *t, uint32_t kind, uint32_t entity, uint16_t field, double *out,
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

static int64_t wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void sleep_ms(unsigned milliseconds)
{
    struct timespec length = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    nanosleep(&length, NULL);
}

/* Apply the scenario's fault of this function, of all GPUs or of the one with this UUID. NVML's codes are positive: a
 * negative one is for DCGM. */
static ret_t fault(const char *function, const char *uuid)
{
    int status = table_fault_on(function, uuid);
    return status > 0 ? status : OK;
}

/* ---- the session and its handles --------------------------------------------------------------------------------- */

struct nvml_device {
    unsigned session; /* in which the handle was returned */
    char uuid[96];    /* of the GPU */
    uint32_t gi;      /* NO_ID on a GPU */
    int32_t ci;
    uint64_t identity; /* of the instance */
};
typedef struct nvml_device *device_t;

static unsigned initialized, session;
static struct nvml_device handles[MAX_HANDLES];
static unsigned handle_count;
static char gpus[MAX_GPUS][96]; /* UUIDs by NVML index, as they were at initialization */
static unsigned gpu_count;

static device_t known_handle(const char *uuid, uint32_t gi, int32_t ci, uint64_t identity)
{
    for (unsigned i = 0; i < handle_count; i++)
        if (handles[i].session == session && handles[i].gi == gi && handles[i].ci == ci &&
            handles[i].identity == identity && strcmp(handles[i].uuid, uuid) == 0)
            return &handles[i];
    if (handle_count == MAX_HANDLES)
        return NULL;
    device_t fresh = &handles[handle_count++];
    *fresh = (struct nvml_device){.session = session, .gi = gi, .ci = ci, .identity = identity};
    snprintf(fresh->uuid, sizeof fresh->uuid, "%s", uuid);
    return fresh;
}

/* NVML may be called by several threads at once. */
static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER, links_lock = PTHREAD_MUTEX_INITIALIZER;

static device_t handle_for(const char *uuid, uint32_t gi, int32_t ci, uint64_t identity)
{
    pthread_mutex_lock(&handles_lock);
    device_t handle = known_handle(uuid, gi, ci, identity);
    pthread_mutex_unlock(&handles_lock);
    return handle;
}

static int is_handle(device_t d)
{
    return d >= handles && d < handles + handle_count && d->session == session;
}

/* The devices that one call is about. */
struct call {
    struct table_view t;
    const struct table_device *gpu;
    const struct table_instance *instance; /* of a MIG device: its compute instance */
};

static ret_t enter_of(struct call *c, const char *function, const char *uuid)
{
    ret_t code = fault(function, uuid);
    memset(c, 0, sizeof *c);
    if (code != OK)
        return code;
    if (table_open(&c->t) != 0)
        return DRIVER_NOT_LOADED;
    if (!initialized)
        table_close(&c->t);
    return initialized ? OK : UNINITIALIZED;
}

static ret_t enter(struct call *c, const char *function)
{
    return enter_of(c, function, NULL);
}

ret_t nvml_enter(const char *function, struct table_view *t)
{
    struct call c;
    ret_t r = enter(&c, function);
    *t = c.t;
    return r;
}

/* A GPU that has fallen off the bus, or that has no driver any more: its handles are dead. */
static int is_gone(const struct table_device *gpu)
{
    return !gpu || gpu->status == STATE_LOST || gpu->status == STATE_DETACHED;
}

static ret_t resolve(struct call *c, device_t d)
{
    if (!is_handle(d))
        return INVALID_ARGUMENT;
    c->gpu = gpu_by_uuid(&c->t, d->uuid);
    if (is_gone(c->gpu))
        return GPU_IS_LOST;
    if (d->gi == NO_ID)
        return OK;
    c->instance = instance_of(&c->t, c->gpu->gpu_id, d->gi, d->ci);
    return c->instance && c->instance->identity == d->identity ? OK : INVALID_ARGUMENT;
}

static ret_t enter_device(struct call *c, const char *function, device_t d)
{
    ret_t r = enter_of(c, function, is_handle(d) ? d->uuid : NULL);
    if (r != OK)
        return r;
    r = resolve(c, d);
    if (r != OK)
        table_close(&c->t);
    return r;
}

static ret_t enter_gpu(struct call *c, const char *function, device_t d)
{
    ret_t r = enter_device(c, function, d);
    if (r == OK && c->instance) {
        table_close(&c->t);
        return NOT_SUPPORTED;
    }
    return r;
}

static ret_t leave(struct call *c, ret_t r)
{
    table_close(&c->t);
    return r;
}

#define ENTER(c, outcome)                                                                                              \
    struct call c;                                                                                                     \
    do {                                                                                                               \
        ret_t entered = outcome;                                                                                       \
        if (entered != OK)                                                                                             \
            return entered;                                                                                            \
    } while (0)

static ret_t gpu_number(struct call *c, uint16_t field, double *out, int64_t *whole)
{
    return number(&c->t, KIND_GPU, c->gpu->gpu_id, field, out, whole);
}

/* Read a field of a GPU, or of a MIG device: that of its GPU instance, else its own. */
static ret_t own_number(struct call *c, uint16_t field, double *out, int64_t *whole)
{
    if (!c->instance)
        return gpu_number(c, field, out, whole);
    const struct table_instance *gi = instance_of(&c->t, c->gpu->gpu_id, c->instance->gi, -1);
    if (gi && table_sample(&c->t, KIND_GI, gi->entity_id, field))
        return number(&c->t, KIND_GI, gi->entity_id, field, out, whole);
    return number(&c->t, KIND_CI, c->instance->entity_id, field, out, whole);
}

static ret_t copy_text(const char *text, char *out, unsigned size)
{
    if (strlen(text) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return OK;
}

static int compare_index(const void *a, const void *b)
{
    const struct table_device *const *x = a, *const *y = b;
    return (int)(*x)->nvml_index - (int)(*y)->nvml_index;
}

static void list_gpus(const struct table_view *t)
{
    const struct table_device *order[MAX_GPUS], *all = RECORDS(t, table_device, devices);
    gpu_count = 0;
    for (uint32_t i = 0; i < t->header->devices.count && gpu_count < MAX_GPUS; i++)
        if (all[i].status != STATE_DETACHED) /* without a driver it is not listed */
            order[gpu_count++] = &all[i];
    qsort(order, gpu_count, sizeof order[0], compare_index);
    for (unsigned i = 0; i < gpu_count; i++)
        memcpy(gpus[i], order[i]->uuid, sizeof gpus[i]);
}

static ret_t start(const char *function)
{
    struct table_view t;
    ret_t code = fault(function, NULL);
    if (code != OK)
        return code;
    if (table_open(&t) != 0)
        return DRIVER_NOT_LOADED;
    if (initialized++ == 0) {
        session++;
        if (handle_count > MAX_HANDLES / 2)
            handle_count = 0;
        list_gpus(&t);
        gpus_open(&t);
    }
    table_close(&t);
    return OK;
}

ret_t nvmlInit_v2(void) { return start(__func__); }
ret_t nvmlInitWithFlags(unsigned flags) { return flags > 3 ? INVALID_ARGUMENT : start(__func__); }

ret_t nvmlShutdown(void)
{
    if (!initialized)
        return UNINITIALIZED;
    if (--initialized == 0)
        gpus_close();
    return OK;
}

const char *nvmlErrorString(ret_t code)
{
    switch (code) {
    case OK: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case GPU_IS_LOST: return "GPU is lost";
    case NO_DATA: return "No data";
    case VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

ret_t nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    ENTER(c, enter(&c, __func__));
    return leave(&c, copy_text(c.t.header->driver_version, out, size));
}

ret_t nvmlSystemGetNVMLVersion(char *out, unsigned size)
{
    ENTER(c, enter(&c, __func__));
    return leave(&c, copy_text(c.t.header->nvml_version, out, size));
}

ret_t nvmlSystemGetCudaDriverVersion(int *out)
{
    ENTER(c, enter(&c, __func__));
    *out = c.t.header->cuda_version;
    return leave(&c, OK);
}

ret_t nvmlSystemGetCudaDriverVersion_v2(int *out)
{
    ENTER(c, enter(&c, __func__));
    *out = c.t.header->cuda_version;
    return leave(&c, OK);
}

/* ---- GPUs -------------------------------------------------------------------------------------------------------- */

ret_t nvmlDeviceGetCount_v2(unsigned *out)
{
    ENTER(c, enter(&c, __func__));
    *out = gpu_count;
    return leave(&c, OK);
}

static ret_t return_gpu(struct call *c, const char *uuid, device_t *out)
{
    const struct table_device *gpu = gpu_by_uuid(&c->t, uuid);
    if (is_gone(gpu))
        return GPU_IS_LOST;
    *out = handle_for(uuid, NO_ID, -1, gpu->identity);
    return *out ? OK : NO_MEMORY;
}

ret_t nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *out)
{
    ENTER(c, enter_of(&c, __func__, index < gpu_count ? gpus[index] : NULL));
    return leave(&c, index < gpu_count ? return_gpu(&c, gpus[index], out) : INVALID_ARGUMENT);
}

static ret_t return_mig_device(struct call *c, const struct table_instance *ci, device_t *out)
{
    const struct table_device *all = RECORDS(&c->t, table_device, devices);
    for (uint32_t i = 0; i < c->t.header->devices.count; i++) {
        if (all[i].gpu_id != ci->gpu_id)
            continue;
        if (is_gone(&all[i]))
            return GPU_IS_LOST;
        *out = handle_for(all[i].uuid, ci->gi, ci->ci, ci->identity);
        return *out ? OK : NO_MEMORY;
    }
    return NOT_FOUND;
}

ret_t nvmlDeviceGetHandleByUUID(const char *uuid, device_t *out)
{
    ENTER(c, enter(&c, __func__));
    const struct table_instance *all = RECORDS(&c.t, table_instance, instances);
    for (unsigned i = 0; i < gpu_count; i++)
        if (strcmp(gpus[i], uuid) == 0)
            return leave(&c, return_gpu(&c, uuid, out));
    for (uint32_t i = 0; i < c.t.header->instances.count; i++)
        if (all[i].kind == KIND_CI && strcmp(all[i].mig_uuid, uuid) == 0)
            return leave(&c, return_mig_device(&c, &all[i], out));
    return leave(&c, NOT_FOUND);
}

ret_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, device_t *out)
{
    ENTER(c, enter(&c, __func__));
    const struct table_device *all = RECORDS(&c.t, table_device, devices);
    for (uint32_t i = 0; i < c.t.header->devices.count; i++) {
        const char *known = all[i].pci_bus_id; /* eight-digit domain; four digits are accepted too */
        if (strcasecmp(known, bus) == 0 || (strlen(known) > 4 && strcasecmp(known + 4, bus) == 0))
            return leave(&c, return_gpu(&c, all[i].uuid, out));
    }
    return leave(&c, NOT_FOUND);
}

ret_t nvmlDeviceGetName(device_t d, char *out, unsigned size)
{
    char name[256];
    ENTER(c, enter_device(&c, __func__, d));
    if (c.instance)
        snprintf(name, sizeof name, "%s MIG %s", c.gpu->model, c.instance->profile);
    else
        snprintf(name, sizeof name, "%s", c.gpu->model);
    return leave(&c, copy_text(name, out, size));
}

ret_t nvmlDeviceGetUUID(device_t d, char *out, unsigned size)
{
    ENTER(c, enter_device(&c, __func__, d));
    return leave(&c, copy_text(c.instance ? c.instance->mig_uuid : c.gpu->uuid, out, size));
}

ret_t nvmlDeviceGetSerial(device_t d, char *out, unsigned size)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    return leave(&c, c.gpu->serial[0] ? copy_text(c.gpu->serial, out, size) : NOT_SUPPORTED);
}

ret_t nvmlDeviceGetVbiosVersion(device_t d, char *out, unsigned size)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    return leave(&c, c.gpu->vbios[0] ? copy_text(c.gpu->vbios, out, size) : NOT_SUPPORTED);
}

ret_t nvmlDeviceGetIndex(device_t d, unsigned *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    *out = c.instance ? (unsigned)c.instance->mig_index : c.gpu->nvml_index;
    return leave(&c, OK);
}

ret_t nvmlDeviceGetMinorNumber(device_t d, unsigned *out)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    *out = (unsigned)c.gpu->minor;
    return leave(&c, c.gpu->minor < 0 ? NOT_SUPPORTED : OK);
}

struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
_Static_assert(sizeof(struct pci_info) == 68, "pci info");

ret_t nvmlDeviceGetPciInfo_v3(device_t d, struct pci_info *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    memset(out, 0, sizeof *out);
    sscanf(c.gpu->pci_bus_id, "%8x:%2x:%2x", &out->domain, &out->bus, &out->device);
    snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.0", out->domain & 0xFFFF, out->bus & 0xFF, out->device & 0xFF);
    memcpy(out->bus_id, c.gpu->pci_bus_id, sizeof out->bus_id);
    return leave(&c, OK);
}

ret_t nvmlDeviceGetArchitecture(device_t d, unsigned *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    *out = c.gpu->architecture ? c.gpu->architecture : NO_ID;
    return leave(&c, OK);
}

ret_t nvmlDeviceGetNumaNodeId(device_t d, unsigned *out)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    *out = (unsigned)c.gpu->numa_node;
    return leave(&c, c.gpu->numa_node < 0 ? NOT_SUPPORTED : OK);
}

ret_t nvmlDeviceGetCudaComputeCapability(device_t d, int *major, int *minor)
{
    ENTER(c, enter_device(&c, __func__, d));
    *major = c.gpu->compute_major;
    *minor = c.gpu->compute_minor;
    return leave(&c, OK);
}

/* ---- MIG --------------------------------------------------------------------------------------------------------- */

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

/* ---- single values ---------------------------------------------------------------------------------------------- */

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

static ret_t plain(const char *function, device_t d, uint16_t field, double scale, int not_under_mig, unsigned *out)
{
    double value;
    int64_t whole;
    ENTER(c, enter_gpu(&c, function, d));
    ret_t r = not_under_mig && c.gpu->mig == 1 ? NOT_SUPPORTED : gpu_number(&c, field, &value, &whole);
    if (r == OK)
        *out = (unsigned)llround(value * scale);
    return leave(&c, r);
}

#define PLAIN(function, field, scale)                                                                                  \
    ret_t function(device_t d, unsigned *out) { return plain(__func__, d, field, scale, 0, out); }

PLAIN(nvmlDeviceGetPowerUsage, 155, 1000)
PLAIN(nvmlDeviceGetPowerManagementLimit, 160, 1000)
PLAIN(nvmlDeviceGetPowerManagementDefaultLimit, 163, 1000)
PLAIN(nvmlDeviceGetEnforcedPowerLimit, 164, 1000)
PLAIN(nvmlDeviceGetPerformanceState, 190, 1)
PLAIN(nvmlDeviceGetFanSpeed, 191, 1)
PLAIN(nvmlDeviceGetPcieReplayCounter, 202, 1)
PLAIN(nvmlDeviceGetMaxPcieLinkGeneration, 235, 1)
PLAIN(nvmlDeviceGetMaxPcieLinkWidth, 236, 1)
PLAIN(nvmlDeviceGetCurrPcieLinkGeneration, 237, 1)
PLAIN(nvmlDeviceGetCurrPcieLinkWidth, 238, 1)
PLAIN(nvmlDeviceGetPersistenceMode, 66, 1)
PLAIN(nvmlDeviceGetRetiredPagesPendingStatus, 392, 1)
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

static const char *gpu_text(const struct call *c, uint16_t field)
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

/* By nvmlNvLinkErrorCounter_t (replay, recovery, flow control packets, data packets): fields of the links 0 to 17. */
ret_t nvmlDeviceGetNvLinkErrorCounter(device_t d, unsigned link, unsigned counter, unsigned long long *out)
{
    static const uint16_t first[4][4] = {
        {420, 463, 426, 487}, {430, 469, 436, 491}, {400, 451, 406, 481}, {410, 457, 416, 484}};
    double value;
    int64_t whole;
    if (link > 17 || counter > 3)
        return INVALID_ARGUMENT;
    unsigned block = link < 6 ? 0 : link < 12 ? 1 : link < 15 ? 2 : 3;
    ENTER(c, enter_gpu(&c, __func__, d));
    ret_t r = gpu_number(&c, (uint16_t)(first[counter][block] + link - (unsigned[]){0, 6, 12, 15}[block]), &value, &whole);
    if (r == OK)
        *out = (unsigned long long)whole;
    return leave(&c, r);
}

static ret_t clock_of(const char *function, device_t d, unsigned type, const uint16_t fields[4], unsigned *out)
{
    return type < 4 ? plain(function, d, fields[type], 1, 0, out) : INVALID_ARGUMENT;
}

ret_t nvmlDeviceGetClockInfo(device_t d, unsigned type, unsigned *out)
{
    return clock_of(__func__, d, type, (const uint16_t[]){100, 100, 101, 102}, out);
}

ret_t nvmlDeviceGetMaxClockInfo(device_t d, unsigned type, unsigned *out)
{
    return clock_of(__func__, d, type, (const uint16_t[]){113, 113, 114, 115}, out);
}

ret_t nvmlDeviceGetApplicationsClock(device_t d, unsigned type, unsigned *out)
{
    return clock_of(__func__, d, type, (const uint16_t[]){110, 110, 111, 0}, out);
}

ret_t nvmlDeviceGetTemperature(device_t d, unsigned sensor, unsigned *out)
{
    return sensor == 0 ? plain(__func__, d, 150, 1, 0, out) : INVALID_ARGUMENT;
}

ret_t nvmlDeviceGetTemperatureThreshold(device_t d, unsigned type, unsigned *out)
{
    const uint16_t fields[] = {159, 158, 151, 152};
    return type < 4 ? plain(__func__, d, fields[type], 1, 0, out) : INVALID_ARGUMENT;
}

struct margin { unsigned version; int margin; };

ret_t nvmlDeviceGetMarginTemperature(device_t d, struct margin *out)
{
    if (out->version != (sizeof *out | 1u << 24))
        return VERSION_MISMATCH;
    return plain(__func__, d, 153, 1, 0, (unsigned *)&out->margin);
}

ret_t nvmlDeviceGetPowerManagementLimitConstraints(device_t d, unsigned *low, unsigned *high)
{
    ret_t r = plain(__func__, d, 161, 1000, 0, low);
    return r == OK ? plain("", d, 162, 1000, 0, high) : r;
}

static ret_t long_plain(const char *function, device_t d, uint16_t field, unsigned long long *out)
{
    double value;
    int64_t whole;
    ENTER(c, enter_gpu(&c, function, d));
    ret_t r = gpu_number(&c, field, &value, &whole);
    if (r == OK)
        *out = (unsigned long long)whole;
    return leave(&c, r);
}

ret_t nvmlDeviceGetTotalEnergyConsumption(device_t d, unsigned long long *out) { return long_plain(__func__, d, 156, out); }
ret_t nvmlDeviceGetCurrentClocksThrottleReasons(device_t d, unsigned long long *out) { return long_plain(__func__, d, 112, out); }

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

/* The table has no processes: every list is empty. */
static ret_t no_processes(const char *function, device_t d, unsigned *count)
{
    ENTER(c, enter_device(&c, function, d));
    *count = 0;
    return leave(&c, OK);
}

ret_t nvmlDeviceGetComputeRunningProcesses_v3(device_t d, unsigned *count, void *out)
{
    (void)out;
    return no_processes(__func__, d, count);
}

ret_t nvmlDeviceGetGraphicsRunningProcesses_v3(device_t d, unsigned *count, void *out)
{
    (void)out;
    return no_processes(__func__, d, count);
}

ret_t nvmlDeviceGetMPSComputeRunningProcesses_v3(device_t d, unsigned *count, void *out)
{
    (void)out;
    return no_processes(__func__, d, count);
}

/* ---- field values ------------------------------------------------------------------------------------------------ */

struct field_value {
    unsigned id, scope;
    int64_t timestamp_us, latency_us;
    unsigned type;
    ret_t code;
    union { double d; unsigned ui; unsigned long long ull; } value;
};
_Static_assert(sizeof(struct field_value) == 40, "field value");

static const struct { uint16_t id, field, wide; } FIELD_VALUES[] = {
    {1, 300, 0}, {3, 310, 1}, {4, 311, 1}, {5, 312, 1}, {6, 313, 1}, {29, 390, 1}, {30, 391, 1}, {31, 392, 1},
    {38, 409, 1}, {45, 419, 1}, {52, 429, 1}, {59, 439, 1},
    {74, 240, 1}, {75, 241, 1}, {76, 242, 1}, {77, 243, 1}, {78, 244, 1}, {79, 245, 1}, {80, 246, 1}, {81, 247, 1},
    {82, 140, 0}, {83, 156, 1}, {94, 202, 0}, {142, 394, 0}, {143, 393, 0}, {144, 396, 0}, {145, 395, 0},
    {173, 1501, 0}, {186, 157, 0}, {230, 1523, 0}, {269, 1422, 1}, {270, 1423, 1}, {271, 1424, 1},
    {2, 301, 0}, {7, 314, 1}, {8, 315, 1}, {9, 316, 1}, {10, 317, 1}, {11, 318, 1}, {12, 319, 1},
    {13, 320, 1}, {14, 321, 1}, {15, 322, 1}, {16, 323, 1}, {17, 337, 1}, {18, 324, 1}, {19, 325, 1},
    {20, 326, 1}, {21, 327, 1}, {22, 328, 1}, {23, 329, 1}, {24, 330, 1}, {25, 331, 1}, {26, 332, 1},
    {27, 333, 1}, {28, 341, 1},
    {32, 400, 1}, {33, 401, 1}, {34, 402, 1}, {35, 403, 1}, {36, 404, 1}, {37, 405, 1}, {39, 410, 1},
    {40, 411, 1}, {41, 412, 1}, {42, 413, 1}, {43, 414, 1}, {44, 415, 1}, {46, 420, 1}, {47, 421, 1},
    {48, 422, 1}, {49, 423, 1}, {50, 424, 1}, {51, 425, 1}, {53, 430, 1}, {54, 431, 1}, {55, 432, 1},
    {56, 433, 1}, {57, 434, 1}, {58, 435, 1}, {96, 451, 1}, {97, 452, 1}, {98, 453, 1}, {99, 454, 1},
    {100, 455, 1}, {101, 456, 1}, {102, 457, 1}, {103, 458, 1}, {104, 459, 1}, {105, 460, 1}, {106, 461, 1},
    {107, 462, 1}, {108, 463, 1}, {109, 464, 1}, {110, 465, 1}, {111, 466, 1}, {112, 467, 1}, {113, 468, 1},
    {114, 469, 1}, {115, 470, 1}, {116, 471, 1}, {117, 472, 1}, {118, 473, 1}, {119, 474, 1},
    {170, 285, 1}, {171, 286, 1}, {172, 287, 1}, {231, 1400, 1}, {232, 1401, 1}, {233, 1402, 1}, {234, 1403, 1},
};

/* NVLink payload counters in KiB. They grow at the rate (MB/s as in DCGM) that the table has at the time of a read. */
static struct { char uuid[96]; double kib[2]; int64_t at[2]; } links[MAX_GPUS];

static ret_t link_counter(struct call *c, unsigned direction, struct field_value *v)
{
    double rate;
    int64_t whole;
    ret_t r = gpu_number(c, direction ? 897 : 843, &rate, &whole);
    if (r == NOT_SUPPORTED) {
        r = gpu_number(c, 449, &rate, &whole);
        rate = direction ? whole / 2 : whole - whole / 2;
    }
    if (r != OK)
        return r;
    unsigned position = 0;
    while (position < MAX_GPUS - 1 && links[position].uuid[0] && strcmp(links[position].uuid, c->gpu->uuid) != 0)
        position++;
    memcpy(links[position].uuid, c->gpu->uuid, sizeof links[position].uuid);
    if (links[position].at[direction])
        links[position].kib[direction] += rate * 1000 * (double)(v->timestamp_us - links[position].at[direction]) / 1e6;
    links[position].at[direction] = v->timestamp_us;
    v->type = 3;
    v->value.ull = (unsigned long long)llround(links[position].kib[direction]);
    return OK;
}

static ret_t field_value(struct call *c, struct field_value *v)
{
    double value;
    int64_t whole;
    v->timestamp_us = wall_us();
    v->latency_us = 0;
    v->value.ull = 0;
    if (v->id == 138 || v->id == 139) {
        pthread_mutex_lock(&links_lock);
        ret_t counted = v->scope == NO_ID ? link_counter(c, v->id - 138, v) : INVALID_ARGUMENT;
        pthread_mutex_unlock(&links_lock);
        return counted;
    }
    for (unsigned i = 0; i < sizeof FIELD_VALUES / sizeof FIELD_VALUES[0]; i++) {
        if (FIELD_VALUES[i].id != v->id)
            continue;
        ret_t r = gpu_number(c, FIELD_VALUES[i].field, &value, &whole);
        if (r == NOT_SUPPORTED && (v->id == 74 || v->id == 76)) /* two DCGM fields, one NVML counter */
            r = gpu_number(c, v->id == 74 ? 1420 : 1421, &value, &whole);
        v->type = FIELD_VALUES[i].wide ? 3 : 1;
        if (r == OK && v->id == 186)
            v->value.ui = (unsigned)llround(value * 1000);
        else if (r == OK && v->type == 3)
            v->value.ull = (unsigned long long)whole;
        else if (r == OK)
            v->value.ui = (unsigned)whole;
        return r;
    }
    return INVALID_ARGUMENT;
}

ret_t nvmlDeviceGetFieldValues(device_t d, int count, struct field_value *values)
{
    ENTER(c, enter_device(&c, __func__, d));
    if (count < 1)
        return leave(&c, INVALID_ARGUMENT);
    for (int i = 0; i < count; i++)
        values[i].code = c.instance ? NOT_SUPPORTED : field_value(&c, &values[i]);
    return leave(&c, OK);
}

/* ---- peer-to-peer ------------------------------------------------------------------------------------------------ */

/* The rule of docs/scenario.md, for NVLink; no other capability is known. */
ret_t nvmlDeviceGetP2PStatus(device_t d, device_t peer, unsigned capability, unsigned *out)
{
    struct call other;
    ENTER(c, enter_gpu(&c, __func__, d));
    other = c;
    ret_t r = capability == 2 ? resolve(&other, peer) : INVALID_ARGUMENT;
    if (r == OK)
        *out = strcmp(c.gpu->model, other.gpu->model) != 0 || c.gpu->mig == 1 || other.gpu->mig == 1 ? 2 : 0;
    return leave(&c, r);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

#define XID_EVENT 0x8ull

struct event_set {
    uint64_t seen; /* number of the last event before the set was created or that was returned */
    unsigned count;
    char uuids[MAX_GPUS][96];
};

struct event_data {
    device_t device;
    unsigned long long type, data;
    unsigned gi, ci;
};
_Static_assert(sizeof(struct event_data) == 32, "event data");

static uint64_t last_event(const struct table_view *t)
{
    uint32_t count = t->header->events.count;
    return count ? RECORDS(t, table_event, events)[count - 1].number : 0;
}

ret_t nvmlEventSetCreate(struct event_set **out)
{
    ENTER(c, enter(&c, __func__));
    *out = calloc(1, sizeof **out);
    if (*out)
        (*out)->seen = last_event(&c.t);
    return leave(&c, *out ? OK : NO_MEMORY);
}

ret_t nvmlEventSetFree(struct event_set *set)
{
    free(set);
    return OK;
}

ret_t nvmlDeviceGetSupportedEventTypes(device_t d, unsigned long long *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    *out = XID_EVENT;
    return leave(&c, OK);
}

ret_t nvmlDeviceRegisterEvents(device_t d, unsigned long long types, struct event_set *set)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    if (types != XID_EVENT || set->count == MAX_GPUS)
        return leave(&c, NOT_SUPPORTED);
    memcpy(set->uuids[set->count++], c.gpu->uuid, sizeof c.gpu->uuid);
    return leave(&c, OK);
}

static int registered(const struct event_set *set, const char *uuid)
{
    for (unsigned i = 0; i < set->count; i++)
        if (strcmp(set->uuids[i], uuid) == 0)
            return 1;
    return 0;
}

static void describe(const struct table_view *t, const struct table_event *event, const char *uuid, struct event_data *out)
{
    const struct table_instance *all = RECORDS(t, table_instance, instances);
    *out = (struct event_data){handle_for(uuid, NO_ID, -1, gpu_by_uuid(t, uuid)->identity), XID_EVENT,
                               (unsigned long long)event->value, NO_ID, NO_ID};
    for (uint32_t i = 0; i < t->header->instances.count; i++)
        if (all[i].kind == event->kind && all[i].entity_id == event->entity_id) {
            out->gi = all[i].gi;
            out->ci = all[i].ci < 0 ? NO_ID : (unsigned)all[i].ci;
        }
}

static int next_event(const struct table_view *t, struct event_set *set, struct event_data *out)
{
    const struct table_event *all = RECORDS(t, table_event, events);
    for (uint32_t i = 0; i < t->header->events.count; i++) {
        const struct table_device *gpu = table_device(t, all[i].gpu_id);
        if (all[i].number <= set->seen)
            continue;
        set->seen = all[i].number;
        if (all[i].field != 230 || !gpu || !registered(set, gpu->uuid))
            continue;
        describe(t, &all[i], gpu->uuid, out);
        return 1;
    }
    return 0;
}

ret_t nvmlEventSetWait_v2(struct event_set *set, struct event_data *out, unsigned timeout_ms)
{
    for (unsigned waited = 0;; waited += 10) {
        ENTER(c, enter_of(&c, __func__, set->count ? set->uuids[0] : NULL));
        int found = next_event(&c.t, set, out);
        leave(&c, OK);
        if (found)
            return OK;
        if (waited >= timeout_ms)
            return TIMEOUT;
        sleep_ms(10);
    }
}

#ifndef OLD_DRIVER

ret_t nvmlDeviceGetMemoryInfo_v2(device_t d, struct memory_v2 *out)
{
    if (out->version != (sizeof *out | 2u << 24))
        return VERSION_MISMATCH;
    ENTER(c, enter_device(&c, __func__, d));
    return leave(&c, memory_of(&c, out));
}

struct temperature { unsigned version, sensor; int temperature; };

ret_t nvmlDeviceGetTemperatureV(device_t d, struct temperature *out)
{
    if (out->version != (sizeof *out | 1u << 24))
        return VERSION_MISMATCH;
    return out->sensor == 0 ? plain(__func__, d, 150, 1, 0, (unsigned *)&out->temperature) : INVALID_ARGUMENT;
}

ret_t nvmlDeviceGetCurrentClocksEventReasons(device_t d, unsigned long long *out) { return long_plain(__func__, d, 112, out); }

/* ---- GPM --------------------------------------------------------------------------------------------------------- */

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

static void gpm_metric(struct call *c, const struct gpm_request *request, struct gpm_metric *metric)
{
    double scale, value;
    int64_t whole;
    uint16_t field = gpm_field(metric->id, &scale);
    metric->value = NAN;
    metric->code = field ? number(&c->t, request->newer->kind, request->newer->entity, field, &value, &whole)
                         : INVALID_ARGUMENT;
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
