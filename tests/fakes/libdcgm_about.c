/* What describes library and engine: metric groups, modules, health, versions, fields, texts. See libdcgm.h. */
#include "libdcgm.h"

#include <stdio.h>
#include <string.h>

/* For a GPU with GPM the engine returns three fixed groups with all profiling fields (4.6.0, source). */
static void put_groups(const struct table_view *view, struct metric_groups_v3 *groups)
{
    uint32_t count;
    const struct table_field *field = table_fields(view, &count);
    memset(groups->groups, 0, sizeof groups->groups);
    for (uint32_t i = 0; i < 3; i++)
        groups->groups[i].major = (uint16_t)i;
    for (uint32_t i = 0, next = 0; i < count; i++)
        if (field[i].profiling) {
            struct metric_group *group = &groups->groups[next++ % 3];
            if (group->count < 64)
                group->fields[group->count++] = (uint16_t)field[i].id;
        }
    groups->count = 3;
}

API status_t dcgmProfGetSupportedMetricGroups(handle_t handle, struct metric_groups_v3 *groups)
{
    struct table_view view;
    if (!groups)
        return ST_BADPARAM;
    if (groups->version != VERSION_OF(struct metric_groups_v3, 3))
        return ST_VER_MISMATCH;
    status_t status = enter("dcgmProfGetSupportedMetricGroups", handle, &view);
    if (status != ST_OK)
        return status;
    int known = table_device(&view, groups->gpu_id) != NULL;
    if (known)
        put_groups(&view, groups);
    return leave(&view, known ? ST_OK : ST_BADPARAM);
}

API status_t dcgmModuleGetStatuses(handle_t handle, struct modules_v1 *modules)
{
    struct table_view view;
    if (!modules)
        return ST_BADPARAM;
    if (modules->version != VERSION_OF(struct modules_v1, 1))
        return ST_VER_MISMATCH;
    status_t status = enter("dcgmModuleGetStatuses", handle, &view);
    if (status != ST_OK)
        return status;
    modules->count = DCGM_MAJOR == 3 ? 10 : 11;
    for (uint32_t i = 0; i < modules->count; i++) {
        modules->modules[i].id = i;
        modules->modules[i].status = i == 0 ? 3 : 0; /* 3 is loaded; the others are loaded on first use */
    }
    return leave(&view, ST_OK);
}

API status_t dcgmHostengineIsHealthy(handle_t handle, struct health_v1 *health)
{
    struct table_view view;
    if (!health)
        return ST_BADPARAM;
    if (health->version != VERSION_OF(struct health_v1, 1))
        return ST_VER_MISMATCH;
    status_t status = enter("dcgmHostengineIsHealthy", handle, &view);
    if (status != ST_OK)
        return status;
    health->health = 0;
    return leave(&view, ST_OK);
}

static void put_version(const struct table_view *view, struct version_info_v2 *info)
{
    snprintf(info->text, sizeof info->text, "version:%s;arch:x86_64;buildtype:Release;buildplatform:fake",
             view->header->dcgm_version);
}

API status_t dcgmVersionInfo(struct version_info_v2 *info)
{
    struct table_view view;
    if (!info)
        return ST_BADPARAM;
    if (info->version != VERSION_OF(struct version_info_v2, 2))
        return ST_VER_MISMATCH;
    status_t status = table_fault("dcgmVersionInfo");
    if (status != ST_OK)
        return status;
    if (table_open(&view) != 0)
        return ST_GENERIC_ERROR;
    put_version(&view, info);
    table_close(&view);
    return ST_OK;
}

API status_t dcgmHostengineVersionInfo(handle_t handle, struct version_info_v2 *info)
{
    struct table_view view;
    if (!info)
        return ST_BADPARAM;
    if (info->version != VERSION_OF(struct version_info_v2, 2))
        return ST_VER_MISMATCH;
    status_t status = enter("dcgmHostengineVersionInfo", handle, &view);
    if (status != ST_OK)
        return status;
    put_version(&view, info);
    return leave(&view, ST_OK);
}

API int DcgmFieldsInit(void)
{
    return ST_OK;
}

/* The record belongs to the library. NULL for a field that it does not know. */
API const struct field_meta *DcgmFieldGetById(uint16_t id)
{
    static struct field_meta known[1 << 16];
    struct table_view view;
    if (table_open(&view) != 0)
        return NULL;
    const struct table_field *field = table_field(&view, id);
    struct field_meta *meta = field ? &known[id] : NULL;
    if (meta) {
        meta->id = id;
        meta->type = (char)field->type;
        meta->size = field->type == 's' ? 0 : 8;
        memcpy(meta->tag, field->tag, sizeof meta->tag);
        meta->scope = field->mig != MIG_SYSTEM;
        meta->level = field->level;
    }
    table_close(&view);
    return meta;
}

API const char *errorString(status_t status)
{
    static const struct {
        status_t status;
        const char *text;
    } known[] = {
        {ST_OK, "Success"},
        {ST_BADPARAM, "Bad parameter passed to function"},
        {ST_GENERIC_ERROR, "Generic unspecified error"},
        {ST_NOT_SUPPORTED, "This operation is not supported"},
        {ST_UNINITIALIZED, "DCGM has not been initialized"},
        {ST_VER_MISMATCH, "API version mismatch"},
        {ST_NO_DATA, "No data is available"},
        {ST_NOT_WATCHED, "Field is not being watched"},
        {ST_CONNECTION_NOT_VALID, "Host engine connection invalid or disconnected"},
        {ST_MAX_LIMIT, "Max limit for the object reached"},
        {ST_DUPLICATE_KEY, "Duplicate key passed to function"},
        {ST_INSUFFICIENT_SIZE, "An input argument is not large enough"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].status == status)
            return known[i].text;
    return "Error string not available";
}
