"""Constants and ctypes structures of libdcgm's C interface, as far as an exporter uses it. No I/O, no state.

They are limits, offsets within records, status codes, and the structures that calls take and fill.
Source of every number, unless stated otherwise: `dcgm_structs.h` and `dcgm_agent.h` of DCGM 3.1.8 to 4.6.0. In all of
these versions the records below have the same bytes (measured with a C compiler). Where NVIDIA's own bindings are
installed, a test compares the numbers with theirs.
"""

import ctypes
import struct
from collections.abc import Sequence


def version_word(size: int, version: int) -> int:
    """Return what libdcgm expects in the first field of a record: its size, and its version in the top byte.

    A call with another word fails with VERSION_MISMATCH (4.6.0, measured), so a record that changed in a new DCGM is
    not misread.
    """
    return size | version << 24


SUPPORTED_MAJORS = (4, 3)
"""Major versions of the library in the order of preference; the layouts of any other were not compared."""

ENTITIES_PER_CALL = {3: 64, 4: 1024}
"""DCGM_GROUP_MAX_ENTITIES(_V2): the limit of a group and of one read, by major version of the library.

1,024 entities are accepted and 1,025 are not (4.6.0, measured).
"""
FIELDS_PER_CALL = 127
"""One less than DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP, which is 128.

A field group of 127 fields can be made, one of 128 is rejected; one read takes 128 (4.6.0, measured).
"""
MAX_GPUS = 32
"""DCGM_MAX_NUM_DEVICES."""

# dcgmFieldValue_v2: one value of one field of one entity. Of the 4,096 bytes from VALUE_AT_VALUE on, libdcgm writes
# only 8 for a number: what a reused buffer contained behind them stays (4.6.0, measured).
VALUE_SIZE = 4128
VALUE_VERSION = version_word(VALUE_SIZE, 2)
VALUE_AT_KIND = 4
VALUE_AT_ENTITY = 8
VALUE_AT_FIELD = 12
VALUE_AT_TYPE = 14
VALUE_AT_STATUS = 16
VALUE_AT_TIMESTAMP = 24
"""Microseconds since the epoch, by the clock of the engine's node."""
VALUE_AT_VALUE = 32
STRING_LENGTH = 256
"""DCGM_MAX_STR_LENGTH: the bytes of a text value, its final NUL included."""

# dcgmFieldValue_v1: one value as dcgmGetValuesSince_v2 hands it to its callback, which is told the entity itself.
STORED_SIZE = 4120
STORED = struct.Struct("<IHHi4xqq")
"""Version word, field, type, status, timestamp and integer value of such a record; behind them are unused bytes."""
TAKE_STORED = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
)
"""dcgmFieldValueEntityEnumeration_f: (kind, entity id, records, number of records, user data); other than 0 ends it."""

# Type of a value record: a character code (DCGM_FT_* of dcgm_fields.h). It is the type of this value, which can differ
# from the field's: a blank of field 254, a double, is stored as an integer (4.6.0, source).
TYPE_BINARY = ord("b")
TYPE_DOUBLE = ord("d")
TYPE_INT64 = ord("i")
TYPE_STRING = ord("s")
TYPE_TIMESTAMP = ord("t")

# Blank values (dcgmvalue.h) state that there is no value. Below is the lowest number of each type; it plus 1, 2 and 3
# means not found, not supported and no permission. The engine turns NVML's errors of these three names into those, and
# every other NVML error into the lowest blank. It stores a blank like any value, with a new timestamp and status OK
# (4.6.0, source).
INT64_BLANK = 0x7FFFFFFFFFFFFFF0
DOUBLE_BLANK = 140737488355328.0
STRING_BLANK = "<<<NULL>>>"
STRING_NOT_FOUND = "<<<NOT_FOUND>>>"
STRING_NOT_SUPPORTED = "<<<NOT_SUPPORTED>>>"
STRING_NO_PERMISSION = "<<<NOT_PERM>>>"

