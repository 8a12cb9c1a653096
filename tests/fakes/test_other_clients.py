"""The calls of the fake libdcgm that NVIDIA's Go bindings make and our product does not."""

import ctypes as c
import json
import struct

import pytest

from exporter.node.simulation.scenario import parse
from tests.fakes.build import build
from tests.fakes.scenario_table import VARIABLE, ScenarioTable

GPU, ALL_GPUS = 1, 0x7FFFFFFF
POWER, NAME, UTIL = 155, 50, 203
V1, V2 = 4120, 4128
NOT_WATCHED, NOT_SUPPORTED, MODULE_NOT_LOADED, VERSION_MISMATCH = -16, -6, -33, -12
LINK_STATUS = 14780
SPEC = {
    "pci_bus_id": "00000000:01:00.0",
    "model": "NVIDIA H100 80GB HBM3",
    "memory_mib": 81559,
    "architecture": "hopper",
    "fields": {str(POWER): 300.5, str(UTIL): 55},
}
TWO_GPUS = {
    "about": "two",
    "epoch": 1000,
    "devices": [{"uuid": f"GPU-00000000-0000-0000-0000-00000000000{n}", "index": n, **SPEC} for n in range(2)],
}
CALLED_BY_GO = (
    "DcgmFieldGetById", "DcgmFieldsInit", "DcgmFieldsTerm", "dcgmConnect_v2", "dcgmDisconnect",
    "dcgmEntitiesGetLatestValues", "dcgmEntityGetLatestValues", "dcgmFieldGroupCreate", "dcgmFieldGroupDestroy",
    "dcgmGetAllDevices", "dcgmGetAllSupportedDevices", "dcgmGetCpuHierarchy", "dcgmGetDeviceAttributes",
    "dcgmGetDeviceTopology", "dcgmGetEntityGroupEntities", "dcgmGetGpuInstanceHierarchy", "dcgmGetGpuStatus",
    "dcgmGetLatestValuesForFields", "dcgmGetNvLinkLinkStatus", "dcgmGetValuesSince_v2", "dcgmGroupAddDevice",
    "dcgmGroupAddEntity", "dcgmGroupCreate", "dcgmGroupDestroy", "dcgmHostengineVersionInfo", "dcgmInit",
    "dcgmProfGetSupportedMetricGroups", "dcgmShutdown", "dcgmStartEmbedded", "dcgmStopEmbedded", "dcgmUnwatchFields",
    "dcgmUpdateAllFields", "dcgmWatchFields", "errorString",
)  # fmt: skip
"""What an exporter built with the Go bindings was seen to call: one that is missing ends its process."""


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("library"), only="libdcgm.so.4")["libdcgm.so.4"]


