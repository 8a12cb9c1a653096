"""Sizes, offsets, version words and numbers of libdcgm's C interface, as far as an exporter needs them.

Source of every number, unless said otherwise: `dcgm_structs.h` and `dcgm_agent.h` of DCGM 3.1.8 to 4.6.0, in all of
which these records are byte for byte the same. A test compares them with NVIDIA's own bindings where installed.
"""

import ctypes
from collections.abc import Sequence


def version_word(size: int, version: int) -> int:
    """What libdcgm expects in the first field of a record: size in the low bits, version in the top byte."""
    return size | version << 24


SUPPORTED_MAJORS = (4, 3)
"""Library majors in the order they are looked for; any other has layouts we have not checked."""

ENTITIES_PER_CALL = {3: 64, 4: 1024}
"""DCGM_GROUP_MAX_ENTITIES(_V2): the limit of a group and of one read, by library major."""
FIELDS_PER_CALL = 127
"""DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP is 128, but the library refuses a field group that reaches it."""
MAX_GPUS = 32
"""DCGM_MAX_NUM_DEVICES."""

# dcgmFieldValue_v2: one value of one field of one entity.
VALUE_SIZE = 4128
VALUE_VERSION = version_word(VALUE_SIZE, 2)
VALUE_AT_KIND = 4
VALUE_AT_ENTITY = 8
VALUE_AT_FIELD = 12
VALUE_AT_TYPE = 14
VALUE_AT_STATUS = 16
VALUE_AT_TIMESTAMP = 24
VALUE_AT_VALUE = 32
STRING_LENGTH = 256
"""DCGM_MAX_STR_LENGTH: room for a text value, its end mark included."""

# Type of a value record: a character code (dcgm_fields.h, DCGM_FT_*).
TYPE_BINARY = ord("b")
TYPE_DOUBLE = ord("d")
TYPE_INT64 = ord("i")
TYPE_STRING = ord("s")
TYPE_TIMESTAMP = ord("t")

# "No value" marks (dcgmvalue.h): this number and the three above it.
INT64_BLANK = 0x7FFFFFFFFFFFFFF0
DOUBLE_BLANK = 140737488355328.0
STRING_BLANK = "<<<NULL>>>"
STRING_NOT_FOUND = "<<<NOT_FOUND>>>"
STRING_NOT_SUPPORTED = "<<<NOT_SUPPORTED>>>"
STRING_NO_PERMISSION = "<<<NOT_PERM>>>"

# Entity kinds (dcgm_field_entity_group_t).
ENTITY_NONE = 0
ENTITY_GPU = 1
ENTITY_GPU_INSTANCE = 4
ENTITY_COMPUTE_INSTANCE = 5

GROUP_EMPTY = 1
LIVE_DATA = 1
"""Flag of a read: ask the driver now, without any watch."""
OPERATION_AUTO = 1
"""An embedded engine that updates its watches by itself."""

# State of a GPU (DcgmEntityStatus_t).
GPU_OK = 1
GPU_UNREADABLE = {3: "inaccessible", 4: "lost", 6: "disabled", 7: "detached"}

ARCHITECTURES = {
    2: "kepler",
    3: "maxwell",
    4: "pascal",
    5: "volta",
    6: "turing",
    7: "ampere",
    8: "ada",
    9: "hopper",
    10: "blackwell",
}
"""dcgmChipArchitecture_t, the numbers of NVML's nvmlDeviceArchitecture_t."""

# Status codes (dcgmReturn_t).
OK = 0
BAD_PARAMETER = -1
GENERIC_ERROR = -3
NOT_SUPPORTED = -6
UNKNOWN_FIELD = -13
NO_DATA = -14
STALE_DATA = -15
NOT_WATCHED = -16
NO_PERMISSION = -17
GPU_LOST = -18
CONNECTION_LOST = -21
MAX_LIMIT = -24
DUPLICATE_KEY = -26
REQUIRES_ROOT = -29
FIELD_UNSUPPORTED = -32
MODULE_NOT_LOADED = -33
PROFILING_NOT_SUPPORTED = -36
PROFILING_LIBRARY = -37
PROFILING_MULTI_PASS = -38
INSTANCE_NOT_FOUND = -45
COMPUTE_INSTANCE_NOT_FOUND = -46
PAUSED = -54

# Fields that describe a device (dcgm_fields.h).
FIELD_DRIVER_VERSION = 1
FIELD_NVML_VERSION = 2
FIELD_NAME = 50
FIELD_NVML_INDEX = 52
FIELD_SERIAL = 53
FIELD_UUID = 54
FIELD_MINOR_NUMBER = 55
FIELD_PCI_BUS_ID = 57
FIELD_MIG_MODE = 67
FIELD_XID = 230


class EntityPair(ctypes.Structure):
    """dcgmGroupEntityPair_t, 8 bytes."""

    _fields_ = (("kind", ctypes.c_uint32), ("id", ctypes.c_uint32))


def pairs(entities: Sequence[tuple[int, int]]) -> "ctypes.Array[EntityPair]":
    """Entities, given as kind and id, as an array that C takes."""
    return (EntityPair * len(entities))(*(EntityPair(kind, number) for kind, number in entities))


def field_ids(numbers: Sequence[int]) -> "ctypes.Array[ctypes.c_uint16]":
    """Field numbers as an array that C takes."""
    return (ctypes.c_uint16 * len(numbers))(*numbers)


class ConnectParameters(ctypes.Structure):
    """dcgmConnectV2Params_v2, 16 bytes; `timeout_ms` 0 means 5000."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("persist_after_disconnect", ctypes.c_uint32),
        ("timeout_ms", ctypes.c_uint32),
        ("address_is_unix_socket", ctypes.c_uint32),
    )


class HostengineHealth(ctypes.Structure):
    """dcgmHostengineHealth_v1, 8 bytes."""

    _fields_ = (("version", ctypes.c_uint32), ("overall_health", ctypes.c_uint32))


class VersionInfo(ctypes.Structure):
    """dcgmVersionInfo_v2, 516 bytes; the text is `key:value;…`, `version` among the keys."""

    _fields_ = (("version", ctypes.c_uint32), ("build_info", ctypes.c_char * 512))


class HierarchyRow(ctypes.Structure):
    """dcgmMigHierarchyInfo_v2, 164 bytes: an instance, what it is part of, and its NVML numbers."""

    _fields_ = (
        ("entity", EntityPair),
        ("parent", EntityPair),
        ("gpu_uuid", ctypes.c_char * 128),
        ("nvml_gpu_index", ctypes.c_uint32),
        ("nvml_instance_id", ctypes.c_uint32),
        ("nvml_compute_instance_id", ctypes.c_uint32),
        ("nvml_profile_id", ctypes.c_uint32),
        ("nvml_profile_slices", ctypes.c_uint32),
    )


HIERARCHY_ROWS = 448


class Hierarchy(ctypes.Structure):
    """dcgmMigHierarchy_v2, 73,480 bytes."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("rows", HierarchyRow * HIERARCHY_ROWS),
    )


CONNECT_VERSION = version_word(ctypes.sizeof(ConnectParameters), 2)
HEALTH_VERSION = version_word(ctypes.sizeof(HostengineHealth), 1)
VERSION_INFO_VERSION = version_word(ctypes.sizeof(VersionInfo), 2)
HIERARCHY_VERSION = version_word(ctypes.sizeof(Hierarchy), 2)
