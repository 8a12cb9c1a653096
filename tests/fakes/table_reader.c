/* See table_reader.h. */
#define _GNU_SOURCE
#include "table_reader.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Whether a section has records of this size and ends within the file. */
static int in_file(const struct table_view *view, const struct table_section *section, size_t size)
{
    uint64_t end = section->offset + (uint64_t)section->count * size;
    return section->size == size && end <= view->size;
}

static int complete(const struct table_view *view)
{
    const struct table_header *h = view->header;
    return view->size >= sizeof *h && h->magic == TABLE_MAGIC && h->version == TABLE_VERSION &&
           in_file(view, &h->devices, sizeof(struct table_device)) &&
           in_file(view, &h->instances, sizeof(struct table_instance)) &&
           in_file(view, &h->samples, sizeof(struct table_sample)) &&
           in_file(view, &h->faults, sizeof(struct table_fault)) &&
           in_file(view, &h->fields, sizeof(struct table_field)) &&
           in_file(view, &h->events, sizeof(struct table_event)) &&
           in_file(view, &h->processes, sizeof(struct table_process));
}

int table_open(struct table_view *view)
{
    const char *path = getenv(TABLE_VARIABLE);
    struct stat status;
    memset(view, 0, sizeof *view);
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return -1;
    if (fstat(file, &status) != 0 || status.st_size < (off_t)sizeof(struct table_header)) {
        close(file);
        return -1;
    }
    void *base = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (base == MAP_FAILED)
        return -1;
    view->base = base;
    view->size = (size_t)status.st_size;
    view->header = base;
    if (!complete(view)) {
        table_close(view);
        return -1;
    }
    return 0;
}

void table_close(struct table_view *view)
{
    if (view->base)
        munmap((void *)(uintptr_t)view->base, view->size);
    memset(view, 0, sizeof *view);
}

static const void *rows(const struct table_view *view, const struct table_section *section, uint32_t *count)
{
    *count = section->count;
    return view->base + section->offset;
}

const struct table_device *table_devices(const struct table_view *view, uint32_t *count)
{
    return rows(view, &view->header->devices, count);
}

const struct table_instance *table_instances(const struct table_view *view, uint32_t *count)
{
    return rows(view, &view->header->instances, count);
}

const struct table_event *table_events(const struct table_view *view, uint32_t *count)
{
    return rows(view, &view->header->events, count);
}

const struct table_sample *table_samples(const struct table_view *view, uint32_t *count)
{
    return rows(view, &view->header->samples, count);
}

const struct table_field *table_fields(const struct table_view *view, uint32_t *count)
{
    return rows(view, &view->header->fields, count);
}

const struct table_device *table_device(const struct table_view *view, uint32_t gpu_id)
{
    uint32_t count;
    const struct table_device *row = table_devices(view, &count);
    for (uint32_t i = 0; i < count; i++)
        if (row[i].gpu_id == gpu_id)
            return &row[i];
    return NULL;
}

const struct table_instance *table_instance(const struct table_view *view, uint32_t kind, uint32_t entity_id)
{
    uint32_t count;
    const struct table_instance *row = table_instances(view, &count);
    for (uint32_t i = 0; i < count; i++)
        if (row[i].kind == kind && row[i].entity_id == entity_id)
            return &row[i];
    return NULL;
}

static int compare_field(const void *key, const void *row)
{
    uint32_t id = *(const uint32_t *)key, other = ((const struct table_field *)row)->id;
    return (id > other) - (id < other);
}

const struct table_field *table_field(const struct table_view *view, uint32_t id)
{
    uint32_t count;
    const struct table_field *row = table_fields(view, &count);
    return bsearch(&id, row, count, sizeof *row, compare_field);
}

static int compare_sample(const void *key, const void *row)
{
    const struct table_sample *a = key, *b = row;
    if (a->kind != b->kind)
        return a->kind > b->kind ? 1 : -1;
    if (a->entity_id != b->entity_id)
        return a->entity_id > b->entity_id ? 1 : -1;
    return (a->field > b->field) - (a->field < b->field);
}

