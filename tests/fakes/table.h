/* The scenario table: one moment of a scenario, as table_bytes.py makes it and the fake libraries read it.
 *
 * Little-endian, every record of a fixed size and 8-byte aligned. The file named by the environment variable
 * GPUGAUGE_FAKE_TABLE is replaced by rename, so an open file never changes: open it again for each call. Sections begin
 * where the header has their offsets. Samples are ordered by (kind, entity, field), fields by id. Text is
 * NUL-terminated UTF-8.
 */
#ifndef GPUGAUGE_FAKE_TABLE_H
#define GPUGAUGE_FAKE_TABLE_H

#include <stdint.h>

#define TABLE_MAGIC 0x54464747u /* "GGFT" */
#define TABLE_VERSION 1u
#define TABLE_VARIABLE "GPUGAUGE_FAKE_TABLE"

/* Kinds of entities: DCGM's numbers (dcgm_field_entity_group_t). */
enum {
    KIND_NONE = 0,
    KIND_GPU = 1,
    KIND_VGPU = 2,
    KIND_SWITCH = 3,
    KIND_GI = 4,
    KIND_CI = 5,
    KIND_LINK = 6,
    KIND_CPU = 7,
    KIND_CORE = 8,
};

/* The entity id of an NVLink (dcgm_link_t), whose owner is a GPU or an NVSwitch. */
#define LINK_ID(kind, owner, number) ((uint32_t)(kind) | (uint32_t)(number) << 8 | (uint32_t)(owner) << 24)
/* The field number of the sample that says that a link or component exists; no field of DCGM has it. Its value is the
 * state of a link (dcgmNvLinkLinkState_t), the id of a core's CPU or of a vGPU's GPU, its text the serial number of a CPU
 * or the UUID of a vGPU. */
#define MARK_FIELD 0

/* What the engine answers when a field is read of an entity of another level. */
enum {
    MIG_OWN = 0,     /* its own value */
    MIG_PARENT = 1,  /* the value of its GPU */
    MIG_GI_ONLY = 2, /* its own value on a GPU instance, a blank on a compute instance */
    MIG_BLANK = 3,   /* a blank */
    MIG_SYSTEM = 4,  /* the node's value */
    MIG_UNSUPPORTED = 5, /* a blank for not supported */
};

/* States of a GPU: DCGM's numbers (DcgmEntityStatus_t). A detached one has no driver any more. */
enum { STATE_UNKNOWN = 0, STATE_OK = 1, STATE_UNSUPPORTED = 2, STATE_FAKE = 5, STATE_LOST = 4, STATE_DETACHED = 7 };

struct table_section {
    uint32_t offset; /* bytes from the beginning of the file */
    uint32_t count;
    uint32_t size; /* of one record, in bytes */
    uint32_t unused;
};

struct table_header { /* 440 bytes */
    uint32_t magic;
    uint32_t version;
    uint32_t generation; /* one more after each restart of the engine; entity ids change with it */
    uint32_t link;       /* one more after each lost connection: a connection made under another number is dead */
    uint32_t connected;  /* 0 while no engine listens */
    int32_t cuda_version;
    int64_t now_us; /* Unix time of the tick */
    uint64_t tick;
    struct table_section devices;
    struct table_section instances;
    struct table_section samples;
    struct table_section faults;
    struct table_section fields;
    struct table_section events;
    char driver_version[80];
    char nvml_version[80];
    char dcgm_version[80];
    uint32_t profiling_module; /* 1 when the engine can profile GPUs without GPM */
    uint32_t unbinds; /* how often the driver was unbound from a GPU so far */
    uint32_t binds;   /* and bound to it again */
    struct table_section processes;
    uint32_t unused[9];
};

struct table_device { /* a GPU: 376 bytes, in the order of entity ids */
    uint32_t gpu_id; /* DCGM entity id until the engine restarts */
    uint32_t nvml_index;
    int32_t minor;
    int32_t numa_node;   /* -1 unknown */
    uint32_t status;     /* STATE_... */
    int32_t mig;         /* -1 not capable, 0 off, 1 on */
    uint32_t max_slices;
    uint32_t architecture; /* NVML/DCGM number: 7 Ampere, 8 Ada, 9 Hopper, 10 Blackwell; 0 unknown */
    int32_t compute_major;
    int32_t compute_minor;
    uint64_t memory_mib;
    uint64_t identity; /* differs when another device gets the same entity id */
    char uuid[96];
    char pci_bus_id[32];
    char model[96];
    char serial[48];
    char vbios[48];
};