# Entity groups (dcgm_field_entity_group_t): the kinds of entities.
ENTITY_NONE = 0
"""The node itself: a field such as the driver version belongs to no device."""
ENTITY_GPU = 1
ENTITY_SWITCH = 3
ENTITY_GPU_INSTANCE = 4
ENTITY_COMPUTE_INSTANCE = 5
ENTITY_LINK = 6
ENTITY_CPU = 7
ENTITY_CORE = 8

# State of a link (dcgmNvLinkLinkState_t); 0 is not supported, 1 disabled.
LINK_DOWN, LINK_UP = 2, 3
LINK_READABLE = frozenset({LINK_DOWN, LINK_UP})
"""A link that is down has a state and counters; one that is disabled leads nowhere and has none."""

GROUP_EMPTY = 1
"""Type of a new entity group without members: we add only entities that can be read now."""
LIVE_DATA = 1
"""Flag of a read: the engine asks the driver now, and no watch is required.

Never with a profiling field: that crashes the engine (4.6.0, measured).
"""
OPERATION_AUTO = 1
"""Mode of dcgmStartEmbedded: the engine has threads of its own, which update watched fields."""

# State of a GPU (DcgmEntityStatus_t).
GPU_OK = 1
GPU_STATES = {"unsupported": 2, "inaccessible": 3, "lost": 4, "disabled": 6, "detached": 7}
"""The states in which a GPU has no values, by name.

An old display adapter is unsupported: it is listed, but no group takes it (4.6.0, measured).
"""
STATE_UNANSWERED = -1
"""Not a state of libdcgm: the call that asks for it was rejected."""
GPU_UNREADABLE = frozenset({STATE_UNANSWERED, *GPU_STATES.values()})

# Status codes (dcgmReturn_t), of a call or of a single value.
OK = 0
BAD_PARAMETER = -1  # also: a field group with a field id that the engine does not know (4.6.0, measured)
GENERIC_ERROR = -3  # also: a read of watched fields with such an id (4.6.0, measured)
NOT_SUPPORTED = -6
NVML_ERROR = -8
UNINITIALIZED = -10
TIMEOUT = -11  # no answer within the 60 s that libdcgm waits (4.6.0, source)
VERSION_MISMATCH = -12
UNKNOWN_FIELD = -13
NO_DATA = -14  # a watched event field before its first event (4.6.0, measured)
STALE_DATA = -15
NOT_WATCHED = -16  # never watched; after an unwatch the last value comes with its old timestamp (4.6.0, measured)
NO_PERMISSION = -17
GPU_LOST = -18
RESET_REQUIRED = -19
FUNCTION_NOT_FOUND = -20
GPU_NOT_SUPPORTED = -22  # a GPU in state 2, such as an old display adapter
CONNECTION_LOST = -21  # no engine, or the connection ended: libdcgm does not open it again (4.6.0, source)
MAX_LIMIT = -24
DUPLICATE_KEY = -26  # a field group's name is taken, by any client of the engine (4.6.0, measured)
REQUIRES_ROOT = -29
FIELD_UNSUPPORTED = -32
MODULE_NOT_LOADED = -33  # remembered until the engine restarts (4.6.0, source)
PROFILING_NOT_SUPPORTED = -36
PROFILING_LIBRARY = -37  # before Hopper: another process uses the hardware counters (reported)
PROFILING_MULTI_PASS = -38
INSTANCE_NOT_FOUND = -45
COMPUTE_INSTANCE_NOT_FOUND = -46
PAUSED = -54
NVML_NOT_LOADED = -56  # a watch of a GPU's field in an engine that found no driver (4.6.0, source)
NVML_DRIVER_TIMEOUT = -57
GPU_DETACHED = -67  # 4.x; the driver was unbound from the GPU


