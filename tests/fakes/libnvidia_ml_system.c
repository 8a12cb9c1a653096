/* Versions of the driver, and the texts of return codes. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

const char *nvmlErrorString(ret_t code)
{
    switch (code) {
    case OK: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case GPU_IS_LOST: return "GPU is lost";
    case NO_DATA: return "No data";
    case VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

ret_t nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    ENTER(c, enter(&c, __func__));
    return leave(&c, copy_text(c.t.header->driver_version, out, size));
}

ret_t nvmlSystemGetNVMLVersion(char *out, unsigned size)
{
    ENTER(c, enter(&c, __func__));
    return leave(&c, copy_text(c.t.header->nvml_version, out, size));
}

ret_t nvmlSystemGetCudaDriverVersion(int *out)
{
    ENTER(c, enter(&c, __func__));
    *out = c.t.header->cuda_version;
    return leave(&c, OK);
}

ret_t nvmlSystemGetCudaDriverVersion_v2(int *out)
{
    ENTER(c, enter(&c, __func__));
    *out = c.t.header->cuda_version;
    return leave(&c, OK);
}
