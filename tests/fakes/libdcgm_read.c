/* Values: what a watched pair gives, and what the driver gives now. See libdcgm.h. */
#include "libdcgm.h"

#include <string.h>

/* A value that is not there: a blank of the field's type (step 0), or one of the sentinels after it. */
static void miss(struct table_cell *cell, struct entity entity, const struct table_field *field, int32_t status,
                 int64_t timestamp, int step)
{
    static const char *const texts[] = {"<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>"};
    memset(cell, 0, sizeof *cell);
    cell->kind = entity.kind;
    cell->entity_id = entity.id;
    cell->field = (uint16_t)field->id;
    cell->type = (uint16_t)field->type;
    cell->status = status;
    cell->timestamp_us = timestamp;
    if (field->type == 'i')
        cell->value.i64 = BLANK_I64 + step;
    else if (field->type == 'd')
        cell->value.dbl = BLANK_DBL + step;
    else
        strcpy(cell->text, texts[step]);
}

/* The entity whose value answers for this one, by the field's level. */
static struct entity answering(const struct table_view *view, struct entity entity, const struct table_field *field)
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

void current_cell(const struct table_view *view, struct entity entity, const struct table_field *field,
                  struct table_cell *cell)
{
    struct entity source = answering(view, entity, field);
    const struct table_cell *found = table_cell(view, source.kind, source.id, field->id);
    int64_t now = view->header->now_us;
    if ((field->mig == MIG_BLANK && entity.kind != KIND_GPU) || (field->mig == MIG_GI_ONLY && entity.kind == KIND_CI))
        miss(cell, entity, field, ST_OK, now, 0);
    else if (found)
        *cell = *found;
    else if (field->event)
        miss(cell, entity, field, ST_NO_DATA, 0, 0);
    else
        miss(cell, entity, field, ST_OK, now, 2);
    cell->kind = entity.kind;
    cell->entity_id = entity.id;
}

/* A watch whose entity is gone, or whose id now means another thing, keeps its last value and timestamp for ever. */
struct table_cell watched_cell(const struct table_view *view, handle_t handle, struct entity entity,
                               const struct table_field *field)
{
    struct table_cell cell;
    int system = field->mig == MIG_SYSTEM;
    struct watch *watch = find_watch(handle, system ? KIND_NONE : entity.kind, system ? 0 : entity.id, field->id);
    if (watch && identity_of(view, watch->kind, watch->id) == watch->identity) {
        current_cell(view, entity, field, &watch->last);
        watch->has_last = 1;
    }
    if (watch && watch->has_last) {
        cell = watch->last;
        cell.kind = entity.kind;
        cell.entity_id = entity.id;
    } else
        miss(&cell, entity, field, ST_NOT_WATCHED, 0, 0);
    return cell;
}

static struct table_cell live_cell(const struct table_view *view, struct entity entity, const struct table_field *field)
{
    struct table_cell cell;
    if (field->mig == MIG_SYSTEM || identity_of(view, entity.kind, entity.id))
        current_cell(view, entity, field, &cell);
    else
        miss(&cell, entity, field, ST_BADPARAM, 0, 0);
    return cell;
}

/* Only the header and the bytes of the value are written: what a reused buffer held behind them stays. */
static void put_value(union value *into, const struct table_cell *cell)
{
    if (cell->type == 's')
        memcpy(into->str, cell->text, strlen(cell->text) + 1);
    else
        memcpy(into, &cell->value, sizeof cell->value);
}

static void put_v2(struct value_v2 *into, const struct table_cell *cell)
{
    into->version = VERSION_OF(struct value_v2, 2);
    into->kind = cell->kind;
    into->entity_id = cell->entity_id;
    into->field = cell->field;
    into->type = cell->type;
    into->status = cell->status;
    into->timestamp = cell->timestamp_us;
    put_value(&into->value, cell);
}

static void put_v1(struct value_v1 *into, const struct table_cell *cell)
{
    memset(into, 0, sizeof *into);
    into->version = VERSION_OF(struct value_v1, 1);
    into->field = cell->field;
    into->type = cell->type;
    into->status = cell->status;
    into->timestamp = cell->timestamp_us;
    put_value(&into->value, cell);
}

/* Entity by entity from the cache, field by field from the driver: the real order differs likewise. */
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
            struct table_cell cell =
                live ? live_cell(&view, entities[i], field) : watched_cell(&view, handle, entities[i], field);
            put_v2(&values[live ? j * entity_count + i : i * field_count + j], &cell);
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

static int hand_over(struct since *since, const struct table_cell *cell)
{
    struct value_v1 value;
    if (cell->timestamp_us < since->from || (cell->status != ST_OK && cell->timestamp_us == 0))
        return 0;
    if (cell->timestamp_us > since->newest)
        since->newest = cell->timestamp_us;
    put_v1(&value, cell);
    return since->take(cell->kind, cell->entity_id, &value, 1, since->user);
}

static int pair_since(const struct table_view *view, handle_t handle, struct entity entity,
                      const struct table_field *field, struct since *since)
{
    struct table_cell cell = watched_cell(view, handle, entity, field);
    uint32_t count;
    int stop = 0;
    const struct table_event *event = table_events(view, &count);
    if (cell.status == ST_NOT_WATCHED)
        return 0;
    if (!field->event)
        return hand_over(since, &cell);
    for (uint32_t i = 0; i < count && !stop; i++)
        if (event[i].kind == entity.kind && event[i].entity_id == entity.id && event[i].field == field->id) {
            cell.status = ST_OK;
            cell.timestamp_us = event[i].timestamp_us;
            cell.value.i64 = event[i].value;
            stop = hand_over(since, &cell);
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
            stop = pair_since(&view, handle, entities[i], table_field(&view, wanted->fields[j]), &since);
    *next = since.newest + 1;
    return leave(&view, ST_OK);
}
