/* The GPUs that a process has open, as a process with the real libraries has /dev/nvidia0 and so on. */
#ifndef GPUGAUGE_FAKE_OPEN_GPUS_H
#define GPUGAUGE_FAKE_OPEN_GPUS_H

#include "table_reader.h"

/* Opens every GPU that has a driver: the file beside the table whose name ends in `.nvidiaN`, N its minor number. */
void gpus_open(const struct table_view *view);
void gpus_close(void);

#endif
