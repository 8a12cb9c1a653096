/* Calls that our product does not make and other clients of DCGM make. NVIDIA's Go bindings look functions up when they
 * are first called, and a program built with them ends at one that is missing. See libdcgm.h.
 */
#include "libdcgm.h"

#include <stdlib.h>
#include <string.h>

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

API int DcgmFieldsTerm(void)
{
    return ST_OK;
}
