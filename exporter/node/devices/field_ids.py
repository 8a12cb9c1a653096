"""The DCGM field ids that code refers to by name; `fields.csv` has every field that gpugauge can expose.

The numbers are those of `dcgm_fields.h`, the same in DCGM 3.1 to 4.6. Every source uses them, though not every source
has every field.
"""

DRIVER_VERSION = 1
NVML_VERSION = 2
GPU_COUNT = 4
CUDA_DRIVER_VERSION = 5
NAME = 50
"""The product name of a GPU; the profile, such as `1g.10gb`, of a GPU instance or compute instance."""
NVML_INDEX = 52
SERIAL = 53
UUID = 54
"""`GPU-…`; of a GPU instance or compute instance `MIG-…`.

DCGM gives a GPU instance one only if it contains a compute instance (4.6.0, source).
"""
MINOR_NUMBER = 55
PCI_BUS_ID = 57
CUDA_COMPUTE_CAPABILITY = 63
MIG_MODE = 67
MIG_MAX_SLICES = 69
VBIOS_VERSION = 85
XID = 230
FB_TOTAL = 250
FB_FREE = 251
FB_USED = 252
FB_RESERVED = 253
FB_USED_RATIO = 254
DRAM_ACTIVE = 1005

SYSTEM = frozenset({DRIVER_VERSION, NVML_VERSION, GPU_COUNT, CUDA_DRIVER_VERSION})
"""Fields of the node as a whole, which have the same value on every GPU."""
UTILIZATION = (203, 204, 206, 207)
"""GPU, memory, encoder and decoder utilization; the driver does not measure them while MIG mode is on."""
