/* Entity groups and field groups. See libdcgm.h. */
#include "libdcgm.h"

#include <string.h>

static struct group groups[MAX_GROUPS];
static struct field_group field_groups[MAX_FIELD_GROUPS];
static uint32_t next_group = 2, next_field_group = 1;

void forget_handle(handle_t handle)
{
    if (handle == 0)
        return;
    for (int i = 0; i < MAX_GROUPS; i++)
        if (groups[i].handle == handle)
            groups[i].used = 0;
    for (int i = 0; i < MAX_FIELD_GROUPS; i++)
        if (field_groups[i].handle == handle)
            field_groups[i].used = 0;
    forget_watches(handle);
}

struct group *find_group(uint32_t id)
{
    for (int i = 0; i < MAX_GROUPS; i++)
        if (groups[i].used && groups[i].id == id)
            return &groups[i];
    return NULL;
}

struct field_group *find_field_group(uint32_t id)
{
    for (int i = 0; i < MAX_FIELD_GROUPS; i++)
        if (field_groups[i].used && field_groups[i].id == id)
            return &field_groups[i];
    return NULL;
}

static uint32_t add_devices(const struct table_view *view, struct table_entity *into)
{
    uint32_t count;
    const struct table_device *row = table_devices(view, &count);
    for (uint32_t i = 0; i < count; i++)
        into[i] = (struct table_entity){KIND_GPU, row[i].gpu_id};
    return count;
}

static uint32_t add_instances(const struct table_view *view, uint32_t kind, struct table_entity *into)
{
    uint32_t count, added = 0;
    const struct table_instance *row = table_instances(view, &count);
    for (uint32_t i = 0; i < count; i++)
        if (row[i].kind == kind)
            into[added++] = (struct table_entity){kind, row[i].entity_id};
    return added;
}

/* The entities of a group. Up to MAX_DEVICES * 17 of them are written to `into`. */
uint32_t members(const struct table_view *view, uint32_t group_id, struct table_entity *into)
{
    uint32_t count = 0;
    if (group_id == GROUP_ALL_GPUS || group_id == GROUP_ALL_ENTITIES)
        count += add_devices(view, into + count);
    if (group_id == GROUP_ALL_INSTANCES || group_id == GROUP_ALL_ENTITIES)
        count += add_instances(view, KIND_GI, into + count);
    if (group_id == GROUP_ALL_COMPUTE || group_id == GROUP_ALL_ENTITIES)
        count += add_instances(view, KIND_CI, into + count);
    const struct group *group = find_group(group_id);
    if (group) {
        memcpy(into, group->entities, group->count * sizeof *into);
        count = group->count;
    }
    return count;
}

int is_group(uint32_t id)
{
    return (id >= GROUP_ALL_ENTITIES && id <= GROUP_ALL_GPUS) || find_group(id) != NULL;
}

static void fill(const struct table_view *view, uint32_t type, struct group *group)
{
    static const uint32_t whole[] = {GROUP_ALL_GPUS,    0, GROUP_ALL_NVSWITCHES, GROUP_ALL_INSTANCES, GROUP_ALL_COMPUTE,
                                     GROUP_ALL_ENTITIES};
    if (type >= sizeof whole / sizeof *whole)
        return;
    static struct table_entity all[MAX_DEVICES * 17];
    uint32_t count = members(view, whole[type], all);
    group->count = count < MAX_ENTITIES ? count : MAX_ENTITIES;
    memcpy(group->entities, all, group->count * sizeof *all);
}

/* A type above those of the header is accepted (4.6.0, measured). */
API status_t dcgmGroupCreate(handle_t handle, uint32_t type, const char *name, uintptr_t *id)
{
    struct table_view view;
    if (!name || !id)
        return ST_BADPARAM;
    status_t status = enter("dcgmGroupCreate", handle, &view);
    if (status != ST_OK)
        return status;
    for (int i = 0; i < MAX_GROUPS; i++) {
        if (groups[i].used)
            continue;
        groups[i] = (struct group){.used = 1, .id = next_group++, .handle = handle};
        if (type != 1)
            fill(&view, type, &groups[i]);
        *id = groups[i].id;
        return leave(&view, ST_OK);
    }
    return leave(&view, ST_MAX_LIMIT);
}

