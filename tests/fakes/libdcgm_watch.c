/* Watches, one for each connection, entity and field (4.6.0, measured), and the samples that they leave. See libdcgm.h. */
#include "libdcgm.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1 << 16 };

static struct watch *watches;
static uint32_t watch_count, watch_capacity;
static uint32_t buckets[BUCKETS]; /* a hash table: position in watches, plus 1 */

static uint32_t bucket_of(uint32_t kind, uint32_t id, uint32_t field)
{
    uint64_t mixed = ((uint64_t)kind << 48 | (uint64_t)id << 16 | field) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 29) * 0xff51afd7ed558ccdu;
    return (uint32_t)(mixed >> 40) % BUCKETS;
}

static uint32_t probe(uint32_t kind, uint32_t id, uint32_t field)
{
    uint32_t bucket = bucket_of(kind, id, field);
    while (buckets[bucket]) {
        const struct watch *watch = &watches[buckets[bucket] - 1];
        if (watch->kind == kind && watch->id == id && watch->field == field)
            break;
        bucket = (bucket + 1) % BUCKETS;
    }
    return bucket;
}

static struct watch *find_watch(uint32_t kind, uint32_t id, uint32_t field)
{
    uint32_t entry = buckets[probe(kind, id, field)];
    return entry ? &watches[entry - 1] : NULL;
}

static struct watch *make_watch(uint32_t kind, uint32_t id, uint32_t field)
{
    uint32_t bucket = probe(kind, id, field);
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
    watches[watch_count] = (struct watch){.kind = kind, .id = id, .field = field};
    buckets[bucket] = ++watch_count;
    return &watches[watch_count - 1];
}

/* The connection watches nothing any more; what was sampled stays. */
void forget_watches(handle_t handle)
{
    int slot = slot_of(handle);
    for (uint32_t i = 0; i < watch_count && slot >= 0; i++)
        watches[i].watchers &= ~(1ull << slot);
}

void forget_samples(void)
{
    watch_count = 0;
    memset(buckets, 0, sizeof buckets);
}

static struct table_entity key_of(struct table_entity entity, const struct table_field *field)
{
    return field->mig == MIG_SYSTEM ? (struct table_entity){KIND_NONE, 0} : entity;
}

static void sample_now(const struct table_view *view, struct watch *watch, const struct table_field *field)
{
    struct table_entity entity = {watch->kind, watch->id};
    current_sample(view, entity, field, &watch->last);
    if (view->header->now_us < watch->profiled_from)
        put_blank(&watch->last, entity, field, ST_OK, view->header->now_us, 0);
    watch->has_last = 1;
}

/* What the engine has sampled last. It samples what any connection watches: not an entity that is gone or lost (but
 * events come from the driver by themselves, and a lost GPU still has the XID that it was lost with), nor one whose id
 * means another device now. Then the last sample stays for good, with its timestamp and status OK; -16 comes only where
 * nothing was ever sampled (4.6.0, measured). */
struct table_sample cached_sample(const struct table_view *view, struct table_entity entity,
                                  const struct table_field *field)
{
    struct table_sample sample;
    struct table_entity key = key_of(entity, field);
    struct watch *watch = find_watch(key.kind, key.id, field->id);
    if (watch && watch->watchers && identity_of(view, key.kind, key.id) == watch->identity &&
        (updated(view, key) || field->event))
        sample_now(view, watch, field);
    if (!watch || !watch->has_last) {
        put_blank(&sample, entity, field, ST_NOT_WATCHED, 0, 0);
        return sample;
    }
    sample = watch->last;
    sample.kind = entity.kind;
    sample.entity_id = entity.id;
    return sample;
}

/* A GPU without GPM needs the profiling module; an engine without it rejects the watch (4.6.0, measured). */
static int can_profile(const struct table_view *view, struct table_entity entity)
{
    const struct table_device *gpu = gpu_of(view, entity);
    return !gpu || gpu->architecture == 0 || gpu->architecture >= HOPPER || view->header->profiling_module;
}

/* A profiling field is blank until one interval after its first watch (4.6.0, measured). */
static status_t watch_field(const struct table_view *view, handle_t handle, struct table_entity entity, uint32_t number,
                            int64_t every_us)
{
    const struct table_field *field = table_field(view, number);
    struct table_entity key = key_of(entity, field);
    uint64_t identity = identity_of(view, key.kind, key.id);
    if (field->profiling && !can_profile(view, entity))
        return ST_MODULE_NOT_LOADED;
    struct watch *watch = identity ? make_watch(key.kind, key.id, number) : NULL;
    if (!watch)
        return identity ? ST_MEMORY : ST_BADPARAM;
    int first = !watch->watchers || watch->identity != identity;
    if (first && field->profiling)
        watch->profiled_from = view->header->now_us + every_us;
    if (watch->identity != identity)
        watch->has_last = 0;
    watch->identity = identity;
    watch->watchers |= 1ull << slot_of(handle);
    return ST_OK;
}

/* -16 where the connection does not watch it. A field of the node gives -16 too, although its watch ends (4.6.0,
 * measured). */
