/* Start, stop and connections: whether a call is answered at all. See libdcgm.h. */
#include "libdcgm.h"
#include "open_gpus.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct connection {
    handle_t handle; /* 0: unused */
    uint32_t link;   /* the table's when the connection was made */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct connection connections[CONNECTIONS];
static handle_t next_handle = 1;
static int initialized;

static struct connection *find_connection(handle_t handle)
{
    for (int i = 0; i < CONNECTIONS; i++)
        if (handle != 0 && connections[i].handle == handle)
            return &connections[i];
    return NULL;
}

/* The number of a connection, below CONNECTIONS; -1 for a handle of none. */
int slot_of(handle_t handle)
{
    const struct connection *connection = find_connection(handle);
    return connection ? (int)(connection - connections) : -1;
}

/* Before 4.5 an engine keeps the GPUs open as long as it runs. From then on it closes all of them when the driver is
 * unbound from one or bound to one, and opens those that have a driver (source). It does so by a thread of its own, which
 * this engine does not have: it has none open. */
static int keeps_gpus_open(const struct table_header *header)
{
    int major = 0, minor = 0;
    return sscanf(header->dcgm_version, "%d.%d", &major, &minor) == 2 && major * 100 + minor < 405;
}

/* Whenever it closes and opens the GPUs, the watches of groups that a client made are gone (source). */
static void forget_watches_of_closed_gpus(const struct table_header *header)
{
    static uint32_t changes;
    uint32_t now = header->unbinds + header->binds;
    for (int i = 0; i < CONNECTIONS && changes != now && !keeps_gpus_open(header); i++)
        if (connections[i].handle != 0)
            forget_watches(connections[i].handle);
    changes = now;
}

/* A connection from before a loss stays dead, whatever comes after: the library never reconnects (4.6.0, source).
 * Before dcgmInit and after dcgmShutdown a call has -21, and with handle 0 -1 (4.6.0, measured). */
static status_t admit(handle_t handle, struct table_view *view)
{
    const struct connection *connection = find_connection(handle);
    if (handle == 0)
        return ST_BADPARAM;
    if (!initialized || !connection || table_open(view) != 0)
        return ST_CONNECTION_NOT_VALID;
    if (!view->header->connected || view->header->link != connection->link)
        return ST_CONNECTION_NOT_VALID;
    forget_watches_of_closed_gpus(view->header);
    return ST_OK;
}

status_t enter(const char *function, handle_t handle, struct table_view *view)
{
    memset(view, 0, sizeof *view);
    status_t status = table_fault(function);
    if (status != ST_OK)
        return status;
    pthread_mutex_lock(&lock);
    status = admit(handle, view);
    if (status != ST_OK) {
        table_close(view);
        pthread_mutex_unlock(&lock);
    }
    return status;
}

status_t leave(struct table_view *view, status_t status)
{
    table_close(view);
    pthread_mutex_unlock(&lock);
    return status;
}

uint64_t identity_of(const struct table_view *view, uint32_t kind, uint32_t id)
{
    if (kind == KIND_NONE)
        return 1;
    if (kind == KIND_GPU) {
        const struct table_device *device = table_device(view, id);
        return device ? device->identity : 0;
    }
    if (kind == KIND_SWITCH || kind == KIND_CPU || kind == KIND_CORE ||
        (kind == KIND_LINK && (id & 0xff) == KIND_SWITCH))
        return is_marked(view, kind, id) ? view->header->generation + 1 : 0;
    if (kind == KIND_LINK) {
        const struct table_device *device = table_device(view, id >> 24);
        return device && is_marked(view, kind, id) ? device->identity : 0;
    }
    const struct table_instance *instance = table_instance(view, kind, id);
    return instance ? instance->identity : 0;
}

/* The GPU of a GPU, GPU instance or compute instance; NULL when there is none. */
const struct table_device *gpu_of(const struct table_view *view, struct table_entity entity)
{
    if (entity.kind == KIND_GPU)
        return table_device(view, entity.id);
    if (entity.kind == KIND_LINK)
        return (entity.id & 0xff) == KIND_GPU ? table_device(view, entity.id >> 24) : NULL;
    const struct table_instance *instance = table_instance(view, entity.kind, entity.id);
    return instance ? table_device(view, instance->gpu_id) : NULL;
}

static void drop(struct connection *connection)
{
    forget_handle(connection->handle);
    connection->handle = 0;
}

/* The engine drops groups, field groups and watches of lost connections. An engine that was restarted has no samples. */
static void forget_lost_connections(const struct table_header *header)
{
    static uint32_t generation;
    for (int i = 0; i < CONNECTIONS; i++)
        if (connections[i].handle != 0 && connections[i].link != header->link)
            forget_handle(connections[i].handle);
    if (generation != header->generation)
        forget_samples();
    generation = header->generation;
}

static status_t make_connection(handle_t handle, uint32_t link)
{
    struct connection *entry = find_connection(handle);
    for (int i = 0; !entry && i < CONNECTIONS; i++)
        if (connections[i].handle == 0)
            entry = &connections[i];
    for (int i = 0; !entry && i < CONNECTIONS; i++)
        if (connections[i].link != link)
            entry = &connections[i];
    if (!entry)
        return ST_MAX_LIMIT;
    entry->handle = handle;
    entry->link = link;
    return ST_OK;
}

API status_t dcgmInit(void)
{
    status_t status = table_fault("dcgmInit");
    if (status == ST_OK) {
        pthread_mutex_lock(&lock);
        initialized = 1;
        pthread_mutex_unlock(&lock);
    }
    return status;
}