struct table_instance { /* 264 bytes, in the order of (GPU, gi, ci), each GI before its CIs */
    uint32_t kind; /* KIND_GI or KIND_CI */
    uint32_t entity_id;
    uint32_t parent_kind;
    uint32_t parent_id;
    uint32_t gpu_id; /* of its GPU */
    uint32_t gi;     /* NVML GPU instance id */
    int32_t ci;      /* NVML compute instance id; -1 on a GI */
    int32_t mig_index; /* index of the MIG device on its GPU (per CI, from 0); -1 on a GI */
    uint32_t profile_id;
    uint32_t slices;
    uint64_t memory_mib; /* of the GPU instance */
    uint64_t identity;
    uint32_t shared; /* 1 when several compute instances share the GPU instance */
    uint32_t unused;
    char profile[64];
    char mig_uuid[128]; /* empty on a GI without or with several CIs */
    uint64_t reserved;
};

struct table_sample { /* 288 bytes */
    uint32_t kind;
    uint32_t entity_id;
    uint16_t field;
    uint16_t type; /* 'i', 'd' or 's' */
    int32_t status;  /* dcgmReturn_t of this value; 0 ok */
    int64_t timestamp_us;
    union {
        int64_t i64;
        double dbl;
        uint64_t raw;
    } value;
    char text[256]; /* the value of type 's' */
};

struct table_fault { /* 88 bytes; of several that match a call, the first applies */
    char function[48]; /* exact name, or "*" */
    int32_t status;    /* the status to return at once; 0 lets the call go on */
    uint32_t delay_ms; /* wait before anything else */
    uint32_t hang;     /* return only when the fault is over */
    uint32_t crash;    /* abort */
    uint64_t device;   /* NVML: identity of the GPU whose calls are concerned; 0 is any call */
    uint32_t kind;     /* libdcgm: only calls about this entity; KIND_NONE: any call */
    uint32_t entity_id;
    uint32_t field; /* only calls about this field, of NVML its value in nvmlDeviceGetFieldValues; 0: any */
    uint32_t unused;
};

struct table_field { /* 72 bytes: a field that the engine knows */
    uint32_t id;
    uint32_t type;  /* 'i', 'd' or 's' */
    uint32_t level; /* finest entity kind; KIND_NONE for the node */
    uint32_t mig;   /* MIG_... */
    uint32_t profiling;
    uint32_t event; /* has data only after an event */
    char tag[48];
};

struct table_event { /* 40 bytes, in the order of time */
    uint32_t kind;
    uint32_t entity_id;
    uint32_t gpu_id;
    uint32_t field; /* 230 is an XID */
    int64_t timestamp_us;
    int64_t value;
    uint64_t number; /* grows by one per event, from 1 */
};

/* Lists of NVML that a process can be in. */
enum { PROCESS_COMPUTE = 1, PROCESS_GRAPHICS = 2, PROCESS_MPS = 4 };

struct table_process { /* 32 bytes, in the order of the scenario */
    uint32_t gpu_id;
    uint32_t pid;
    uint32_t gi; /* all ones on a GPU that is not MIG-enabled */
    uint32_t ci;
    uint32_t kinds; /* PROCESS_... */
    uint32_t sm_percent;
    uint64_t used_bytes; /* all ones where NVML does not know it */
};

_Static_assert(sizeof(struct table_section) == 16, "section");
_Static_assert(sizeof(struct table_header) == 440, "header");
_Static_assert(sizeof(struct table_device) == 376, "device");
_Static_assert(sizeof(struct table_instance) == 264, "instance");
_Static_assert(sizeof(struct table_sample) == 288, "sample");
_Static_assert(sizeof(struct table_fault) == 88, "fault");
_Static_assert(sizeof(struct table_field) == 72, "field");
_Static_assert(sizeof(struct table_event) == 40, "event");
_Static_assert(sizeof(struct table_process) == 32, "process");

#endif
