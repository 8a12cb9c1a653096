"""Our sizes, offsets and numbers against those of the headers and, where installed, of NVIDIA's own bindings."""

import ctypes
import sys
from pathlib import Path

import pytest

from exporter.node.dcgm.native import layout, listing_layout

BINDINGS = Path("/usr/share/datacenter-gpu-manager-4/bindings/python3")


@pytest.mark.parametrize(
    ("record", "size"),
    [
        (layout.EntityPair, 8),
        (layout.ConnectParameters, 16),
        (layout.UrlConnectParameters, 12),
        (layout.HostengineHealth, 8),
        (layout.VersionInfo, 516),
        (layout.HierarchyRow, 164),
        (layout.Hierarchy, 73480),
        (layout.P2pRow, 132),
        (layout.P2pTable, 4232),
        (listing_layout.LinkStates4, 14780),
        (listing_layout.LinkStates5, 17084),
        (listing_layout.OwnedCores, 136),
        (listing_layout.Cpus1, 1160),
        (listing_layout.Cpus2, 3208),
    ],
)
def test_records_have_the_sizes_of_the_headers(record, size):
    assert ctypes.sizeof(record) == size


def test_a_stored_value_is_read_up_to_the_end_of_its_number():
    assert layout.STORED.size == 32
    assert layout.STORED_SIZE == 24 + 4096


def test_version_words_are_made_of_size_and_version():
    assert layout.VALUE_VERSION == 4128 | 2 << 24
    assert layout.CONNECT_VERSION == 16 | 2 << 24
    assert layout.HEALTH_VERSION == 8 | 1 << 24
    assert layout.VERSION_INFO_VERSION == 516 | 2 << 24
    assert layout.HIERARCHY_VERSION == 73480 | 2 << 24
    assert [version for _, version in listing_layout.LINK_STATES] == [17084 | 5 << 24, 14780 | 4 << 24]
    assert [version for _, _, version in listing_layout.CPU_LISTS] == [3208 | 2 << 24, 1160 | 1 << 24]


def test_the_entity_id_of_a_link_has_the_kind_of_its_owner_its_number_and_its_gpu():
    assert layout.link_id(3, 17) == 1 | 17 << 8 | 3 << 24
    assert layout.link_id(3, 17, layout.ENTITY_SWITCH) == 3 | 17 << 8 | 3 << 24
    assert layout.link_owner(layout.link_id(3, 17, layout.ENTITY_SWITCH)) == layout.ENTITY_SWITCH


@pytest.fixture
def bindings():
    if not BINDINGS.is_dir():
        pytest.skip(f"NVIDIA's bindings are not installed ({BINDINGS})")
    sys.path.insert(0, str(BINDINGS))
    import dcgm_fields  # noqa: PLC0415 - only where it is installed
    import dcgm_structs  # noqa: PLC0415 - only where it is installed
    import dcgmvalue  # noqa: PLC0415 - only where it is installed

    yield dcgm_structs, dcgm_fields, dcgmvalue
    sys.path.remove(str(BINDINGS))


def test_sizes_and_offsets_are_those_of_the_official_bindings(bindings):
    structs, _, _ = bindings
    value = structs.c_dcgmFieldValue_v2
    assert ctypes.sizeof(value) == layout.VALUE_SIZE
    assert {
        name: getattr(value, name).offset
        for name in ("entityGroupId", "entityId", "fieldId", "fieldType", "status", "ts", "value")
    } == {
        "entityGroupId": layout.VALUE_AT_KIND,
        "entityId": layout.VALUE_AT_ENTITY,
        "fieldId": layout.VALUE_AT_FIELD,
        "fieldType": layout.VALUE_AT_TYPE,
        "status": layout.VALUE_AT_STATUS,
        "ts": layout.VALUE_AT_TIMESTAMP,
        "value": layout.VALUE_AT_VALUE,
    }
    stored = structs.c_dcgmFieldValue_v1
    assert ctypes.sizeof(stored) == layout.STORED_SIZE
    assert (stored.fieldType.offset, stored.status.offset, stored.ts.offset, stored.value.offset) == (6, 8, 16, 24)
    pairs = [
        (layout.EntityPair, structs.c_dcgmGroupEntityPair_t),
        (layout.ConnectParameters, structs.c_dcgmConnectV2Params_v2),
        (layout.HostengineHealth, structs.c_dcgmHostengineHealth_v1),
        (layout.VersionInfo, structs.c_dcgmVersionInfo_v2),
        (layout.Hierarchy, structs.c_dcgmMigHierarchy_v2),
    ]
    assert [(ours.__name__, ctypes.sizeof(ours)) for ours, _ in pairs] == [
        (ours.__name__, ctypes.sizeof(theirs)) for ours, theirs in pairs
    ]


def test_numbers_are_those_of_the_official_bindings(bindings):
    structs, fields, value = bindings
    assert value.DCGM_INT64_BLANK == layout.INT64_BLANK
    assert value.DCGM_FP64_BLANK == layout.DOUBLE_BLANK
    assert value.DCGM_STR_BLANK == layout.STRING_BLANK
    assert fields.DCGM_FE_GPU_CI == layout.ENTITY_COMPUTE_INSTANCE
    assert fields.DCGM_FE_GPU_I == layout.ENTITY_GPU_INSTANCE
    assert fields.DCGM_FE_LINK == layout.ENTITY_LINK
    assert fields.DCGM_FE_SWITCH == layout.ENTITY_SWITCH
    assert fields.DCGM_FE_CPU == layout.ENTITY_CPU
    assert fields.DCGM_FE_CPU_CORE == layout.ENTITY_CORE
    assert structs.DcgmNvLinkLinkStateUp == layout.LINK_UP
    assert structs.DCGM_ST_CONNECTION_NOT_VALID == layout.CONNECTION_LOST
    assert structs.DCGM_ST_NOT_WATCHED == layout.NOT_WATCHED
    assert structs.DCGM_ST_PROFILING_MULTI_PASS == layout.PROFILING_MULTI_PASS
    assert structs.DCGM_FV_FLAG_LIVE_DATA == layout.LIVE_DATA