const struct table_sample *table_sample(const struct table_view *view, uint32_t kind, uint32_t entity_id,
                                        uint32_t field)
{
    struct table_sample key = {.kind = kind, .entity_id = entity_id, .field = (uint16_t)field};
    uint32_t count;
    const struct table_sample *row = rows(view, &view->header->samples, &count);
    return bsearch(&key, row, count, sizeof *row, compare_sample);
}

static void wait_ms(uint32_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L};
    while (nanosleep(&left, &left) != 0)
        continue;
}

static uint64_t identity_of(const struct table_view *view, const char *uuid)
{
    uint32_t count;
    const struct table_device *row = table_devices(view, &count);
    for (uint32_t i = 0; uuid && i < count; i++)
        if (strcmp(row[i].uuid, uuid) == 0)
            return row[i].identity;
    return 0;
}

static int is_about_all(const struct table_fault *fault)
{
    return fault->kind == KIND_NONE && fault->field == 0 && fault->device == 0;
}

static int is_of(const struct table_fault *fault, const char *function)
{
    return strcmp(fault->function, "*") == 0 || strcmp(fault->function, function) == 0;
}

/* Of a call that is about the GPU with this UUID, or about none in particular (NULL). */
static int find_fault(const char *function, const char *uuid, struct table_fault *fault)
{
    struct table_view view;
    uint32_t count;
    int found = 0;
    if (table_open(&view) != 0)
        return 0;
    const struct table_fault *row = rows(&view, &view.header->faults, &count);
    for (uint32_t i = 0; i < count && !found; i++) {
        found = is_of(&row[i], function) && row[i].field == 0 &&
                (is_about_all(&row[i]) || (row[i].device && row[i].device == identity_of(&view, uuid)));
        if (found)
            *fault = row[i];
    }
    table_close(&view);
    return found;
}

/* Waits until the fault is over, as `find_fault` gives it, before it returns the status. */
static int apply(struct table_fault *fault, const char *function, const char *uuid)
{
    if (fault->crash)
        abort();
    wait_ms(fault->delay_ms);
    int status = fault->status;
    while (fault->hang) {
        wait_ms(10);
        if (!find_fault(function, uuid, fault))
            break;
    }
    return status;
}

int table_fault_on(const char *function, const char *uuid)
{
    struct table_fault fault;
    return find_fault(function, uuid, &fault) ? apply(&fault, function, uuid) : 0;
}

int table_fault(const char *function)
{
    return table_fault_on(function, NULL);
}

static int is_about_entity(const struct table_fault *fault, const struct table_entity *entities, uint32_t count)
{
    int found = fault->kind == KIND_NONE;
    for (uint32_t i = 0; i < count && !found; i++)
        found = entities[i].kind == fault->kind && entities[i].id == fault->entity_id;
    return found;
}

static int is_about_field(const struct table_fault *fault, const uint16_t *fields, uint32_t count)
{
    int found = fault->field == 0;
    for (uint32_t i = 0; i < count && !found; i++)
        found = fields[i] == fault->field;
    return found;
}

/* A fault about one entity or field does not hang: it returns a status, is slow or aborts. */
int table_fault_about(const struct table_view *view, const char *function, const struct table_entity *entities,
                      uint32_t entity_count, const uint16_t *fields, uint32_t field_count)
{
    uint32_t count;
    const struct table_fault *row = rows(view, &view->header->faults, &count);
    for (uint32_t i = 0; i < count; i++)
        if (!is_about_all(&row[i]) && is_of(&row[i], function) && is_about_entity(&row[i], entities, entity_count) &&
            is_about_field(&row[i], fields, field_count)) {
            if (row[i].crash)
                abort();
            wait_ms(row[i].delay_ms);
            while (row[i].hang)
                pause();
            return row[i].status;
        }
    return 0;
}
