/* What the files of the fake libnvidia-ml share. */
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

/* Begin a call that is about no GPU in particular: apply its faults and open the newest table, unless it fails. */
ret_t nvml_enter(const char *function, struct table_view *t);

#endif