static status_t unwatch_field(const struct table_view *view, handle_t handle, struct table_entity entity,
                              uint32_t number, int sampled)
{
    const struct table_field *field = table_field(view, number);
    struct table_entity key = field ? key_of(entity, field) : entity;
    struct watch *watch = find_watch(key.kind, key.id, number);
    uint64_t bit = 1ull << slot_of(handle);
    if (!field || !watch || !(watch->watchers & bit))
        return ST_NOT_WATCHED;
    if (sampled)
        cached_sample(view, entity, field); /* the last time */
    watch->watchers &= ~bit;
    return field->mig == MIG_SYSTEM ? ST_NOT_WATCHED : ST_OK;
}

static void note(struct group *group, const struct field_group *fields, int on)
{
    for (uint32_t j = 0; group && j < fields->count; j++) {
        uint8_t bit = (uint8_t)(1u << fields->fields[j] % 8), *byte = &group->watched[fields->fields[j] / 8];
        *byte = (uint8_t)(on ? *byte | bit : *byte & ~bit);
    }
}

/* A group that is destroyed ends the watches that were made with it (4.6.0, measured). */
void unwatch_group(const struct table_view *view, handle_t handle, struct group *group)
{
    for (uint32_t number = 0; number < 1u << 16; number++)
        if (group->watched[number / 8] & 1u << number % 8)
            for (uint32_t i = 0; i < group->count; i++)
                unwatch_field(view, handle, group->entities[i], number, 1);
}

/* The entities and fields of two groups; OK, or the status where there is no such group. */
struct watched {
    const struct table_entity *entities;
    uint32_t count;
    const struct field_group *fields;
};

static status_t find_groups(const struct table_view *view, uintptr_t group, uintptr_t fields, struct watched *found)
{
    static struct table_entity entities[MAX_DEVICES * 17 + MAX_ENTITIES];
    found->entities = entities;
    found->fields = find_field_group((uint32_t)fields);
    if (!is_group((uint32_t)group))
        return ST_NOT_CONFIGURED;
    found->count = members(view, (uint32_t)group, entities);
    return found->fields ? ST_OK : ST_NO_DATA;
}

static status_t unwatch_all(const struct table_view *view, handle_t handle, const struct watched *watched, int sampled)
{
    status_t status = ST_OK;
    for (uint32_t i = 0; i < watched->count; i++)
        for (uint32_t j = 0; j < watched->fields->count; j++)
            if (unwatch_field(view, handle, watched->entities[i], watched->fields->fields[j], sampled) != ST_OK)
                status = ST_NOT_WATCHED;
    return status;
}

/* The engine reads watched fields once before dcgmWatchFields returns (4.6.0, measured). */
static status_t watch_all(const struct table_view *view, handle_t handle, const struct watched *watched,
                          int64_t every_us)
{
    const struct field_group *fields = watched->fields;
    status_t status = table_fault_about(view, "dcgmWatchFields", watched->entities, watched->count, fields->fields,
                                        fields->count);
    for (uint32_t i = 0; i < watched->count && status == ST_OK; i++)
        for (uint32_t j = 0; j < fields->count && status == ST_OK; j++)
            status = watch_field(view, handle, watched->entities[i], fields->fields[j], every_us);
    if (status != ST_OK)
        unwatch_all(view, handle, watched, 0); /* one that fails undoes all of the call (4.6.0, source) */
    for (uint32_t i = 0; i < watched->count && status == ST_OK; i++)
        for (uint32_t j = 0; j < fields->count; j++)
            cached_sample(view, watched->entities[i], table_field(view, fields->fields[j]));
    return status;
}

/* An interval, a time and a number of samples that are 0 or negative are accepted (4.6.0, measured). */
API status_t dcgmWatchFields(handle_t handle, uintptr_t group, uintptr_t fields, long long every_us, double keep_s,
                             int keep_samples)
{
    struct table_view view;
    struct watched watched;
    (void)keep_s, (void)keep_samples;
    status_t status = enter("dcgmWatchFields", handle, &view);
    if (status != ST_OK)
        return status;
    status = find_groups(&view, group, fields, &watched);
    if (status == ST_OK)
        status = watch_all(&view, handle, &watched, every_us);
    if (status == ST_OK)
        note(find_group((uint32_t)group), watched.fields, 1);
    return leave(&view, status);
}

API status_t dcgmUnwatchFields(handle_t handle, uintptr_t group, uintptr_t fields)
{
    struct table_view view;
    struct watched watched;
    status_t status = enter("dcgmUnwatchFields", handle, &view);
    if (status != ST_OK)
        return status;
    status = find_groups(&view, group, fields, &watched);
    if (status == ST_OK) {
        note(find_group((uint32_t)group), watched.fields, 0);
        status = unwatch_all(&view, handle, &watched, 1);
    }
    return leave(&view, status);
}

API status_t dcgmUpdateAllFields(handle_t handle, int wait)
{
    struct table_view view;
    (void)wait;
    status_t status = enter("dcgmUpdateAllFields", handle, &view);
    return status == ST_OK ? leave(&view, ST_OK) : status;
}
