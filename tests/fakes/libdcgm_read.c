/* Reads: the last sample of watched fields, or what the driver gives now. See libdcgm.h. */
#include "libdcgm.h"

#include <stdlib.h>
#include <string.h>

/* Only the header and the bytes of the value are written, so a reused buffer keeps its old bytes behind them, as with
 * 4.6.0 (measured). */
static void put_value(union value *into, const struct table_sample *sample)
{
    if (sample->type == 's')
        memcpy(into->str, sample->text, strlen(sample->text) + 1);
    else
        memcpy(into, &sample->value, sizeof sample->value);
}

static void put_v2(struct value_v2 *into, const struct table_sample *sample)
{
    into->version = VERSION_OF(struct value_v2, 2);
    into->kind = sample->kind;
    into->entity_id = sample->entity_id;
    into->field = sample->field;
    into->type = sample->type;
    into->status = sample->status;
    into->timestamp = sample->timestamp_us;
    put_value(&into->value, sample);
}

static void put_v1(struct value_v1 *into, const struct table_sample *sample)
{
    memset(into, 0, sizeof *into);
    into->version = VERSION_OF(struct value_v1, 1);
    into->field = sample->field;
    into->type = sample->type;
    into->status = sample->status;
    into->timestamp = sample->timestamp_us;
    put_value(&into->value, sample);
}

/* The bytes of a record in the engine's answer. */
static size_t answer_bytes(const struct table_sample *sample)
{
    return 24 + (sample->type == 's' ? strlen(sample->text) + 1 : 8);
}

/* Both ends of what fits are known: 130,688 numbers or 119,552 texts of 11 bytes (4.6.0, measured). */
static int fits(const struct table_view *view, const struct table_entity *entities, uint32_t entity_count,
                const uint16_t *fields, uint32_t field_count, int live)
{
    enum { ANSWER = 4185000, FEWEST = ANSWER / (24 + TEXT) };
    size_t bytes = 0;
    if ((size_t)entity_count * field_count <= FEWEST)
        return 1;
    for (uint32_t i = 0; i < entity_count && bytes <= ANSWER; i++)
        for (uint32_t j = 0; j < field_count; j++) {
            struct table_sample sample = live ? live_sample(view, entities[i], fields[j])
                                              : cached_sample(view, entities[i], table_field(view, fields[j]));
            bytes += answer_bytes(&sample);
        }
    return bytes <= ANSWER;
}

/* An unknown field fails a cached read, an event field a live one; a live read of a profiling field ends the engine
 * (4.6.0, measured). */
static status_t check_fields(const struct table_view *view, const uint16_t *fields, uint32_t count, int live)
{
    status_t status = ST_OK;
    for (uint32_t i = 0; i < count; i++) {
        const struct table_field *field = table_field(view, fields[i]);
        if (live && field && field->profiling)
            abort();
        if (live ? field && field->event : !field)
            status = ST_GENERIC_ERROR;
    }
    return status;
}

/* Entity by entity, but with fields that map to an NVML field last (4.6.0, measured). */
static void read_live(const struct table_view *view, struct table_entity entity, const uint16_t *fields, uint32_t count,
                      struct value_v2 *values)
{
    for (int of_nvml = 0; of_nvml <= 1; of_nvml++)
        for (uint32_t j = 0; j < count; j++)
            if (is_nvml_field(fields[j]) == of_nvml) {
                struct table_sample sample = live_sample(view, entity, fields[j]);
                put_v2(values++, &sample);
            }
}

static void read_cached(const struct table_view *view, struct table_entity entity, const uint16_t *fields,
                        uint32_t count, struct value_v2 *values)
{
    for (uint32_t j = 0; j < count; j++) {
        struct table_sample sample = cached_sample(view, entity, table_field(view, fields[j]));
        put_v2(values++, &sample);
    }
}

API status_t dcgmEntitiesGetLatestValues(handle_t handle, const struct table_entity *entities, uint32_t entity_count,
                                         const uint16_t *fields, uint32_t field_count, uint32_t flags,
                                         struct value_v2 *values)
{
    static const char name[] = "dcgmEntitiesGetLatestValues";
    struct table_view view;
    int live = (flags & FV_LIVE) != 0;
    if (!entities || entity_count < 1 || entity_count > MAX_ENTITIES || !fields || field_count < 1 ||
        field_count > MAX_FIELDS || !values)
        return ST_BADPARAM;
    status_t status = enter(name, handle, &view);
    if (status != ST_OK)
        return status;
    status = table_fault_about(&view, name, entities, entity_count, fields, field_count);
    if (status == ST_OK)
        status = check_fields(&view, fields, field_count, live);
    if (status == ST_OK && !fits(&view, entities, entity_count, fields, field_count, live))
        status = ST_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < entity_count && status == ST_OK; i++)
        (live ? read_live : read_cached)(&view, entities[i], fields, field_count, values + (size_t)i * field_count);
    return leave(&view, status);
}

typedef int (*take_value)(uint32_t kind, uint32_t entity_id, struct value_v1 *values, int count, void *user);

struct since {
    int64_t from;
    int64_t newest;
    take_value take;
    void *user;
};

static int hand_over(struct since *since, const struct table_sample *sample)
{
    struct value_v1 value;
    if (sample->timestamp_us < since->from || (sample->status != ST_OK && sample->timestamp_us == 0))
        return 0;
    if (sample->timestamp_us > since->newest)
        since->newest = sample->timestamp_us;
    put_v1(&value, sample);
    return since->take(sample->kind, sample->entity_id, &value, 1, since->user);
}

static int field_since(const struct table_view *view, struct table_entity entity, const struct table_field *field,
                       struct since *since)
{
    struct table_sample sample = cached_sample(view, entity, field);
    uint32_t count;
    int stop = 0;
    const struct table_event *event = table_events(view, &count);
    if (sample.status == ST_NOT_WATCHED)
        return 0;
    if (!field->event)
        return hand_over(since, &sample);
    for (uint32_t i = 0; i < count && !stop; i++)
        if (event[i].kind == entity.kind && event[i].entity_id == entity.id && event[i].field == field->id) {
            sample.status = ST_OK;
            sample.timestamp_us = event[i].timestamp_us;
            sample.value.i64 = event[i].value;
            stop = hand_over(since, &sample);
        }
    return stop;
}

API status_t dcgmGetValuesSince_v2(handle_t handle, uintptr_t group, uintptr_t fields, long long from, long long *next,
                                   take_value take, void *user)
{
    static struct table_entity entities[MAX_DEVICES * 17 + MAX_ENTITIES];
    struct table_view view;
    struct since since = {.from = from, .newest = from - 1, .take = take, .user = user};
    if (!next || !take)
        return ST_BADPARAM;
    status_t status = enter("dcgmGetValuesSince_v2", handle, &view);
    if (status != ST_OK)
        return status;
    const struct field_group *wanted = find_field_group((uint32_t)fields);
    uint32_t count = members(&view, (uint32_t)group, entities);
    if (!wanted)
        return leave(&view, ST_NO_DATA);
    int stop = 0;
    for (uint32_t i = 0; i < count && !stop; i++)
        for (uint32_t j = 0; j < wanted->count && !stop; j++)
            stop = field_since(&view, entities[i], table_field(&view, wanted->fields[j]), &since);
    *next = since.newest + 1;
    return leave(&view, ST_OK);
}
