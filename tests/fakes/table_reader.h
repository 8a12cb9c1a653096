/* Reads the scenario table of table.h: opens the newest one, finds rows, applies its faults. */
#ifndef GPUGAUGE_FAKE_TABLE_READER_H
#define GPUGAUGE_FAKE_TABLE_READER_H

#include <stddef.h>

#include "table.h"

struct table_view {
    const unsigned char *base;
    size_t size;
    const struct table_header *header;
};

/* 0, or -1 when there is no complete table of this version. */
int table_open(struct table_view *view);
void table_close(struct table_view *view);

const struct table_device *table_devices(const struct table_view *view, uint32_t *count);
const struct table_instance *table_instances(const struct table_view *view, uint32_t *count);
const struct table_event *table_events(const struct table_view *view, uint32_t *count);
const struct table_sample *table_samples(const struct table_view *view, uint32_t *count);
const struct table_field *table_fields(const struct table_view *view, uint32_t *count);

/* Each gives NULL where there is no such row. */
const struct table_device *table_device(const struct table_view *view, uint32_t gpu_id);
const struct table_instance *table_instance(const struct table_view *view, uint32_t kind, uint32_t entity_id);
const struct table_field *table_field(const struct table_view *view, uint32_t id);
const struct table_sample *table_sample(const struct table_view *view, uint32_t kind, uint32_t entity_id,
                                        uint32_t field);

/* Waits, hangs or aborts if the table has such a fault for this function. Gives the status to return; 0 lets the call
 * go on. */
int table_fault(const char *function);

/* The same for a call that is about the GPU with this UUID, or about none in particular (NULL). */
int table_fault_on(const char *function, const char *uuid);

struct table_entity {
    uint32_t kind;
    uint32_t id;
};

/* The same for a fault of calls that are about one entity or one field: the first that this call is about. */
int table_fault_about(const struct table_view *view, const char *function, const struct table_entity *entities,
                      uint32_t entity_count, const uint16_t *fields, uint32_t field_count);

#endif