API status_t dcgmShutdown(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < CONNECTIONS; i++)
        drop(&connections[i]);
    forget_samples();
    gpus_close();
    initialized = 0;
    pthread_mutex_unlock(&lock);
    return ST_OK;
}

static status_t attach(int embedded, handle_t *handle)
{
    struct table_view view;
    if (!initialized)
        return ST_UNINITIALIZED;
    if (embedded && find_connection(EMBEDDED_HANDLE))
        return ST_OK; /* it runs already; as in 4.6.0, the handle is not set */
    if (table_open(&view) != 0)
        return embedded ? ST_INIT_ERROR : ST_CONNECTION_NOT_VALID;
    status_t status = ST_CONNECTION_NOT_VALID;
    if (view.header->connected || embedded) {
        forget_lost_connections(view.header);
        handle_t made = embedded ? EMBEDDED_HANDLE : next_handle++;
        status = make_connection(made, view.header->link);
        if (status == ST_OK)
            *handle = made;
        if (status == ST_OK && embedded && keeps_gpus_open(view.header))
            gpus_open(&view);
    }
    table_close(&view);
    return status;
}

static status_t attach_locked(const char *function, int embedded, handle_t *handle)
{
    status_t status = table_fault(function);
    if (status != ST_OK)
        return status;
    pthread_mutex_lock(&lock);
    status = attach(embedded, handle);
    pthread_mutex_unlock(&lock);
    return status;
}

/* Attempts every 50 ms until the timeout is over, also when the port refuses connections (4.6.0, measured). */
static status_t connect_within(uint32_t timeout_ms, const char *address, int is_unix_socket, handle_t *handle)
{
    const struct timespec pause = {.tv_nsec = 50 * 1000000L};
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t end = now.tv_sec * 1000L + now.tv_nsec / 1000000L + (timeout_ms ? timeout_ms : 5000);
    status_t status;
    do {
        status = something_listens(address, is_unix_socket) ? attach_locked("dcgmConnect_v2", 0, handle)
                                                            : ST_CONNECTION_NOT_VALID;
        if (status != ST_CONNECTION_NOT_VALID)
            return status;
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec * 1000L + now.tv_nsec / 1000000L < end);
    return status;
}

API status_t dcgmConnect_v2(const char *address, const struct connect_v2 *parameters, handle_t *handle)
{
    if (!address || !address[0] || !parameters || !handle)
        return ST_BADPARAM;
    if (!initialized)
        return ST_UNINITIALIZED;
    if (parameters->version != VERSION_OF(struct connect_v2, 2) && parameters->version != (8u | 1u << 24))
        return ST_VER_MISMATCH;
    int is_unix_socket = parameters->version == VERSION_OF(struct connect_v2, 2) && parameters->is_unix_socket;
    return connect_within(parameters->timeout_ms, address, is_unix_socket, handle);
}

#if DCGM_MAJOR >= 4
/* Version 4.5 and newer (header). Any vsock address leads to the table's engine: that of a virtual machine is rare. */
API status_t dcgmConnect_v3(const char *url, const struct url_connect_v1 *parameters, handle_t *handle)
{
    if (!url || !parameters || !handle || strncmp(url, "vsock://", 8) != 0)
        return ST_BADPARAM;
    if (!initialized)
        return ST_UNINITIALIZED;
    if (parameters->version != VERSION_OF(struct url_connect_v1, 1))
        return ST_VER_MISMATCH;
    return attach_locked("dcgmConnect_v3", 0, handle);
}
#endif

API status_t dcgmDisconnect(handle_t handle)
{
    status_t status = table_fault("dcgmDisconnect");
    if (status != ST_OK)
        return status;
    pthread_mutex_lock(&lock);
    struct connection *connection = find_connection(handle);
    if (connection && handle != EMBEDDED_HANDLE)
        drop(connection);
    pthread_mutex_unlock(&lock);
    return ST_OK;
}

static int known_version(uint32_t version)
{
#if DCGM_MAJOR >= 4
    if (version == VERSION_OF(struct embedded_v3, 3))
        return 1;
#endif
    return version == VERSION_OF(struct embedded_v1, 1) || version == VERSION_OF(struct embedded_v2, 2);
}

API status_t dcgmStartEmbedded_v2(struct embedded_v1 *parameters)
{
    if (!parameters)
        return ST_BADPARAM;
    if (!known_version(parameters->version))
        return ST_VER_MISMATCH;
    if (parameters->mode != 1 && parameters->mode != 2)
        return ST_BADPARAM;
    return attach_locked("dcgmStartEmbedded_v2", 1, &parameters->handle);
}

API status_t dcgmStartEmbedded(uint32_t mode, handle_t *handle)
{
    struct embedded_v1 parameters = {.version = VERSION_OF(struct embedded_v1, 1), .mode = mode};
    if (!handle)
        return ST_BADPARAM;
    status_t status = table_fault("dcgmStartEmbedded");
    if (status != ST_OK)
        return status;
    status = dcgmStartEmbedded_v2(&parameters);
    if (status == ST_OK)
        *handle = parameters.handle;
    return status;
}

API status_t dcgmStopEmbedded(handle_t handle)
{
    if (!initialized)
        return ST_UNINITIALIZED;
    if (handle != EMBEDDED_HANDLE)
        return ST_BADPARAM;
    status_t status = table_fault("dcgmStopEmbedded");
    if (status != ST_OK)
        return status;
    pthread_mutex_lock(&lock);
    struct connection *connection = find_connection(handle);
    if (connection) {
        drop(connection);
        forget_samples(); /* the engine ends with it */
        gpus_close();
    }
    pthread_mutex_unlock(&lock);
    return ST_OK;
}
