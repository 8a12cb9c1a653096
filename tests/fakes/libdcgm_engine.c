/* Start, stop and connections: whether a call is answered at all. See libdcgm.h. */
#include "libdcgm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS = 64 };

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

/* A connection from before a loss stays dead, whatever comes after: the library never reconnects (4.6.0, source).
 * 4.6.0: -21 instead of -10 before dcgmInit and after dcgmShutdown, and -1 for handle 0. */
static status_t admit(handle_t handle, struct table_view *view)
{
    const struct connection *connection = find_connection(handle);
    if (!initialized)
        return ST_UNINITIALIZED;
    if (!connection || table_open(view) != 0)
        return ST_CONNECTION_NOT_VALID;
    if (!view->header->connected || view->header->link != connection->link)
        return ST_CONNECTION_NOT_VALID;
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
    const struct table_instance *instance = table_instance(view, kind, id);
    return instance ? instance->identity : 0;
}

static void drop(struct connection *connection)
{
    forget_handle(connection->handle);
    connection->handle = 0;
}

/* The engine drops groups, field groups and watches of lost connections. */
static void forget_lost_connections(uint32_t link)
{
    for (int i = 0; i < CONNECTIONS; i++)
        if (connections[i].handle != 0 && connections[i].link != link)
            forget_handle(connections[i].handle);
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
        forget_lost_connections(view.header->link);
        handle_t made = embedded ? EMBEDDED_HANDLE : next_handle++;
        status = make_connection(made, view.header->link);
        if (status == ST_OK)
            *handle = made;
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

/* 4.6.0: where no engine listens, -21 after the whole timeout. Here every address leads to the table's engine. */
API status_t dcgmConnect_v2(const char *address, const struct connect_v2 *parameters, handle_t *handle)
{
    if (!address || !address[0] || !parameters || !handle)
        return ST_BADPARAM;
    if (!initialized)
        return ST_UNINITIALIZED;
    if (parameters->version != VERSION_OF(struct connect_v2, 2) && parameters->version != (8u | 1u << 24))
        return ST_VER_MISMATCH;
    return attach_locked("dcgmConnect_v2", 0, handle);
}

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
    status_t status = dcgmStartEmbedded_v2(&parameters);
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
    if (connection)
        drop(connection);
    pthread_mutex_unlock(&lock);
    return ST_OK;
}
