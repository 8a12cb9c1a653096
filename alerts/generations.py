"""The names and units that the generations of dcgm-exporter and DCGM use for the fields that the rules read.

Up to dcgm-exporter 4.8 names are the classic ones, in percent, MiB and millijoules; 4.9 renames many and replaces
percent by a ratio. The unit follows from the name, never from the size of a value.
"""

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE or DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"
SM = "DCGM_FI_PROF_SM_ACTIVE or DCGM_FI_PROF_SM_UTIL_RATIO"
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE or DCGM_FI_PROF_TENSOR_UTIL_RATIO"
DRAM = "DCGM_FI_PROF_DRAM_ACTIVE or DCGM_FI_PROF_DRAM_UTIL_RATIO"
KERNEL_RESIDENT = 'DCGM_FI_DEV_GPU_UTIL{GPU_I_ID=""} / 100 or DCGM_FI_DEV_GPU_UTIL_RATIO{GPU_I_ID=""}'
"""NVML's utilization. For a MIG device it is 0 or missing, so it is read for GPUs alone."""
VIDEO_PERCENT = '{__name__=~"DCGM_FI_DEV_ENC_UTIL|DCGM_FI_DEV_DEC_UTIL", GPU_I_ID=""}'
MEMORY_USED_MIB = "DCGM_FI_DEV_FB_USED"
MEMORY_FREE_MIB = "DCGM_FI_DEV_FB_FREE"
MEMORY_RESERVED_MIB = "DCGM_FI_DEV_FB_RESERVED"
MEMORY_TOTAL_MIB = "DCGM_FI_DEV_FB_TOTAL"
MEMORY_USED_RATIO = "DCGM_FI_DEV_FB_USED_PERCENT or DCGM_FI_DEV_FB_USED_RATIO"
"""used / (total - reserved), from 0 to 1 under both names."""
TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP or DCGM_FI_DEV_GPU_TEMP_CELSIUS"
MEMORY_TEMPERATURE = "DCGM_FI_DEV_MEMORY_TEMP or DCGM_FI_DEV_MEMORY_TEMP_CELSIUS"
POWER = "DCGM_FI_DEV_POWER_USAGE or DCGM_FI_DEV_BOARD_POWER_WATTS"
ENERGY_MILLIJOULES = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"

COMMON_FIELDS = (
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE|DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"
    "|DCGM_FI_DEV_GPU_UTIL|DCGM_FI_DEV_GPU_UTIL_RATIO|DCGM_FI_DEV_FB_USED"
)
"""A regular expression for `__name__`: every device has at least one of these fields in every generation."""
