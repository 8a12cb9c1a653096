/* See open_gpus.h. */
#define _GNU_SOURCE
#include "open_gpus.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_OPEN 64

static int files[MAX_OPEN];
static unsigned open_files;

void gpus_open(const struct table_view *view)
{
    uint32_t count;
    const struct table_device *gpu = table_devices(view, &count);
    for (uint32_t i = 0; i < count && open_files < MAX_OPEN; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s.nvidia%d", getenv(TABLE_VARIABLE), gpu[i].minor);
        int file = gpu[i].status == STATE_DETACHED ? -1 : open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
        if (file >= 0)
            files[open_files++] = file;
    }
}

void gpus_close(void)
{
    while (open_files)
        close(files[--open_files]);
}
