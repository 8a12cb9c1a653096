/* Which components (NVSwitches and their NVLinks) there are. See libdcgm.h. */
#include "libdcgm.h"

#include <stddef.h>

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
