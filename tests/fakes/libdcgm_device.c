/* GPUs, MIG instances and their attributes. See libdcgm.h. */
#include "libdcgm.h"

#include <stdio.h>
#include <string.h>

static status_t list_devices(const char *function, handle_t handle, uint32_t *ids, int *count)
{
    struct table_view view;
    uint32_t found;
    if (!ids || !count)
        return ST_BADPARAM;
    status_t status = enter(function, handle, &view);
    if (status != ST_OK)
        return status;
    const struct table_device *row = table_devices(&view, &found);
    for (uint32_t i = 0; i < found && i < MAX_DEVICES; i++)
        ids[i] = row[i].gpu_id;
    *count = (int)(found < MAX_DEVICES ? found : MAX_DEVICES);
    return leave(&view, ST_OK);
}

API status_t dcgmGetAllDevices(handle_t handle, uint32_t *ids, int *count)
{
    return list_devices("dcgmGetAllDevices", handle, ids, count);
}

API status_t dcgmGetAllSupportedDevices(handle_t handle, uint32_t *ids, int *count)
{
    return list_devices("dcgmGetAllSupportedDevices", handle, ids, count);
}

static uint32_t group_of(uint32_t kind)
{
    return kind == KIND_GPU ? GROUP_ALL_GPUS : kind == KIND_GI ? GROUP_ALL_INSTANCES : GROUP_ALL_COMPUTE;
}

/* `count` is how many ids fit; on return, how many there are. */
API status_t dcgmGetEntityGroupEntities(handle_t handle, uint32_t kind, uint32_t *ids, int *count, uint32_t flags)
{
    static struct table_entity all[MAX_DEVICES * 17 + MAX_ENTITIES];
    struct table_view view;
    (void)flags;
    if (!ids || !count || *count < 0)
        return ST_BADPARAM;
    status_t status = enter("dcgmGetEntityGroupEntities", handle, &view);
    if (status != ST_OK)
        return status;
    int of_gpus = kind == KIND_GPU || kind == KIND_GI || kind == KIND_CI;
    if (kind == KIND_VGPU)
        return leave(&view, ST_NOT_SUPPORTED);
    int found = (int)(of_gpus ? members(&view, group_of(kind), all)
                              : marked(&view, kind, all, sizeof all / sizeof *all));
    status = found > *count ? ST_INSUFFICIENT_SIZE : ST_OK;
    for (int i = 0; i < found && status == ST_OK; i++)
        ids[i] = all[i].id;
    *count = found;
    return leave(&view, status);
}

static void put_row(const struct table_view *view, const struct table_instance *from, struct mig_row *into)
{
    const struct table_device *device = table_device(view, from->gpu_id);
    memset(into, 0, sizeof *into);
    into->entity = (struct table_entity){from->kind, from->entity_id};
    into->parent = (struct table_entity){from->parent_kind, from->parent_id};
    memcpy(into->uuid, device->uuid, sizeof device->uuid);
    into->index = device->nvml_index;
    into->gi = from->gi;
    into->ci = (uint32_t)from->ci;
    into->profile = from->profile_id;
    into->slices = from->slices;
}

API status_t dcgmGetGpuInstanceHierarchy(handle_t handle, struct hierarchy_v2 *hierarchy)
{
    struct table_view view;
    uint32_t count;
    if (!hierarchy)
        return ST_BADPARAM;
    if (hierarchy->version != VERSION_OF(struct hierarchy_v2, 2))
        return ST_VER_MISMATCH;
    status_t status = enter("dcgmGetGpuInstanceHierarchy", handle, &view);
    if (status != ST_OK)
        return status;
    const struct table_instance *row = table_instances(&view, &count);
    hierarchy->count = count < HIERARCHY_ROWS ? count : HIERARCHY_ROWS;
    for (uint32_t i = 0; i < hierarchy->count; i++)
        put_row(&view, &row[i], &hierarchy->rows[i]);
    return leave(&view, ST_OK);
}

