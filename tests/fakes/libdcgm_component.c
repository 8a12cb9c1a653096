/* Which components (NVSwitches, their NVLinks, CPUs and cores) there are. See libdcgm.h. */
#include "libdcgm.h"

#include <stdio.h>
#include <string.h>

int is_marked(const struct table_view *view, uint32_t kind, uint32_t id)
{
    return table_sample(view, kind, id, MARK_FIELD) != NULL;
}

/* Writes the entities of this kind, as many as there is room for, and returns how many there are. Of links, only those
 * of NVSwitches are listed (4.6.0, source). */
uint32_t marked(const struct table_view *view, uint32_t kind, struct table_entity *into, uint32_t room)
{
    uint32_t count, found = 0;
    const struct table_sample *sample = table_samples(view, &count);
    for (uint32_t i = 0; i < count; i++) {
        int listed = sample[i].kind == kind && sample[i].field == MARK_FIELD;
        if (!listed || (kind == KIND_LINK && (sample[i].entity_id & 0xff) != KIND_SWITCH))
            continue;
        if (found < room)
            into[found] = (struct table_entity){kind, sample[i].entity_id};
        found++;
    }
    return found;
}

enum { CPUS = 8, CORES = 1024 };

struct owned_cores {
    uint32_t version;
    uint64_t words[CORES / 64];
};

struct cpus_v1 {
    uint32_t version;
    uint32_t count;
    struct {
        uint32_t id;
        struct owned_cores cores;
    } cpus[CPUS];
};

struct cpus_v2 {
    uint32_t version;
    uint32_t count;
    struct {
        uint32_t id;
        struct owned_cores cores;
        char serial[TEXT];
    } cpus[CPUS];
};

_Static_assert(sizeof(struct cpus_v1) == 1160, "CPUs v1");
_Static_assert(sizeof(struct cpus_v2) == 3208, "CPUs v2");

static void put_cores(const struct table_view *view, uint32_t cpu, struct owned_cores *into)
{
    static struct table_entity cores[CORES];
    uint32_t count = marked(view, KIND_CORE, cores, CORES);
    memset(into, 0, sizeof *into);
    into->version = VERSION_OF(struct owned_cores, 1);
    for (uint32_t i = 0; i < count && i < CORES; i++)
        if (table_sample(view, KIND_CORE, cores[i].id, MARK_FIELD)->value.i64 == cpu)
            into->words[cores[i].id / 64] |= 1ull << cores[i].id % 64;
}

/* An engine on a machine without a CPU of NVIDIA's does not load its module for them (4.6.0, source). */
static status_t list_cpus(const struct table_view *view, struct table_entity *cpus, uint32_t *count)
{
    *count = marked(view, KIND_CPU, cpus, CPUS);
    return *count ? ST_OK : ST_MODULE_NOT_LOADED;
}

API status_t dcgmGetCpuHierarchy(handle_t handle, struct cpus_v1 *into)
{
    struct table_view view;
    struct table_entity cpus[CPUS];
    if (!into)
        return ST_BADPARAM;
    if (into->version != VERSION_OF(struct cpus_v1, 1))
        return ST_VER_MISMATCH;
    status_t status = enter("dcgmGetCpuHierarchy", handle, &view);
    if (status != ST_OK)
        return status;
    status = list_cpus(&view, cpus, &into->count);
    for (uint32_t i = 0; i < into->count; i++) {
        into->cpus[i].id = cpus[i].id;
        put_cores(&view, cpus[i].id, &into->cpus[i].cores);
    }
    return leave(&view, status);
}

#if DCGM_MAJOR >= 4
API status_t dcgmGetCpuHierarchy_v2(handle_t handle, struct cpus_v2 *into)
{
    struct table_view view;
    struct table_entity cpus[CPUS];
    if (!into)
        return ST_BADPARAM;
    if (into->version != VERSION_OF(struct cpus_v2, 2))
        return ST_VER_MISMATCH;
    status_t status = enter("dcgmGetCpuHierarchy_v2", handle, &view);
    if (status != ST_OK)
        return status;
    status = list_cpus(&view, cpus, &into->count);
    for (uint32_t i = 0; i < into->count; i++) {
        into->cpus[i].id = cpus[i].id;
        put_cores(&view, cpus[i].id, &into->cpus[i].cores);
        const struct table_sample *mark = table_sample(&view, KIND_CPU, cpus[i].id, MARK_FIELD);
        snprintf(into->cpus[i].serial, TEXT, "%s", mark->text);
    }
    return leave(&view, status);
}
#endif