API status_t dcgmGroupDestroy(handle_t handle, uintptr_t id)
{
    struct table_view view;
    status_t status = enter("dcgmGroupDestroy", handle, &view);
    if (status != ST_OK)
        return status;
    struct group *group = find_group((uint32_t)id);
    if (group) {
        unwatch_group(&view, handle, group);
        group->used = 0;
    }
    return leave(&view, group ? ST_OK : ST_NOT_CONFIGURED);
}

/* NULL is no GPU. Measured (4.6.0) of a GPU that is unsupported or lost; the code of a detached one is from the source. */
static status_t rejection_by_state(const struct table_device *gpu)
{
    switch (gpu ? gpu->status : STATE_OK) {
    case STATE_UNSUPPORTED:
        return ST_GPU_NOT_SUPPORTED;
    case STATE_LOST:
        return ST_GPU_IS_LOST;
    case STATE_DETACHED:
        return ST_GPU_DETACHED;
    default:
        return ST_OK;
    }
}

static status_t add_entity(const struct table_view *view, struct group *group, struct table_entity entity)
{
    if (!group)
        return ST_NOT_CONFIGURED;
    if (!identity_of(view, entity.kind, entity.id) || entity.kind == KIND_NONE)
        return ST_BADPARAM;
    status_t status = table_fault_about(view, "dcgmGroupAddEntity", &entity, 1, NULL, 0);
    if (status == ST_OK)
        status = rejection_by_state(gpu_of(view, entity));
    if (status != ST_OK)
        return status;
    for (uint32_t i = 0; i < group->count; i++)
        if (group->entities[i].kind == entity.kind && group->entities[i].id == entity.id)
            return ST_BADPARAM;
    if (group->count == MAX_ENTITIES)
        return ST_MAX_LIMIT;
    group->entities[group->count++] = entity;
    return ST_OK;
}

API status_t dcgmGroupAddEntity(handle_t handle, uintptr_t id, uint32_t kind, uint32_t entity_id)
{
    struct table_view view;
    status_t status = enter("dcgmGroupAddEntity", handle, &view);
    if (status != ST_OK)
        return status;
    return leave(&view, add_entity(&view, find_group((uint32_t)id), (struct table_entity){kind, entity_id}));
}

/* One unknown id fails the whole field group, and names are unique across all connections (4.6.0, measured). */
static status_t make_field_group(const struct table_view *view, const struct field_group *wanted, uintptr_t *id)
{
    struct field_group *unused = NULL;
    for (uint32_t i = 0; i < wanted->count; i++)
        if (!table_field(view, wanted->fields[i]))
            return ST_BADPARAM;
    status_t status = table_fault_about(view, "dcgmFieldGroupCreate", NULL, 0, wanted->fields, wanted->count);
    if (status != ST_OK)
        return status;
    for (int i = MAX_FIELD_GROUPS - 1; i >= 0; i--)
        if (!field_groups[i].used)
            unused = &field_groups[i];
    if (!unused)
        return ST_MAX_LIMIT;
    for (int i = 0; i < MAX_FIELD_GROUPS; i++)
        if (field_groups[i].used && strcmp(field_groups[i].name, wanted->name) == 0)
            return ST_DUPLICATE_KEY;
    *unused = *wanted;
    unused->used = 1;
    unused->id = next_field_group++;
    *id = unused->id;
    return ST_OK;
}

/* 127 fields are accepted and 128 are not, although the header names 128 as the limit (4.6.0, measured). */
API status_t dcgmFieldGroupCreate(handle_t handle, int count, const uint16_t *fields, const char *name, uintptr_t *id)
{
    struct table_view view;
    struct field_group wanted = {.handle = handle, .count = (uint32_t)count};
    if (count < 1 || count >= MAX_FIELDS || !fields || !name || !name[0] || strlen(name) >= TEXT || !id)
        return ST_BADPARAM;
    memcpy(wanted.fields, fields, (size_t)count * sizeof *fields);
    memcpy(wanted.name, name, strlen(name));
    status_t status = enter("dcgmFieldGroupCreate", handle, &view);
    if (status != ST_OK)
        return status;
    return leave(&view, make_field_group(&view, &wanted, id));
}

API status_t dcgmFieldGroupDestroy(handle_t handle, uintptr_t id)
{
    struct table_view view;
    status_t status = enter("dcgmFieldGroupDestroy", handle, &view);
    if (status != ST_OK)
        return status;
    struct field_group *group = find_field_group((uint32_t)id);
    if (group)
        group->used = 0;
    return leave(&view, group ? ST_OK : ST_NO_DATA);
}
