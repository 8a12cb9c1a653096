/* The events of the fake libnvidia-ml that concern the system: the driver is unbound from a GPU, or bound to it.
 *
 * An old driver has none of these functions (-DOLD_DRIVER). Only what happens after the registration is
 * reported (NVML reference). Record layouts are those of nvml.h as pynvml declares them.
 */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#include <stdlib.h>
#include <time.h>

#ifndef OLD_DRIVER

#define UNBIND 1ull
#define BIND 2ull
#define VERSION_1_OF(type) ((unsigned)sizeof(type) | 1u << 24)

struct system_event_set {
    unsigned long long types;
    uint32_t unbinds, binds; /* that were reported, or happened before the registration */
};

struct set_request { unsigned version; struct system_event_set *set; };
struct register_request { unsigned version; unsigned long long types; struct system_event_set *set; };
struct system_event { unsigned long long type; unsigned gpu_id; };
struct wait_request {
    unsigned version, timeout_ms;
    struct system_event_set *set;
    struct system_event *events;
    unsigned room, count;
};
_Static_assert(sizeof(struct set_request) == 16 && sizeof(struct register_request) == 24, "set and registration");
_Static_assert(sizeof(struct wait_request) == 32 && sizeof(struct system_event) == 16, "wait and event");

ret_t nvmlSystemEventSetCreate(struct set_request *request)
{
    struct table_view t;
    if (request->version != VERSION_1_OF(*request))
        return VERSION_MISMATCH;
    ret_t code = nvml_enter(__func__, &t);
    if (code != OK)
        return code;
    table_close(&t);
    request->set = calloc(1, sizeof *request->set);
    return request->set ? OK : NO_MEMORY;
}

ret_t nvmlSystemEventSetFree(struct set_request *request)
{
    if (request->version != VERSION_1_OF(*request))
        return VERSION_MISMATCH;
    free(request->set);
    return OK;
}

ret_t nvmlSystemRegisterEvents(struct register_request *request)
{
    struct table_view t;
    if (request->version != VERSION_1_OF(*request))
        return VERSION_MISMATCH;
    ret_t code = nvml_enter(__func__, &t);
    if (code != OK)
        return code;
    int known = request->types && !(request->types & ~(UNBIND | BIND));
    if (known)
        *request->set = (struct system_event_set){request->types, t.header->unbinds, t.header->binds};
    table_close(&t);
    return known ? OK : INVALID_ARGUMENT;
}

static void report(struct wait_request *request, uint32_t *reported, uint32_t happened, unsigned long long type)
{
    for (; *reported < happened; ++*reported)
        if (request->set->types & type) {
            if (request->count < request->room)
                request->events[request->count] = (struct system_event){type, 0};
            request->count++;
        }
}

static ret_t report_new(struct wait_request *request)
{
    struct table_view t;
    ret_t code = nvml_enter("nvmlSystemEventSetWait", &t);
    if (code != OK)
        return code;
    request->count = 0;
    report(request, &request->set->unbinds, t.header->unbinds, UNBIND);
    report(request, &request->set->binds, t.header->binds, BIND);
    table_close(&t);
    return request->count > request->room ? INSUFFICIENT_SIZE : request->count ? OK : TIMEOUT;
}

ret_t nvmlSystemEventSetWait(struct wait_request *request)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000000L};
    if (request->version != VERSION_1_OF(*request))
        return VERSION_MISMATCH;
    for (unsigned waited = 0;; waited += 10) {
        ret_t code = report_new(request);
        if (code != TIMEOUT || waited >= request->timeout_ms)
            return code;
        nanosleep(&pause, NULL);
    }
}

#endif