API status_t dcgmGetGpuStatus(handle_t handle, uint32_t gpu_id, uint32_t *answer)
{
    struct table_view view;
    if (!answer)
        return ST_BADPARAM;
    status_t status = enter("dcgmGetGpuStatus", handle, &view);
    if (status != ST_OK)
        return status;
    const struct table_device *device = table_device(&view, gpu_id);
    struct table_entity entity = {KIND_GPU, gpu_id};
    status = table_fault_about(&view, "dcgmGetGpuStatus", &entity, 1, NULL, 0);
    *answer = device ? device->status : STATE_UNKNOWN; /* for an unknown id too (4.6.0, measured) */
    return leave(&view, status);
}

API status_t dcgmGetGpuChipArchitecture(handle_t handle, uint32_t gpu_id, uint32_t *answer)
{
    struct table_view view;
    if (!answer)
        return ST_BADPARAM;
    status_t status = enter("dcgmGetGpuChipArchitecture", handle, &view);
    if (status != ST_OK)
        return status;
    const struct table_device *device = table_device(&view, gpu_id);
    struct table_entity entity = {KIND_GPU, gpu_id};
    status = table_fault_about(&view, "dcgmGetGpuChipArchitecture", &entity, 1, NULL, 0);
    *answer = !device ? 0 : device->architecture ? device->architecture : 0xffffffffu; /* 0: an unknown id */
    return leave(&view, status);
}

static uint32_t whole_number(const struct table_view *view, uint32_t gpu_id, uint32_t field)
{
    const struct table_sample *sample = table_sample(view, KIND_GPU, gpu_id, field);
    if (!sample || sample->status != ST_OK)
        return BLANK_I32;
    if (sample->type == 'd')
        return sample->value.dbl < BLANK_DBL ? (uint32_t)sample->value.dbl : BLANK_I32;
    return sample->value.i64 < BLANK_I64 ? (uint32_t)sample->value.i64 : BLANK_I32;
}

static void put_text(char into[TEXT], const char *text)
{
    snprintf(into, TEXT, "%s", text[0] ? text : "<<<NOT_SUPPORTED>>>");
}

static void put_identifiers(const struct table_view *view, const struct table_device *device,
                            struct attributes_v3 *into)
{
    put_text(into->brand, "NVIDIA");
    put_text(into->name, device->model);
    put_text(into->pci_bus_id, device->pci_bus_id);
    put_text(into->serial, device->serial);
    put_text(into->uuid, device->uuid);
    put_text(into->vbios, device->vbios);
    put_text(into->inforom, "");
    put_text(into->driver, view->header->driver_version);
    into->pci_device = BLANK_I32;
    into->pci_subsystem = BLANK_I32;
    into->virtualization = whole_number(view, device->gpu_id, 500);
}

static void put_attributes(const struct table_view *view, const struct table_device *device, struct attributes_v3 *into)
{
    uint32_t id = device->gpu_id;
    memset(into, 0, sizeof *into);
    into->version = VERSION_OF(struct attributes_v3, 3);
    into->thermal[1] = whole_number(view, id, 158);
    into->thermal[2] = whole_number(view, id, 159);
    for (int i = 1; i < 6; i++)
        into->power[i] = BLANK_I32;
    into->power[1] = whole_number(view, id, 160);
    into->power[3] = whole_number(view, id, 164);
    put_identifiers(view, device, into);
    into->bar1_total = whole_number(view, id, 90);
    into->fb_total = whole_number(view, id, 250);
    into->fb_used = whole_number(view, id, 252);
    into->fb_free = whole_number(view, id, 251);
    into->persistence = whole_number(view, id, 66);
    into->mig = device->mig < 0 ? BLANK_I32 + 2 : (uint32_t)device->mig;
    into->confidential = 0;
}

API status_t dcgmGetDeviceAttributes(handle_t handle, uint32_t gpu_id, struct attributes_v3 *attributes)
{
    struct table_view view;
    if (!attributes)
        return ST_BADPARAM;
    if (attributes->version != VERSION_OF(struct attributes_v3, 3))
        return ST_VER_MISMATCH;
    status_t status = enter("dcgmGetDeviceAttributes", handle, &view);
    if (status != ST_OK)
        return status;
    const struct table_device *device = table_device(&view, gpu_id);
    if (device)
        put_attributes(&view, device, attributes);
    return leave(&view, device ? ST_OK : ST_BADPARAM);
}
