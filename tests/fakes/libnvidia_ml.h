/* A fake libnvidia-ml.so.1: the part of NVML that pynvml and the exporter use. Every value comes from the flat table.
 *
 * It returns the errors of the real library: for calls before nvmlInit (1), handles that are not its own or are from
 * before a shutdown (2), buffers that are too small (7), records of another version (25), and any call on a lost GPU
 * (15). Record layouts are those of nvml.h as pynvml declares them.
 * With -DOLD_DRIVER the newer functions (memory v2, TemperatureV, ClocksEventReasons, GPM, the
 * NVLink fabric, system events, processes with MIG ids) are missing.
 *
 * This header has what its files share.
 */
#ifndef GPUGAUGE_FAKE_LIBNVIDIA_ML_H
#define GPUGAUGE_FAKE_LIBNVIDIA_ML_H

#include "table_reader.h"

typedef int ret_t;
/* Return codes of nvml.h. */
enum {
    OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15, NO_MEMORY = 20, NO_DATA = 21,
    VERSION_MISMATCH = 25, UNKNOWN = 999
};

#define NO_ID 0xFFFFFFFFu
#define MIB (1ULL << 20)
#define MAX_GPUS 64
#define RECORDS(t, type, section) ((const struct type *)((t)->base + (t)->header->section.offset))

struct nvml_device {
    unsigned session; /* in which the handle was returned */
    char uuid[96];    /* of the GPU */
    uint32_t gi;      /* NO_ID on a GPU */
    int32_t ci;
    uint64_t identity; /* of the instance */
};
typedef struct nvml_device *device_t;

/* The devices that one call is about. */
struct call {
    struct table_view t;
    const struct table_device *gpu;
    const struct table_instance *instance; /* of a MIG device: its compute instance */
};

#pragma GCC visibility push(hidden)

extern char gpus[MAX_GPUS][96]; /* UUIDs by NVML index, as they were at initialization */
extern unsigned gpu_count;

/* libnvidia_ml_table.c */
const struct table_device *gpu_by_uuid(const struct table_view *t, const char *uuid);
const struct table_instance *instance_of(const struct table_view *t, uint32_t gpu_id, uint32_t gi, int32_t ci);
ret_t number(const struct table_view *t, uint32_t kind, uint32_t entity, uint16_t field, double *out, int64_t *whole);
int64_t wall_us(void);
void sleep_ms(unsigned milliseconds);
ret_t fault(const char *function, const char *uuid);

/* libnvidia_ml_session.c */
device_t handle_for(const char *uuid, uint32_t gi, int32_t ci, uint64_t identity);
int is_gone(const struct table_device *gpu);
ret_t resolve(struct call *c, device_t d);
/* A call begins: its faults are applied and the newest table is open, unless it fails. About the system, about a GPU
 * by its UUID (or NULL), about any device, and about a GPU alone. */
ret_t enter(struct call *c, const char *function);
ret_t enter_of(struct call *c, const char *function, const char *uuid);
ret_t enter_device(struct call *c, const char *function, device_t d);
ret_t enter_gpu(struct call *c, const char *function, device_t d);
ret_t leave(struct call *c, ret_t r);
/* As `enter`, for a call that needs only the table. */
ret_t nvml_enter(const char *function, struct table_view *t);

/* A call about one entity that has no handle: its own faults are applied too. */
ret_t enter_entity(struct call *c, const char *function, uint32_t kind, uint32_t id);

/* libnvidia_ml_gpu.c */
ret_t return_gpu(struct call *c, const char *uuid, device_t *out);
ret_t return_mig_device(struct call *c, const struct table_instance *ci, device_t *out);

/* libnvidia_ml_value.c */
const char *gpu_text(const struct call *c, uint16_t field);
ret_t copy_text(const char *text, char *out, unsigned size);
ret_t gpu_number(struct call *c, uint16_t field, double *out, int64_t *whole);
ret_t own_number(struct call *c, uint16_t field, double *out, int64_t *whole);
ret_t plain(const char *function, device_t d, uint16_t field, double scale, int not_under_mig, unsigned *out);
ret_t long_plain(const char *function, device_t d, uint16_t field, unsigned long long *out);

/* libnvidia_ml_link.c */
ret_t link_number(struct call *c, unsigned link, uint16_t field, double *out, int64_t *whole);

#pragma GCC visibility pop

#define ENTER(c, outcome)                                                                                              \
    struct call c;                                                                                                     \
    do {                                                                                                               \
        ret_t entered = outcome;                                                                                       \
        if (entered != OK)                                                                                             \
            return entered;                                                                                            \
    } while (0)

#define PLAIN(function, field, scale)                                                                                  \
    ret_t function(device_t d, unsigned *out) { return plain(__func__, d, field, scale, 0, out); }

#endif
