/* XIDs of the fake libnvidia-ml. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#include <stdlib.h>
#include <string.h>

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
