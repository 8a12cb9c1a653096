/* Values: the last one of a watch, or what the driver gives now. See libdcgm.h. */
#include "libdcgm.h"

#include <string.h>

/* A blank value of the field's type: the lowest one (step 0) or one of the three above it. */
static void put_blank(struct table_sample *sample, struct entity entity, const struct table_field *field,
                      int32_t status, int64_t timestamp, int step)
{
    static const char *const texts[] = {"<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>"};
    memset(sample, 0, sizeof *sample);
    sample->kind = entity.kind;
    sample->entity_id = entity.id;
    sample->field = (uint16_t)field->id;
    sample->type = (uint16_t)field->type;
    sample->status = status;
    sample->timestamp_us = timestamp;
    if (field->type == 'i')
        sample->value.i64 = BLANK_I64 + step;
    else if (field->type == 'd')
        sample->value.dbl = BLANK_DBL + step;
    else
        strcpy(sample->text, texts[step]);
}

/* The entity whose value is given for this one, by the field's level. */
static struct entity entity_of_value(const struct table_view *view, struct entity entity,
                                     const struct table_field *field)
{
    uint32_t count;
    const struct table_device *devices = table_devices(view, &count);
    if (field->mig == MIG_SYSTEM)
        return (struct entity){KIND_GPU, count ? devices[0].gpu_id : 0};
    if (field->mig != MIG_PARENT || entity.kind == KIND_GPU)
        return entity;
    const struct table_instance *instance = table_instance(view, entity.kind, entity.id);
    return instance ? (struct entity){KIND_GPU, instance->gpu_id} : entity;
}

void current_sample(const struct table_view *view, struct entity entity, const struct table_field *field,
                    struct table_sample *sample)
{
    struct entity source = entity_of_value(view, entity, field);
    const struct table_sample *found = table_sample(view, source.kind, source.id, field->id);
    int64_t now = view->header->now_us;
    if ((field->mig == MIG_BLANK && entity.kind != KIND_GPU) || (field->mig == MIG_GI_ONLY && entity.kind == KIND_CI))
        put_blank(sample, entity, field, ST_OK, now, 0);
    else if (found)
        *sample = *found;
    else if (field->event)
        put_blank(sample, entity, field, ST_NO_DATA, 0, 0);
    else
        put_blank(sample, entity, field, ST_OK, now, 2);
    sample->kind = entity.kind;
    sample->entity_id = entity.id;
}

/* A watch whose entity is gone, or whose id now means another device, keeps its last value and timestamp for good
 * (4.6.0, source). 4.6.0: so does an unwatched field; -16 comes only where no value was ever read. */
struct table_sample watched_sample(const struct table_view *view, handle_t handle, struct entity entity,
                                   const struct table_field *field)
{
    struct table_sample sample;
    int system = field->mig == MIG_SYSTEM;
    struct watch *watch = find_watch(handle, system ? KIND_NONE : entity.kind, system ? 0 : entity.id, field->id);
    if (watch && identity_of(view, watch->kind, watch->id) == watch->identity) {
        current_sample(view, entity, field, &watch->last);
        watch->has_last = 1;
    }
    if (watch && watch->has_last) {
        sample = watch->last;
        sample.kind = entity.kind;
        sample.entity_id = entity.id;
    } else
        put_blank(&sample, entity, field, ST_NOT_WATCHED, 0, 0);
    return sample;
}

/* 4.6.0: an unknown entity gives type i, value 0 and status -1; a profiling field crashes the engine; an event field
 * fails the whole call with -3; all values of a lost GPU are blank with status OK, its UUID included; field 203 of a
 * GPU instance is a blank for not supported; a GPU's field, read of the node, is that of GPU 0. */
static struct table_sample live_sample(const struct table_view *view, struct entity entity,
                                       const struct table_field *field)
{
    struct table_sample sample;
    if (field->mig == MIG_SYSTEM || identity_of(view, entity.kind, entity.id))
        current_sample(view, entity, field, &sample);
    else
        put_blank(&sample, entity, field, ST_BADPARAM, 0, 0);
    return sample;
}

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

/* Watched values come entity by entity, live ones field by field, so that nobody relies on one order.
 * 4.6.0: live values come entity by entity too, but fields that map to an NVML field last; a live read of an unknown
 * field succeeds, with status -13 in its record. */
API status_t dcgmEntitiesGetLatestValues(handle_t handle, const struct entity *entities, uint32_t entity_count,
                                         const uint16_t *fields, uint32_t field_count, uint32_t flags,
                                         struct value_v2 *values)
{
    struct table_view view;
    if (!entities || entity_count < 1 || entity_count > MAX_ENTITIES || !fields || field_count < 1 ||
        field_count > MAX_FIELDS || !values)
        return ST_BADPARAM;
    status_t status = enter("dcgmEntitiesGetLatestValues", handle, &view);
    if (status != ST_OK)
        return status;
    for (uint32_t j = 0; j < field_count; j++)
        if (!table_field(&view, fields[j]))
            return leave(&view, ST_GENERIC_ERROR);
    for (uint32_t i = 0; i < entity_count; i++)
        for (uint32_t j = 0; j < field_count; j++) {
            const struct table_field *field = table_field(&view, fields[j]);
            int live = (flags & FV_LIVE) != 0;
            struct table_sample sample =
                live ? live_sample(&view, entities[i], field) : watched_sample(&view, handle, entities[i], field);
            put_v2(&values[live ? j * entity_count + i : i * field_count + j], &sample);
        }
    return leave(&view, ST_OK);
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

static int field_since(const struct table_view *view, handle_t handle, struct entity entity,
                       const struct table_field *field, struct since *since)
{
    struct table_sample sample = watched_sample(view, handle, entity, field);
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
    static struct entity entities[MAX_DEVICES * 17 + MAX_ENTITIES];
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
            stop = field_since(&view, handle, entities[i], table_field(&view, wanted->fields[j]), &since);
    *next = since.newest + 1;
    return leave(&view, ST_OK);
}