class EntityPair(ctypes.Structure):
    """dcgmGroupEntityPair_t, 8 bytes."""

    _fields_ = (("kind", ctypes.c_uint32), ("id", ctypes.c_uint32))


def pairs(entities: Sequence[tuple[int, int]]) -> "ctypes.Array[EntityPair]":
    """Return entities, each a kind and an id, as an array for libdcgm."""
    return (EntityPair * len(entities))(*(EntityPair(kind, number) for kind, number in entities))


def field_array(numbers: Sequence[int]) -> "ctypes.Array[ctypes.c_uint16]":
    """Return field ids as an array for libdcgm."""
    return (ctypes.c_uint16 * len(numbers))(*numbers)


def link_id(owner: int, number: int, kind: int = ENTITY_GPU) -> int:
    """Return the entity id of a link (dcgm_link_t): its owner's kind, its number and its owner's id in one word."""
    return kind | number << 8 | owner << 24


def link_owner(entity_id: int) -> int:
    """Return the kind of a link's owner, ENTITY_GPU or ENTITY_SWITCH."""
    return entity_id & 0xFF


class ConnectParameters(ctypes.Structure):
    """dcgmConnectV2Params_v2, 16 bytes. `timeout_ms` 0 means 5000."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("persist_after_disconnect", ctypes.c_uint32),
        ("timeout_ms", ctypes.c_uint32),
        ("address_is_unix_socket", ctypes.c_uint32),
    )


class UrlConnectParameters(ctypes.Structure):
    """dcgmConnectV3Params_v1 (4.5 and newer), 12 bytes. `timeout_ms` 0 means 5000."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("persist_after_disconnect", ctypes.c_uint32),
        ("timeout_ms", ctypes.c_uint32),
    )


class HostengineHealth(ctypes.Structure):
    """dcgmHostengineHealth_v1, 8 bytes. `overall_health` 0 means healthy."""

    _fields_ = (("version", ctypes.c_uint32), ("overall_health", ctypes.c_uint32))


class VersionInfo(ctypes.Structure):
    """dcgmVersionInfo_v2, 516 bytes. The text is `key:value;…`, with `version` among the keys."""

    _fields_ = (("version", ctypes.c_uint32), ("build_info", ctypes.c_char * 512))


class HierarchyRow(ctypes.Structure):
    """dcgmMigHierarchyInfo_v2, 164 bytes: a GPU instance or compute instance, its parent entity and its NVML ids."""

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
"""DCGM_MAX_HIERARCHY_INFO: at most 14 rows (7 GPU instances and 7 compute instances) for each of 32 GPUs."""


class Hierarchy(ctypes.Structure):
    """dcgmMigHierarchy_v2, 73,480 bytes."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("rows", HierarchyRow * HIERARCHY_ROWS),
    )


class P2pRow(ctypes.Structure):
    """dcgmNvLinkGpuLinkP2PStatus_v1, 132 bytes: a GPU and its status towards each GPU of the table."""

    _fields_ = (("entity_id", ctypes.c_uint32), ("statuses", ctypes.c_int32 * MAX_GPUS))


class P2pTable(ctypes.Structure):
    """dcgmNvLinkP2PStatus_v1, 4,232 bytes. `count` 0 asks for every GPU (header of 4.6.1)."""

    _fields_ = (("version", ctypes.c_uint32), ("count", ctypes.c_uint32), ("rows", P2pRow * MAX_GPUS))


P2P_VERSION = version_word(ctypes.sizeof(P2pTable), 1)
CONNECT_VERSION = version_word(ctypes.sizeof(ConnectParameters), 2)
URL_CONNECT_VERSION = version_word(ctypes.sizeof(UrlConnectParameters), 1)
HEALTH_VERSION = version_word(ctypes.sizeof(HostengineHealth), 1)
VERSION_INFO_VERSION = version_word(ctypes.sizeof(VersionInfo), 2)
HIERARCHY_VERSION = version_word(ctypes.sizeof(Hierarchy), 2)
