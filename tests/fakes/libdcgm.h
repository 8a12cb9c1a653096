/* The fake libdcgm: the records and status codes of DCGM's C interface that it has, and what its source files share.
 *
 * It answers from the scenario table of table.h and rejects what the real library rejects. The layouts are those of the
 * headers of DCGM 3.1.8 to 4.6.0, which are the same in all of these versions; sizes are checked at the end. DCGM_MAJOR
 * chooses between the limits of 3 and 4.
 *
 * Where libdcgm and nv-hostengine 4.6.0 were measured to answer otherwise, a comment beginning with "4.6.0:" is next to
 * the code. Not next to any code: a profiling watch is accepted for every GPU here, while 4.6.0 rejects it with -33 for
 * a whole group if one GPU has neither GPM nor the profiling module; the first value of a profiling field is there at
 * once here, while 4.6.0 has a blank until one interval later; and a read has no limit here, while 4.6.0 answers -31
 * above 130,688 numbers or 119,552 texts.
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
    ST_CONNECTION_NOT_VALID = -21,
    ST_MAX_LIMIT = -24,
    ST_DUPLICATE_KEY = -26,
    ST_INSUFFICIENT_SIZE = -31,
};

enum {
    MAX_DEVICES = 32,
    MAX_GROUPS = 64,       /* 4.6.0: 61 can be made */
    MAX_FIELD_GROUPS = 64, /* 4.6.0: 61 can be made */
    MAX_FIELDS = 128,      /* of a read; a field group takes one less */
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

struct entity {
    uint32_t kind;
    uint32_t id;
};

union value {
    int64_t i64;
    double dbl;
    char str[TEXT];
    char blob[BLOB];
};

/* What dcgmGetValuesSince_v2 hands to its callback. */
struct value_v1 {
    uint32_t version;
    uint16_t field;
    uint16_t type;
    int32_t status;
    int64_t timestamp;
    union value value;
};

/* What dcgmEntitiesGetLatestValues writes. */
struct value_v2 {
    uint32_t version;
    uint32_t kind;
    uint32_t entity_id;
    uint16_t field;
    uint16_t type;
    int32_t status;
    uint32_t unused;
    int64_t timestamp;
    union value value;
};

struct connect_v2 {
    uint32_t version;
    uint32_t persist;
    uint32_t timeout_ms;
    uint32_t is_unix_socket;
};

struct embedded_v1 {
    uint32_t version;
    uint32_t mode;
    handle_t handle;
    const char *log_file;
    uint32_t severity;
    uint32_t deny_count;
    uint32_t deny[10];
};

struct embedded_v2 {
    uint32_t version;
    uint32_t mode;
    handle_t handle;
    const char *log_file;
    uint32_t severity;
    uint32_t deny_count;
    const char *account;
    uint32_t deny[10];
};

struct embedded_v3 {
    uint32_t version;
    uint32_t mode;
    handle_t handle;
    const char *log_file;
    uint32_t severity;
    uint32_t deny_count;
    const char *account;
    uint32_t deny[16];
};

struct attributes_v3 {
    uint32_t version;
    uint32_t clocks_version;
    uint32_t clock_count;
    uint32_t clocks[256][3];
    uint32_t thermal[3];
    uint32_t power[6];
    uint32_t identifiers_version;
    char brand[TEXT];
    char name[TEXT];
    char pci_bus_id[TEXT];
    char serial[TEXT];
    char uuid[TEXT];
    char vbios[TEXT];
    char inforom[TEXT];
    uint32_t pci_device;
    uint32_t pci_subsystem;
    char driver[TEXT];
    uint32_t virtualization;
    uint32_t memory_version;
    uint32_t bar1_total;
    uint32_t fb_total;
    uint32_t fb_used;
    uint32_t fb_free;
    uint32_t settings_version;
    uint32_t persistence;
    uint32_t mig;
    uint32_t confidential;
};

struct mig_row {
    struct entity entity;
    struct entity parent;
    char uuid[128];
    uint32_t index;
    uint32_t gi;
    uint32_t ci;
    uint32_t profile;
    uint32_t slices;
};

struct hierarchy_v2 {
    uint32_t version;
    uint32_t count;
    struct mig_row rows[HIERARCHY_ROWS];
};

struct metric_group {
    uint16_t major;
    uint16_t minor;
    uint32_t count;
    uint16_t fields[64];
};

struct metric_groups_v3 {
    uint32_t version;
    uint32_t unused;
    uint32_t gpu_id;
    uint32_t count;
    struct metric_group groups[10];
};

struct modules_v1 {
    uint32_t version;
    uint32_t count;
    struct {
        uint32_t id;
        uint32_t status;
    } modules[16];
};

struct version_info_v2 {
    uint32_t version;
    char text[512];
};

struct health_v1 {
    uint32_t version;
    uint32_t health;
};

struct field_meta {
    uint16_t id;
    char type;
    uint8_t size;
    char tag[48];
    int32_t scope;
    int32_t nvml_id;
    uint32_t level;
    const void *format;
};

/* One watched field of one entity. `identity` differs from the table's when the entity id means another device now. */
struct watch {
    handle_t handle;
    uint32_t kind;
    uint32_t id;
    uint32_t field;
    int active;
    uint64_t identity;
    int has_last;
    struct table_sample last;
};

struct group {
    int used;
    uint32_t id;
    handle_t handle;
    uint32_t count;
    struct entity entities[MAX_ENTITIES];
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

/* libdcgm_watch.c */
void forget_watches(handle_t handle);
struct watch *find_watch(handle_t handle, uint32_t kind, uint32_t id, uint32_t field);

/* libdcgm_group.c */
void forget_handle(handle_t handle);
int is_group(uint32_t id);
struct group *find_group(uint32_t id);
struct field_group *find_field_group(uint32_t id);
uint32_t members(const struct table_view *view, uint32_t group_id, struct entity *into);

/* libdcgm_read.c */
void current_sample(const struct table_view *view, struct entity entity, const struct table_field *field,
                    struct table_sample *sample);
struct table_sample watched_sample(const struct table_view *view, handle_t handle, struct entity entity,
                                   const struct table_field *field);

_Static_assert(sizeof(struct value_v1) == 4120, "field value v1");
_Static_assert(sizeof(struct value_v2) == 4128, "field value v2");
_Static_assert(sizeof(struct connect_v2) == 16, "connect parameters v2");
_Static_assert(sizeof(struct attributes_v3) == 5220, "device attributes v3");
_Static_assert(sizeof(struct hierarchy_v2) == 73480, "MIG hierarchy v2");
_Static_assert(sizeof(struct metric_groups_v3) == 1376, "metric groups v3");
_Static_assert(sizeof(struct modules_v1) == 136, "module statuses v1");
_Static_assert(sizeof(struct version_info_v2) == 516, "version info v2");
_Static_assert(sizeof(struct field_meta) == 72, "field meta");

#endif
