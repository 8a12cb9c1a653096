/* The fake libdcgm: the status codes and limits of DCGM's C interface, and what its source files share.
 *
 * It answers from the scenario table of table.h and rejects what the real library rejects. DCGM_MAJOR chooses between
 * the limits of DCGM 3 and 4.
 *
 * What libdcgm and nv-hostengine 4.6.0 were seen to answer is in recorded_calls.yaml, which a test makes this library
 * answer too. The engine lives in this process: dcgmShutdown ends it, and with it everything that it has sampled.
 */
#ifndef GPUGAUGE_FAKE_LIBDCGM_H
#define GPUGAUGE_FAKE_LIBDCGM_H

#include <stdint.h>

#include "table_reader.h"

#define API __attribute__((visibility("default")))
#define VERSION_OF(record, number) ((uint32_t)(sizeof(record) | (uint32_t)(number) << 24))

/* dcgmReturn_t */
enum {
    ST_OK = 0,
    ST_BADPARAM = -1,
    ST_GENERIC_ERROR = -3,
    ST_MEMORY = -4,
    ST_NOT_CONFIGURED = -5,
    ST_NOT_SUPPORTED = -6,
    ST_INIT_ERROR = -7,
    ST_UNINITIALIZED = -10,
    ST_VER_MISMATCH = -12,
    ST_NO_DATA = -14,
    ST_NOT_WATCHED = -16,
    ST_UNKNOWN_FIELD = -13,
    ST_GPU_IS_LOST = -18,
    ST_CONNECTION_NOT_VALID = -21,
    ST_GPU_NOT_SUPPORTED = -22,
    ST_MAX_LIMIT = -24,
    ST_DUPLICATE_KEY = -26,
    ST_INSUFFICIENT_SIZE = -31,
    ST_MODULE_NOT_LOADED = -33,
    ST_GPU_DETACHED = -67,
};

enum {
    MAX_DEVICES = 32,
    MAX_GROUPS = 61,       /* of the 64 that the header names (4.6.0, measured) */
    MAX_FIELD_GROUPS = 61, /* likewise */
    MAX_FIELDS = 128,      /* of a read; a field group takes one less */
    CONNECTIONS = 64,
    HOPPER = 9, /* the first architecture with GPM, which needs no profiling module */
    TEXT = 256,
    BLOB = 4096,
    HIERARCHY_ROWS = MAX_DEVICES * 14,
    FV_LIVE = 1,
#if DCGM_MAJOR == 3
    MAX_ENTITIES = 64,
#else
    MAX_ENTITIES = 1024,
#endif
};

/* The lowest blank value of each type (dcgmvalue.h). 1, 2 and 3 above it mean not found, not supported and no
 * permission. */
#define BLANK_I32 0x7ffffff0u
#define BLANK_I64 0x7ffffffffffffff0LL
#define BLANK_DBL 140737488355328.0
/* The fixed handle of the embedded engine, and the ids of the groups that always exist (dcgm_structs.h). */
#define EMBEDDED_HANDLE ((uintptr_t)0x7fffffff)
#define GROUP_ALL_GPUS 0x7fffffffu
#define GROUP_ALL_NVSWITCHES 0x7ffffffeu
#define GROUP_ALL_INSTANCES 0x7ffffffdu
#define GROUP_ALL_COMPUTE 0x7ffffffcu
#define GROUP_ALL_ENTITIES 0x7ffffffbu

typedef int32_t status_t;
typedef uintptr_t handle_t;

#include "libdcgm_records.h"

/* What the engine has sampled of one field of one entity, and who watches it. The last sample stays for good. */
struct watch {
    uint32_t kind;
    uint32_t id;
    uint32_t field;
    int has_last;
    uint64_t watchers;     /* one bit for each connection, by its slot */
    uint64_t identity;     /* differs from the table's when the entity id means another device now */
    int64_t profiled_from; /* Unix time in microseconds: a profiling field is blank before */
    struct table_sample last;
};

struct group {
    int used;
    uint32_t id;
    handle_t handle;
    uint8_t watched[(1 << 16) / 8]; /* one bit for each field that is watched through this group */
    uint32_t health_systems; /* the health checks that are asked for, as bits */
    uint32_t count;
    struct table_entity entities[MAX_ENTITIES];
};

struct field_group {
    int used;
    uint32_t id;
    handle_t handle;
    char name[TEXT];
    uint32_t count;
    uint16_t fields[MAX_FIELDS];
};

/* libdcgm_engine.c: one lock over everything. `enter` takes it and opens the table, `leave` releases both. */
status_t enter(const char *function, handle_t handle, struct table_view *view);
status_t leave(struct table_view *view, status_t status);
uint64_t identity_of(const struct table_view *view, uint32_t kind, uint32_t id);
const struct table_device *gpu_of(const struct table_view *view, struct table_entity entity);
int slot_of(handle_t handle);

/* libdcgm_listening.c */
int something_listens(const char *address, int is_unix_socket);

/* libdcgm_watch.c */
void forget_watches(handle_t handle);
void forget_samples(void);
void unwatch_group(const struct table_view *view, handle_t handle, struct group *group);
struct table_sample cached_sample(const struct table_view *view, struct table_entity entity,
                                  const struct table_field *field);

/* libdcgm_group.c */
void forget_handle(handle_t handle);
int is_group(uint32_t id);
struct group *find_group(uint32_t id);
struct field_group *find_field_group(uint32_t id);
uint32_t members(const struct table_view *view, uint32_t group_id, struct table_entity *into);

/* libdcgm_component.c */
int is_marked(const struct table_view *view, uint32_t kind, uint32_t id);
uint32_t marked(const struct table_view *view, uint32_t kind, struct table_entity *into, uint32_t room);

/* libdcgm_sample.c */
int updated(const struct table_view *view, struct table_entity entity);
void put_blank(struct table_sample *sample, struct table_entity entity, const struct table_field *field, int32_t status,
               int64_t timestamp, int step);
void current_sample(const struct table_view *view, struct table_entity entity, const struct table_field *field,
                    struct table_sample *sample);
struct table_sample live_sample(const struct table_view *view, struct table_entity entity, uint16_t number);
int is_nvml_field(uint32_t number);

#endif
