/* The GPUs of the fake libnvidia-ml: handles, names and places. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

ret_t nvmlDeviceGetCount_v2(unsigned *out)
{
    ENTER(c, enter(&c, __func__));
    *out = gpu_count;
    return leave(&c, OK);
}

ret_t return_gpu(struct call *c, const char *uuid, device_t *out)
{
    const struct table_device *gpu = gpu_by_uuid(&c->t, uuid);
    if (is_gone(gpu))
        return GPU_IS_LOST;
    *out = handle_for(uuid, NO_ID, -1, gpu->identity);
    return *out ? OK : NO_MEMORY;
}

ret_t nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *out)
{
    ENTER(c, enter_of(&c, __func__, index < gpu_count ? gpus[index] : NULL));
    return leave(&c, index < gpu_count ? return_gpu(&c, gpus[index], out) : INVALID_ARGUMENT);
}

ret_t return_mig_device(struct call *c, const struct table_instance *ci, device_t *out)
{
    const struct table_device *all = RECORDS(&c->t, table_device, devices);
    for (uint32_t i = 0; i < c->t.header->devices.count; i++) {
        if (all[i].gpu_id != ci->gpu_id)
            continue;
        if (is_gone(&all[i]))
            return GPU_IS_LOST;
        *out = handle_for(all[i].uuid, ci->gi, ci->ci, ci->identity);
        return *out ? OK : NO_MEMORY;
    }
    return NOT_FOUND;
}

ret_t nvmlDeviceGetHandleByUUID(const char *uuid, device_t *out)
{
    ENTER(c, enter(&c, __func__));
    const struct table_instance *all = RECORDS(&c.t, table_instance, instances);
    for (unsigned i = 0; i < gpu_count; i++)
        if (strcmp(gpus[i], uuid) == 0)
            return leave(&c, return_gpu(&c, uuid, out));
    for (uint32_t i = 0; i < c.t.header->instances.count; i++)
        if (all[i].kind == KIND_CI && strcmp(all[i].mig_uuid, uuid) == 0)
            return leave(&c, return_mig_device(&c, &all[i], out));
    return leave(&c, NOT_FOUND);
}

ret_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, device_t *out)
{
    ENTER(c, enter(&c, __func__));
    const struct table_device *all = RECORDS(&c.t, table_device, devices);
    for (uint32_t i = 0; i < c.t.header->devices.count; i++) {
        const char *known = all[i].pci_bus_id; /* eight-digit domain; four digits are accepted too */
        if (strcasecmp(known, bus) == 0 || (strlen(known) > 4 && strcasecmp(known + 4, bus) == 0))
            return leave(&c, return_gpu(&c, all[i].uuid, out));
    }
    return leave(&c, NOT_FOUND);
}

ret_t nvmlDeviceGetName(device_t d, char *out, unsigned size)
{
    char name[256];
    ENTER(c, enter_device(&c, __func__, d));
    if (c.instance)
        snprintf(name, sizeof name, "%s MIG %s", c.gpu->model, c.instance->profile);
    else
        snprintf(name, sizeof name, "%s", c.gpu->model);
    return leave(&c, copy_text(name, out, size));
}

ret_t nvmlDeviceGetUUID(device_t d, char *out, unsigned size)
{
    ENTER(c, enter_device(&c, __func__, d));
    return leave(&c, copy_text(c.instance ? c.instance->mig_uuid : c.gpu->uuid, out, size));
}

ret_t nvmlDeviceGetSerial(device_t d, char *out, unsigned size)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    return leave(&c, c.gpu->serial[0] ? copy_text(c.gpu->serial, out, size) : NOT_SUPPORTED);
}

ret_t nvmlDeviceGetVbiosVersion(device_t d, char *out, unsigned size)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    return leave(&c, c.gpu->vbios[0] ? copy_text(c.gpu->vbios, out, size) : NOT_SUPPORTED);
}

ret_t nvmlDeviceGetIndex(device_t d, unsigned *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    *out = c.instance ? (unsigned)c.instance->mig_index : c.gpu->nvml_index;
    return leave(&c, OK);
}

ret_t nvmlDeviceGetMinorNumber(device_t d, unsigned *out)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    *out = (unsigned)c.gpu->minor;
    return leave(&c, c.gpu->minor < 0 ? NOT_SUPPORTED : OK);
}

struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
_Static_assert(sizeof(struct pci_info) == 68, "pci info");

ret_t nvmlDeviceGetPciInfo_v3(device_t d, struct pci_info *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    memset(out, 0, sizeof *out);
    sscanf(c.gpu->pci_bus_id, "%8x:%2x:%2x", &out->domain, &out->bus, &out->device);
    snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.0", out->domain & 0xFFFF, out->bus & 0xFF, out->device & 0xFF);
    memcpy(out->bus_id, c.gpu->pci_bus_id, sizeof out->bus_id);
    return leave(&c, OK);
}

ret_t nvmlDeviceGetArchitecture(device_t d, unsigned *out)
{
    ENTER(c, enter_device(&c, __func__, d));
    *out = c.gpu->architecture ? c.gpu->architecture : NO_ID;
    return leave(&c, OK);
}

ret_t nvmlDeviceGetNumaNodeId(device_t d, unsigned *out)
{
    ENTER(c, enter_gpu(&c, __func__, d));
    *out = (unsigned)c.gpu->numa_node;
    return leave(&c, c.gpu->numa_node < 0 ? NOT_SUPPORTED : OK);
}

ret_t nvmlDeviceGetCudaComputeCapability(device_t d, int *major, int *minor)
{
    ENTER(c, enter_device(&c, __func__, d));
    *major = c.gpu->compute_major;
    *minor = c.gpu->compute_minor;
    return leave(&c, OK);
}
