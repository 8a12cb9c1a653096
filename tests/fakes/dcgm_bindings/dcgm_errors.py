"""A small substitute for the module of NVIDIA's bindings of DCGM 4: some of the numbers of dcgm_errors.h."""

DCGM_FR_OK = 0
DCGM_FR_UNKNOWN = 1
DCGM_FR_VOLATILE_DBE_DETECTED = 4
DCGM_FR_EC_HARDWARE_MEMORY = 4
