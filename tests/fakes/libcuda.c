/* A fake libcuda with one GPU: a program that is launched takes the nanoseconds of its first argument, and nothing is
 * computed. It checks what the real library would reject. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define API __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201, INVALID_PTX = 218 };
enum { MULTIPROCESSORS = 132 };

static int initialized, retained, current;
static uint64_t running;

API int cuInit(unsigned flags)
{
    initialized = 1;
    return flags == 0 ? SUCCESS : INVALID_VALUE;
}

API int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return initialized ? SUCCESS : NOT_INITIALIZED;
}

/* That of the first GPU of the scenario `whole`. */
API int cuDeviceGetUuid(unsigned char *uuid, int device)
{
    static const unsigned char first[16] = {0x01, 0x8e, 0x29, 0xef, 0x76, 0x41, 0x56, 0xd6,
                                            0xaa, 0xa0, 0x1d, 0x46, 0xe2, 0x07, 0x3f, 0xe7};
    (void)device;
    memcpy(uuid, first, sizeof first);
    return SUCCESS;
}

API int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 16 ? MULTIPROCESSORS : attribute == 75 ? 9 : attribute == 76 ? 0 : -1;
    return *value < 0 ? INVALID_VALUE : SUCCESS;
}

API int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)80 << 30;
    return SUCCESS;
}

API int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    (void)device;
    return flags <= 0x1f ? SUCCESS : INVALID_VALUE;
}

API int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = &retained;
    retained = initialized;
    return retained ? SUCCESS : NOT_INITIALIZED;
}

API int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    return retained ? SUCCESS : INVALID_CONTEXT;
}

API int cuCtxSetCurrent(void *context)
{
    current = context == &retained;
    return current ? SUCCESS : INVALID_CONTEXT;
}

API int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    *address = 0x7f0000000000;
    return !current ? INVALID_CONTEXT : bytes ? SUCCESS : INVALID_VALUE;
}

API int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t bytes)
{
    (void)value;
    return address == 0x7f0000000000 && bytes ? SUCCESS : INVALID_VALUE;
}

API int cuModuleLoadData(void **module, const char *image)
{
    *module = &current;
    return strstr(image, ".visible .entry load(") ? SUCCESS : INVALID_PTX;
}

API int cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = &running;
    return module == &current && strcmp(name, "load") == 0 ? SUCCESS : INVALID_VALUE;
}

API int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                       unsigned shared, void *stream, void **arguments, void **extra)
{
    if (function != &running || x != MULTIPROCESSORS || y != 1 || z != 1 || !threads || ty != 1 || tz != 1)
        return INVALID_VALUE;
    if (shared || stream || extra || *(uint64_t *)arguments[1] != 0x7f0000000000)
        return INVALID_VALUE;
    running = *(uint64_t *)arguments[0];
    return SUCCESS;
}

API int cuCtxSynchronize(void)
{
    struct timespec left = {(time_t)(running / 1000000000u), (long)(running % 1000000000u)};
    running = 0;
    nanosleep(&left, NULL);
    return current ? SUCCESS : INVALID_CONTEXT;
}

API int cuGetErrorName(int status, const char **name)
{
    *name = status == INVALID_PTX ? "CUDA_ERROR_INVALID_PTX" : "CUDA_ERROR_INVALID_VALUE";
    return SUCCESS;
}
