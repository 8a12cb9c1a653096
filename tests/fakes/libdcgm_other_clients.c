/* Calls that our product does not make and other clients of DCGM make. NVIDIA's Go bindings look functions up when they
 * are first called, and a program built with them ends at one that is missing. See libdcgm.h.
 *
 * No GPU of a scenario has NVLinks, and no node has Grace CPUs.
 */
#include "libdcgm.h"

#include <stdlib.h>
#include <string.h>

enum { LINKS_PER_GPU = 18, LINKS_PER_SWITCH = 256, MAX_SWITCHES = 12, MODULE_NOT_LOADED = -33 };

/* What dcgmGetNvLinkLinkStatus writes: the state of every link, 0 where there is none (dcgm_structs.h). */
struct link_status_v4 {
    uint32_t version;
    uint32_t gpu_count;
    struct {
        uint32_t entity_id;
        uint32_t state[LINKS_PER_GPU];
    } gpus[MAX_DEVICES];
    uint32_t switch_count;
    struct {
        uint32_t entity_id;
        uint32_t state[LINKS_PER_SWITCH];
    } switches[MAX_SWITCHES];
};

_Static_assert(sizeof(struct link_status_v4) == 14780, "NVLink status v4");

/* The same call of libdcgm_read.c: `entities` are pairs of kind and id. */
extern status_t dcgmEntitiesGetLatestValues(handle_t handle, const void *entities, uint32_t entity_count,
                                            const uint16_t *fields, uint32_t field_count, uint32_t flags,
                                            struct value_v2 *values);

static void put_v1(struct value_v1 *into, const struct value_v2 *from)
{
    into->version = VERSION_OF(struct value_v1, 1);
    into->field = from->field;
    into->type = from->type;
    into->status = from->status;
    into->timestamp = from->timestamp;
    memcpy(&into->value, &from->value, sizeof into->value);
}

/* What is cached of one entity, in records without the entity. */
API status_t dcgmEntityGetLatestValues(handle_t handle, uint32_t kind, int entity_id, const uint16_t *fields,
                                       uint32_t count, struct value_v1 *values)
{
    const uint32_t entity[2] = {kind, (uint32_t)entity_id};
    if (!values || count > MAX_FIELDS)
        return ST_BADPARAM;
    struct value_v2 *read = calloc(count ? count : 1, sizeof *read);
    if (!read)
        return ST_MEMORY;
    status_t status = dcgmEntitiesGetLatestValues(handle, entity, 1, fields, count, 0, read);
    for (uint32_t i = 0; i < count && status == ST_OK; i++)
        put_v1(&values[i], &read[i]);
    free(read);
    return status;
}

API status_t dcgmGetLatestValuesForFields(handle_t handle, int gpu_id, const uint16_t *fields, uint32_t count,
                                          struct value_v1 *values)
{
    return dcgmEntityGetLatestValues(handle, KIND_GPU, gpu_id, fields, count, values);
}

API status_t dcgmGetNvLinkLinkStatus(handle_t handle, struct link_status_v4 *links)
{
    struct table_view view;
    uint32_t count;
    if (!links)
        return ST_BADPARAM;
    if (links->version != VERSION_OF(struct link_status_v4, 4))
        return ST_VER_MISMATCH;
    status_t status = enter("dcgmGetNvLinkLinkStatus", handle, &view);
    if (status != ST_OK)
        return status;
    const struct table_device *device = table_devices(&view, &count);
    memset(links, 0, sizeof *links);
    links->version = VERSION_OF(struct link_status_v4, 4);
    links->gpu_count = count < MAX_DEVICES ? count : MAX_DEVICES;
    for (uint32_t i = 0; i < links->gpu_count; i++)
        links->gpus[i].entity_id = device[i].gpu_id;
    return leave(&view, ST_OK);
}

static status_t answer(const char *function, handle_t handle, status_t answered)
{
    struct table_view view;
    status_t status = enter(function, handle, &view);
    return status == ST_OK ? leave(&view, answered) : status;
}

/* Declared here: the same call of libdcgm_group.c. */
extern status_t dcgmGroupAddEntity(handle_t handle, uintptr_t id, uint32_t kind, uint32_t entity_id);

API status_t dcgmGroupAddDevice(handle_t handle, uintptr_t group, uint32_t gpu_id)
{
    return dcgmGroupAddEntity(handle, group, KIND_GPU, gpu_id);
}

/* As where the paths between GPUs are not known. */
API status_t dcgmGetDeviceTopology(handle_t handle, uint32_t gpu_id, void *topology)
{
    (void)gpu_id;
    return topology ? answer("dcgmGetDeviceTopology", handle, ST_NOT_SUPPORTED) : ST_BADPARAM;
}

/* The module that knows Grace CPUs does not load on another machine. */
API status_t dcgmGetCpuHierarchy(handle_t handle, void *hierarchy)
{
    return hierarchy ? answer("dcgmGetCpuHierarchy", handle, MODULE_NOT_LOADED) : ST_BADPARAM;
}

API int DcgmFieldsTerm(void)
{
    return ST_OK;
}
