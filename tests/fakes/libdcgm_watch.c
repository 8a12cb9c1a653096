/* Watches: one per connection, entity and field, as in 4.6.0 (measured). See libdcgm.h. */
#include "libdcgm.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1 << 16 };

static struct watch *watches;
static uint32_t watch_count, watch_capacity;
static uint32_t buckets[BUCKETS]; /* a hash table: position in watches, plus 1 */

static uint32_t bucket_of(handle_t handle, uint32_t kind, uint32_t id, uint32_t field)
{
    uint64_t mixed = (uint64_t)handle * 0x9e3779b97f4a7c15u ^ ((uint64_t)kind << 48 | (uint64_t)id << 16 | field);
    mixed *= 0xff51afd7ed558ccdu;
    return (uint32_t)(mixed >> 40) % BUCKETS;
}

static uint32_t probe(handle_t handle, uint32_t kind, uint32_t id, uint32_t field)
{
    uint32_t bucket = bucket_of(handle, kind, id, field);
    while (buckets[bucket]) {
        const struct watch *watch = &watches[buckets[bucket] - 1];
        if (watch->handle == handle && watch->kind == kind && watch->id == id && watch->field == field)
            break;
        bucket = (bucket + 1) % BUCKETS;
    }
    return bucket;
}

struct watch *find_watch(handle_t handle, uint32_t kind, uint32_t id, uint32_t field)
{
    uint32_t entry = buckets[probe(handle, kind, id, field)];
    return entry && watches[entry - 1].active ? &watches[entry - 1] : NULL;
}

static struct watch *make_watch(handle_t handle, uint32_t kind, uint32_t id, uint32_t field)
{
    uint32_t bucket = probe(handle, kind, id, field);
    if (buckets[bucket])
        return &watches[buckets[bucket] - 1];
    if (watch_count == BUCKETS / 2)
        return NULL;
    if (watch_count == watch_capacity) {
        uint32_t capacity = watch_capacity ? watch_capacity * 2 : 1024;
        struct watch *larger = realloc(watches, capacity * sizeof *larger);
        if (!larger)
            return NULL;
        watches = larger;
        watch_capacity = capacity;
    }
    watches[watch_count] = (struct watch){.handle = handle, .kind = kind, .id = id, .field = field};
    buckets[bucket] = ++watch_count;
    return &watches[watch_count - 1];
}

void forget_watches(handle_t handle)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < watch_count; i++)
        if (watches[i].handle != handle)
            watches[kept++] = watches[i];
    watch_count = kept;
    memset(buckets, 0, sizeof buckets);
    for (uint32_t i = 0; i < kept; i++)
        buckets[probe(watches[i].handle, watches[i].kind, watches[i].id, watches[i].field)] = i + 1;
}

static status_t watch_field(const struct table_view *view, handle_t handle, struct entity entity, uint32_t number)
{
    const struct table_field *field = table_field(view, number);
    struct entity key = field->mig == MIG_SYSTEM ? (struct entity){KIND_NONE, 0} : entity;
    uint64_t identity = identity_of(view, key.kind, key.id);
    struct watch *watch = identity ? make_watch(handle, key.kind, key.id, number) : NULL;
    if (!watch)
        return identity ? ST_MEMORY : ST_BADPARAM;
    watch->active = 1;
    watch->has_last = 0;
    watch->identity = identity;
    watched_sample(view, handle, entity, field);
    return ST_OK;
}

static void unwatch_field(const struct table_view *view, handle_t handle, struct entity entity, uint32_t number)
{
    const struct table_field *field = table_field(view, number);
    int system = field && field->mig == MIG_SYSTEM;
    struct watch *watch = find_watch(handle, system ? KIND_NONE : entity.kind, system ? 0 : entity.id, number);
    if (watch)
        watch->active = 0;
}

/* Watches or unwatches every field of every entity; the first failure ends it. */
static status_t each_field(const struct table_view *view, handle_t handle, uint32_t group_id, uint32_t fields_id,
                           int on)
{
    static struct entity entities[MAX_DEVICES * 17 + MAX_ENTITIES];
    const struct field_group *fields = find_field_group(fields_id);
    status_t status = ST_OK;
    if (!is_group(group_id))
        return ST_NOT_CONFIGURED;
    if (!fields)
        return ST_NO_DATA;
    uint32_t count = members(view, group_id, entities);
    for (uint32_t i = 0; i < count && status == ST_OK; i++)
        for (uint32_t j = 0; j < fields->count && status == ST_OK; j++) {
            if (on)
                status = watch_field(view, handle, entities[i], fields->fields[j]);
            else
                unwatch_field(view, handle, entities[i], fields->fields[j]);
        }
    return status;
}

/* When one watch fails, all of the call are undone (4.6.0, source).
 * 4.6.0: accepts an interval, a time and a number of samples that are 0 or negative. */
API status_t dcgmWatchFields(handle_t handle, uintptr_t group, uintptr_t fields, long long every_us, double keep_s,
                             int keep_samples)
{
    struct table_view view;
    if (every_us <= 0 || keep_s < 0 || keep_samples < 0)
        return ST_BADPARAM;
    status_t status = enter("dcgmWatchFields", handle, &view);
    if (status != ST_OK)
        return status;
    status = each_field(&view, handle, (uint32_t)group, (uint32_t)fields, 1);
    if (status != ST_OK)
        each_field(&view, handle, (uint32_t)group, (uint32_t)fields, 0);
    return leave(&view, status);
}

/* 4.6.0: -16 when one of the fields is not watched, but the others are unwatched all the same. */
API status_t dcgmUnwatchFields(handle_t handle, uintptr_t group, uintptr_t fields)
{
    struct table_view view;
    status_t status = enter("dcgmUnwatchFields", handle, &view);
    if (status != ST_OK)
        return status;
    return leave(&view, each_field(&view, handle, (uint32_t)group, (uint32_t)fields, 0));
}

API status_t dcgmUpdateAllFields(handle_t handle, int wait)
{
    struct table_view view;
    (void)wait;
    status_t status = enter("dcgmUpdateAllFields", handle, &view);
    return status == ST_OK ? leave(&view, ST_OK) : status;
}
