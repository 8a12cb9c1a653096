/* NVLinks of GPUs and NVSwitches. See libdcgm.h. */
#include "libdcgm.h"

#include <stdlib.h>
#include <string.h>

enum { SWITCHES = 12, SWITCH_LINKS = 256 };

struct switch_links {
    uint32_t id;
    int32_t states[SWITCH_LINKS];
};

struct link_states_v4 {
    uint32_t version;
    uint32_t gpu_count;
    struct {
        uint32_t gpu_id;
        int32_t states[18];
    } gpus[MAX_DEVICES];
    uint32_t switch_count;
    struct switch_links switches[SWITCHES];
};

struct link_states_v5 {
    uint32_t version;
    uint32_t gpu_count;
    struct {
        uint32_t gpu_id;
        int32_t states[36];
    } gpus[MAX_DEVICES];
    uint32_t switch_count;
    struct switch_links switches[SWITCHES];
};

_Static_assert(sizeof(struct link_states_v4) == 14780, "NVLink states v4");
_Static_assert(sizeof(struct link_states_v5) == 17084, "NVLink states v5");

static int32_t link_state(const struct table_view *view, uint32_t id)
{
    const struct table_sample *found = table_sample(view, KIND_LINK, id, MARK_FIELD);
    return found ? (int32_t)found->value.i64 : 0;
}

static void put_states(const struct table_view *view, uint32_t kind, uint32_t owner, int32_t *states, uint32_t count)
{
    for (uint32_t number = 0; number < count; number++)
        states[number] = link_state(view, LINK_ID(kind, owner, number));
}

static uint32_t put_switches(const struct table_view *view, struct switch_links *into)
{
    struct table_entity switches[SWITCHES];
    uint32_t count = marked(view, KIND_SWITCH, switches, SWITCHES);
    for (uint32_t i = 0; i < count; i++) {
        into[i].id = switches[i].id;
        put_states(view, KIND_SWITCH, switches[i].id, into[i].states, SWITCH_LINKS);
    }
    return count;
}

/* The newest record of the library: version 5 since 4.6, 4 since 4.0 (headers). 3 has others, which are not here. */
static int knows(const struct table_view *view, uint32_t version)
{
    int newest = strtod(view->header->dcgm_version, NULL) >= 4.6;
    return DCGM_MAJOR == 4 && (version == VERSION_OF(struct link_states_v4, 4) ||
                               (newest && version == VERSION_OF(struct link_states_v5, 5)));
}

API status_t dcgmGetNvLinkLinkStatus(handle_t handle, struct link_states_v5 *into)
{
    struct table_view view;
    uint32_t count;
    if (!into)
        return ST_BADPARAM;
    status_t status = enter("dcgmGetNvLinkLinkStatus", handle, &view);
    if (status != ST_OK)
        return status;
    if (!knows(&view, into->version))
        return leave(&view, ST_VER_MISMATCH);
    const struct table_device *row = table_devices(&view, &count);
    struct link_states_v4 *older = into->version == VERSION_OF(struct link_states_v5, 5) ? NULL : (void *)into;
    uint32_t version = into->version;
    memset(into, 0, older ? sizeof *older : sizeof *into);
    into->version = version;
    into->gpu_count = count < MAX_DEVICES ? count : MAX_DEVICES;
    for (uint32_t i = 0; i < into->gpu_count; i++) {
        *(older ? &older->gpus[i].gpu_id : &into->gpus[i].gpu_id) = row[i].gpu_id;
        put_states(&view, KIND_GPU, row[i].gpu_id, older ? older->gpus[i].states : into->gpus[i].states,
                   older ? 18 : 36);
    }
    *(older ? &older->switch_count : &into->switch_count) =
        put_switches(&view, older ? older->switches : into->switches);
    return leave(&view, ST_OK);
}