@pytest.fixture
def engine(library, tmp_path, monkeypatch):
    """The library with an embedded engine of two GPUs, and its handle."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "table"))
    ScenarioTable(parse(json.dumps(TWO_GPUS), "test.json"), tmp_path / "table").tick(0)
    lib, handle = c.CDLL(str(library)), c.c_size_t(0)
    assert lib.dcgmInit() == 0
    assert lib.dcgmStartEmbedded(1, c.byref(handle)) == 0
    yield lib, handle
    assert lib.dcgmStopEmbedded(handle) == 0
    lib.dcgmShutdown()


def numbers(*values):
    return (c.c_uint16 * len(values))(*values)


def watch(lib, handle, *fields, group=ALL_GPUS):
    made = c.c_size_t(0)
    assert lib.dcgmFieldGroupCreate(handle, len(fields), numbers(*fields), b"fields", c.byref(made)) == 0
    keep = (c.c_longlong(1_000_000), c.c_double(60), 0)
    assert lib.dcgmWatchFields(handle, c.c_size_t(group), made, *keep) == 0


def read_one(lib, handle, gpu, *fields):
    buffer = c.create_string_buffer(V1 * len(fields))
    assert lib.dcgmEntityGetLatestValues(handle, GPU, gpu, numbers(*fields), len(fields), buffer) == 0
    return [buffer.raw[i : i + V1] for i in range(0, len(buffer), V1)]


@pytest.mark.parametrize("name", CALLED_BY_GO)
def test_every_function_that_the_go_bindings_call_is_there(library, name):
    assert getattr(c.CDLL(str(library)), name)


def test_a_read_of_one_entity_gives_the_values_of_a_read_of_many_in_records_without_the_entity(engine):
    lib, handle = engine
    watch(lib, handle, POWER, NAME, UTIL)
    many = c.create_string_buffer(V2 * 3)
    assert (
        lib.dcgmEntitiesGetLatestValues(handle, (c.c_uint32 * 2)(GPU, 1), 1, numbers(POWER, NAME, UTIL), 3, 0, many)
        == 0
    )
    for number, record in enumerate(read_one(lib, handle, 1, POWER, NAME, UTIL)):
        version, field, type_, status, timestamp = struct.unpack_from("<IHHi4xq", record)
        of_many = struct.unpack_from("<HHi4xq", many.raw, V2 * number + 12)
        assert version == V1 | 1 << 24
        assert (field, type_, status, timestamp) == of_many
        assert record[24:32] == many.raw[V2 * number + 32 :][:8]


def test_a_field_that_is_not_watched_says_so_in_its_own_record(engine):
    lib, handle = engine
    watch(lib, handle, POWER)
    statuses = [struct.unpack_from("<8xi", record)[0] for record in read_one(lib, handle, 0, POWER, UTIL)]
    assert statuses == [0, NOT_WATCHED]


def test_a_read_of_a_gpu_by_its_number_is_the_read_of_that_entity(engine):
    lib, handle = engine
    watch(lib, handle, POWER)
    buffer = c.create_string_buffer(V1)
    assert lib.dcgmGetLatestValuesForFields(handle, 0, numbers(POWER), 1, buffer) == 0
    assert struct.unpack_from("<d", buffer, 24) == (300.5,)
    assert buffer.raw == read_one(lib, handle, 0, POWER)[0]


def test_a_gpu_is_added_to_a_group_like_an_entity(engine):
    lib, handle = engine
    group = c.c_size_t(0)
    assert lib.dcgmGroupCreate(handle, 1, b"some", c.byref(group)) == 0
    assert lib.dcgmGroupAddDevice(handle, group, 1) == 0
    watch(lib, handle, POWER, group=group.value)
    assert [struct.unpack_from("<8xi", read_one(lib, handle, gpu, POWER)[0])[0] for gpu in (0, 1)] == [NOT_WATCHED, 0]


def test_no_gpu_has_nvlinks_and_the_version_of_the_record_is_checked(engine):
    lib, handle = engine
    links = c.create_string_buffer(LINK_STATUS)
    struct.pack_into("<I", links, 0, LINK_STATUS | 4 << 24)
    assert lib.dcgmGetNvLinkLinkStatus(handle, links) == 0
    assert struct.unpack_from("<II", links) == (LINK_STATUS | 4 << 24, 2)
    assert [struct.unpack_from("<19I", links, 8 + 76 * gpu) for gpu in (0, 1)] == [(0, *[0] * 18), (1, *[0] * 18)]
    struct.pack_into("<I", links, 0, LINK_STATUS | 3 << 24)
    assert lib.dcgmGetNvLinkLinkStatus(handle, links) == VERSION_MISMATCH


def test_a_node_without_grace_cpus_and_known_paths_says_so_by_status(engine):
    lib, handle = engine
    cpus = c.create_string_buffer(1160)
    assert lib.dcgmGetCpuHierarchy(handle, cpus) == VERSION_MISMATCH
    struct.pack_into("<I", cpus, 0, 1160 | 1 << 24)
    assert lib.dcgmGetCpuHierarchy(handle, cpus) == MODULE_NOT_LOADED
    assert lib.dcgmGetDeviceTopology(handle, 0, c.create_string_buffer(500)) == NOT_SUPPORTED
