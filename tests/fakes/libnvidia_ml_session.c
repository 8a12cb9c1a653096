/* The session of the fake libnvidia-ml, its handles, and how each call begins and ends. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"
#include "open_gpus.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HANDLES 4096

static unsigned initialized, session;
static struct nvml_device handles[MAX_HANDLES];
static unsigned handle_count;
char gpus[MAX_GPUS][96];
unsigned gpu_count;

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
static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;

device_t handle_for(const char *uuid, uint32_t gi, int32_t ci, uint64_t identity)
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

ret_t enter_of(struct call *c, const char *function, const char *uuid)
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

ret_t enter(struct call *c, const char *function)
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

ret_t enter_entity(struct call *c, const char *function, uint32_t kind, uint32_t id)
{
    struct table_entity entity = {kind, id};
    ret_t r = enter(c, function);
    if (r != OK)
        return r;
    int status = table_fault_about(&c->t, function, &entity, 1, NULL, 0);
    return status > 0 ? leave(c, status) : OK;
}

/* A GPU that has fallen off the bus, or that has no driver any more: its handles are dead. */
int is_gone(const struct table_device *gpu)
{
    return !gpu || gpu->status == STATE_LOST || gpu->status == STATE_DETACHED;
}

ret_t resolve(struct call *c, device_t d)
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

ret_t enter_device(struct call *c, const char *function, device_t d)
{
    ret_t r = enter_of(c, function, is_handle(d) ? d->uuid : NULL);
    if (r != OK)
        return r;
    r = resolve(c, d);
    if (r != OK)
        table_close(&c->t);
    return r;
}

ret_t enter_gpu(struct call *c, const char *function, device_t d)
{
    ret_t r = enter_device(c, function, d);
    if (r == OK && c->instance) {
        table_close(&c->t);
        return NOT_SUPPORTED;
    }
    return r;
}

ret_t leave(struct call *c, ret_t r)
{
    table_close(&c->t);
    return r;
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
