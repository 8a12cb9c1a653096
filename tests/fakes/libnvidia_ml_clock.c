/* Clocks, temperatures and power of the fake libnvidia-ml. An old driver lacks the newer functions. */
#define _GNU_SOURCE
#include "libnvidia_ml.h"

PLAIN(nvmlDeviceGetPowerUsage, 155, 1000)
PLAIN(nvmlDeviceGetPowerManagementLimit, 160, 1000)
PLAIN(nvmlDeviceGetPowerManagementDefaultLimit, 163, 1000)
PLAIN(nvmlDeviceGetEnforcedPowerLimit, 164, 1000)
PLAIN(nvmlDeviceGetFanSpeed, 191, 1)

static ret_t clock_of(const char *function, device_t d, unsigned type, const uint16_t fields[4], unsigned *out)
{
    return type < 4 ? plain(function, d, fields[type], 1, 0, out) : INVALID_ARGUMENT;
}

ret_t nvmlDeviceGetClockInfo(device_t d, unsigned type, unsigned *out)
{
    return clock_of(__func__, d, type, (const uint16_t[]){100, 100, 101, 102}, out);
}

ret_t nvmlDeviceGetMaxClockInfo(device_t d, unsigned type, unsigned *out)
{
    return clock_of(__func__, d, type, (const uint16_t[]){113, 113, 114, 115}, out);
}

ret_t nvmlDeviceGetApplicationsClock(device_t d, unsigned type, unsigned *out)
{
    return clock_of(__func__, d, type, (const uint16_t[]){110, 110, 111, 0}, out);
}

ret_t nvmlDeviceGetTemperature(device_t d, unsigned sensor, unsigned *out)
{
    return sensor == 0 ? plain(__func__, d, 150, 1, 0, out) : INVALID_ARGUMENT;
}

ret_t nvmlDeviceGetTemperatureThreshold(device_t d, unsigned type, unsigned *out)
{
    const uint16_t fields[] = {159, 158, 151, 152};
    return type < 4 ? plain(__func__, d, fields[type], 1, 0, out) : INVALID_ARGUMENT;
}

struct margin { unsigned version; int margin; };

ret_t nvmlDeviceGetMarginTemperature(device_t d, struct margin *out)
{
    if (out->version != (sizeof *out | 1u << 24))
        return VERSION_MISMATCH;
    return plain(__func__, d, 153, 1, 0, (unsigned *)&out->margin);
}

ret_t nvmlDeviceGetPowerManagementLimitConstraints(device_t d, unsigned *low, unsigned *high)
{
    ret_t r = plain(__func__, d, 161, 1000, 0, low);
    return r == OK ? plain("", d, 162, 1000, 0, high) : r;
}

ret_t nvmlDeviceGetTotalEnergyConsumption(device_t d, unsigned long long *out) { return long_plain(__func__, d, 156, out); }
struct violation { unsigned long long reference_us, time_ns; };

/* By nvmlPerfPolicyType_t: power, thermal, sync boost, board limit, low utilization, reliability; 10 and 11 are clocks
 * below those set for applications, and below the base clocks. */
ret_t nvmlDeviceGetViolationStatus(device_t d, unsigned policy, struct violation *out)
{
    if (policy > 11 || (policy > 5 && policy < 10))
        return INVALID_ARGUMENT;
    out->reference_us = (unsigned long long)wall_us();
    return long_plain(__func__, d, (uint16_t)(policy > 5 ? 236 + policy : 240 + policy), &out->time_ns);
}

ret_t nvmlDeviceGetCurrentClocksThrottleReasons(device_t d, unsigned long long *out) { return long_plain(__func__, d, 112, out); }

#ifndef OLD_DRIVER

struct temperature { unsigned version, sensor; int temperature; };

ret_t nvmlDeviceGetTemperatureV(device_t d, struct temperature *out)
{
    if (out->version != (sizeof *out | 1u << 24))
        return VERSION_MISMATCH;
    return out->sensor == 0 ? plain(__func__, d, 150, 1, 0, (unsigned *)&out->temperature) : INVALID_ARGUMENT;
}

ret_t nvmlDeviceGetCurrentClocksEventReasons(device_t d, unsigned long long *out) { return long_plain(__func__, d, 112, out); }

#endif
