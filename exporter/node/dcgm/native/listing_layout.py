"""The structures of libdcgm's C interface that list links and CPUs. No I/O, no state.

As in layout.py, their source is `dcgm_structs.h`, and where NVIDIA's own bindings are installed, a test compares them.
"""

import ctypes

from exporter.node.dcgm.native import layout

MAX_SWITCHES, SWITCH_LINKS = 12, 256
"""DCGM_MAX_NUM_SWITCHES and DCGM_NVLINK_MAX_LINKS_PER_NVSWITCH."""


class SwitchLinks(ctypes.Structure):
    """dcgmNvLinkNvSwitchLinkStatus_t: the states of the links of one NVSwitch."""

    _fields_ = (("switch_id", ctypes.c_uint32), ("states", ctypes.c_int32 * SWITCH_LINKS))


class GpuLinks18(ctypes.Structure):
    """dcgmNvLinkGpuLinkStatus_v3: the states of the links of one GPU."""

    _fields_ = (("gpu_id", ctypes.c_uint32), ("states", ctypes.c_int32 * 18))


class GpuLinks36(ctypes.Structure):
    """dcgmNvLinkGpuLinkStatus_v4: the same with twice as many links."""

    _fields_ = (("gpu_id", ctypes.c_uint32), ("states", ctypes.c_int32 * 36))


class LinkStates4(ctypes.Structure):
    """dcgmNvLinkStatus_v4, 14,780 bytes: DCGM 4.0 to 4.6 (header)."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("gpu_count", ctypes.c_uint32),
        ("gpus", GpuLinks18 * layout.MAX_GPUS),
        ("switch_count", ctypes.c_uint32),
        ("switches", SwitchLinks * MAX_SWITCHES),
    )


class LinkStates5(ctypes.Structure):
    """dcgmNvLinkStatus_v5, 17,084 bytes: DCGM 4.6 (header)."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("gpu_count", ctypes.c_uint32),
        ("gpus", GpuLinks36 * layout.MAX_GPUS),
        ("switch_count", ctypes.c_uint32),
        ("switches", SwitchLinks * MAX_SWITCHES),
    )


LINK_STATES = (
    (LinkStates5, layout.version_word(ctypes.sizeof(LinkStates5), 5)),
    (LinkStates4, layout.version_word(ctypes.sizeof(LinkStates4), 4)),
)
"""The records of dcgmGetNvLinkLinkStatus that are known, each with its version word; the newest first."""


MAX_CPUS, CPU_CORES = 8, 1024
"""DCGM_MAX_NUM_CPUS and DCGM_MAX_NUM_CPU_CORES."""


class OwnedCores(ctypes.Structure):
    """dcgmCpuHierarchyOwnedCores_v1, 136 bytes: one bit for each core of the machine, the lowest of each word first."""

    _fields_ = (("version", ctypes.c_uint32), ("words", ctypes.c_uint64 * (CPU_CORES // 64)))


class Cpu1(ctypes.Structure):
    """dcgmCpuHierarchyCpu_v1: a CPU and its cores."""

    _fields_ = (("cpu_id", ctypes.c_uint32), ("cores", OwnedCores))


class Cpu2(ctypes.Structure):
    """dcgmCpuHierarchyCpu_v2: the same with the serial number."""

    _fields_ = (*Cpu1._fields_, ("serial", ctypes.c_char * layout.STRING_LENGTH))


class Cpus1(ctypes.Structure):
    """dcgmCpuHierarchy_v1, 1,160 bytes: DCGM 3.3 and newer (header)."""

    _fields_ = (("version", ctypes.c_uint32), ("count", ctypes.c_uint32), ("cpus", Cpu1 * MAX_CPUS))


class Cpus2(ctypes.Structure):
    """dcgmCpuHierarchy_v2, 3,208 bytes: DCGM 4.0 and newer (header)."""

    _fields_ = (("version", ctypes.c_uint32), ("count", ctypes.c_uint32), ("cpus", Cpu2 * MAX_CPUS))


CpuList = tuple[str, type[Cpus1] | type[Cpus2], int]
CPU_LISTS: tuple[CpuList, ...] = (
    ("dcgmGetCpuHierarchy_v2", Cpus2, layout.version_word(ctypes.sizeof(Cpus2), 2)),
    ("dcgmGetCpuHierarchy", Cpus1, layout.version_word(ctypes.sizeof(Cpus1), 1)),
)
"""The functions that list CPUs, each with its record and the version word of that; the newest first."""
