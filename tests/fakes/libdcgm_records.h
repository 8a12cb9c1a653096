/* The records of DCGM's C interface that the fake libdcgm has; libdcgm.h includes it behind the types that it needs.
 *
 * The layouts are those of the headers of DCGM 3.1.8 to 4.6.0, which are the same in all of these versions.
 */
#ifndef GPUGAUGE_FAKE_LIBDCGM_RECORDS_H
#define GPUGAUGE_FAKE_LIBDCGM_RECORDS_H

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

struct url_connect_v1 {
    uint32_t version;
    uint32_t persist;
    uint32_t timeout_ms;
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
    struct table_entity entity;
    struct table_entity parent;
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

struct p2p_v1 {
    uint32_t version;
    uint32_t count;
    struct {
        uint32_t id;
        int32_t status[MAX_DEVICES];
    } gpus[MAX_DEVICES];
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

_Static_assert(sizeof(struct value_v1) == 4120, "field value v1");
_Static_assert(sizeof(struct value_v2) == 4128, "field value v2");
_Static_assert(sizeof(struct connect_v2) == 16, "connect parameters v2");
_Static_assert(sizeof(struct url_connect_v1) == 12, "connect parameters of a URL v1");
_Static_assert(sizeof(struct attributes_v3) == 5220, "device attributes v3");
_Static_assert(sizeof(struct hierarchy_v2) == 73480, "MIG hierarchy v2");
_Static_assert(sizeof(struct metric_groups_v3) == 1376, "metric groups v3");
_Static_assert(sizeof(struct p2p_v1) == 4232, "P2P status v1");
_Static_assert(sizeof(struct modules_v1) == 136, "module statuses v1");
_Static_assert(sizeof(struct version_info_v2) == 516, "version info v2");
_Static_assert(sizeof(struct field_meta) == 72, "field meta");

#endif
