/* Health checks of groups. See libdcgm.h.
 *
 * The real engine derives them from samples of many fields (4.6.0, source). Two of them are here: uncorrectable memory
 * errors since the driver was loaded are a failure, time with clocks reduced because of heat is a warning.
 */
#include "libdcgm.h"

#include <stdio.h>
#include <string.h>

enum { MEMORY = 0x10, THERMAL = 0x80, WARNING = 10, FAILURE = 20 };
enum { ECC_DBE_VOL_TOTAL = 311, THERMAL_VIOLATION = 241 };
/* Numbers of dcgm_errors.h. */
enum { FR_VOLATILE_DBE_DETECTED = 4, FR_CLOCK_THROTTLE_THERMAL = 10 };

struct health_set_v2 {
    uint32_t version;
    uintptr_t group;
    uint32_t systems;
    int64_t interval_us;
    double keep_seconds;
};

struct incident {
    uint32_t system;
    uint32_t health;
    char message[1024];
    uint32_t code;
    uint32_t kind;
    uint32_t entity_id;
};

/* Version 5 of DCGM 4 has room for more entities than version 4 of DCGM 3. */
struct health_response {
    uint32_t version;
    uint32_t overall;
    uint32_t count;
    struct incident incidents[DCGM_MAJOR == 3 ? 64 : 1024];
};
#define RESPONSE_VERSION VERSION_OF(struct health_response, DCGM_MAJOR == 3 ? 4 : 5)

API status_t dcgmHealthSet_v2(handle_t handle, struct health_set_v2 *wanted)
{
    struct table_view view;
    if (!wanted)
        return ST_BADPARAM;
    if (wanted->version != VERSION_OF(struct health_set_v2, 2))
        return ST_VER_MISMATCH;
    status_t status = enter("dcgmHealthSet_v2", handle, &view);
    if (status != ST_OK)
        return status;
    struct group *group = find_group((uint32_t)wanted->group);
    if (group)
        group->health_systems = wanted->systems;
    return leave(&view, group ? ST_OK : ST_NOT_CONFIGURED);
}

static void check(const struct table_view *view, struct table_entity gpu, uint32_t system, uint32_t health,
                  uint32_t code, uint16_t field, struct health_response *response)
{
    const struct table_sample *sample = table_sample(view, gpu.kind, gpu.id, field);
    if (!sample || sample->status != ST_OK || sample->type != 'i' || sample->value.i64 <= 0 ||
        sample->value.i64 >= INT64_MAX - 15 || response->count == sizeof response->incidents / sizeof(struct incident))
        return;
    struct incident *incident = &response->incidents[response->count++];
    *incident = (struct incident){.system = system, .health = health, .code = code, .kind = gpu.kind,
                                  .entity_id = gpu.id};
    snprintf(incident->message, sizeof incident->message, "field %u of GPU %u", field, gpu.id);
    if (health > response->overall)
        response->overall = health;
}

API status_t dcgmHealthCheck(handle_t handle, uintptr_t id, struct health_response *response)
{
    struct table_view view;
    if (!response)
        return ST_BADPARAM;
    if (response->version != RESPONSE_VERSION)
        return ST_VER_MISMATCH;
    status_t status = enter("dcgmHealthCheck", handle, &view);
    if (status != ST_OK)
        return status;
    const struct group *group = find_group((uint32_t)id);
    if (!group)
        return leave(&view, ST_NOT_CONFIGURED);
    response->overall = response->count = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        if (group->health_systems & MEMORY)
            check(&view, group->entities[i], MEMORY, FAILURE, FR_VOLATILE_DBE_DETECTED, ECC_DBE_VOL_TOTAL, response);
        if (group->health_systems & THERMAL)
            check(&view, group->entities[i], THERMAL, WARNING, FR_CLOCK_THROTTLE_THERMAL, THERMAL_VIOLATION, response);
    }
    return leave(&view, ST_OK);
}
