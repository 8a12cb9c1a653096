"""The fake libdcgm through plain ctypes: layouts, values, and every call that the real one rejects."""

import ctypes as c
import json
import os
import socket
import struct
import subprocess
import sys
import time

import pytest

from exporter.node.devices.fields.field import fields_by_name
from exporter.node.simulation.scenario import parse
from tests.fakes.dcgm_client import ALL_COMPUTE, ALL_GPUS, ALL_INSTANCES, CI, CORE, FV, GI, GPU, LINK, LIVE, SWITCH
from tests.fakes.scenario_table import ScenarioTable

UUID = ["GPU-00000000-0000-0000-0000-00000000000" + n for n in "012"]
MAX_ENTITIES = {3: 64, 4: 1024}
BLANK = 0x7FFFFFFFFFFFFFF0
POWER, UTIL, ENERGY, XID, ACTIVE, DRAM, USED, RATIO = 155, 203, 156, 230, 1001, 1005, 252, 254


def gpu_spec(number, **more):
    return {
        "uuid": UUID[number],
        "index": number,
        "pci_bus_id": f"00000000:0{number}:00.0",
        "model": "NVIDIA H100 80GB HBM3",
        "memory_mib": 81559,
        "architecture": "hopper",
        "mig": False,
        "fields": {str(POWER): 300.5, str(UTIL): 55, str(ENERGY): {"shape": "counter", "rate": 1000}},
        **more,
    }


def compute_spec(ci, uuid):
    return {"ci": ci, "uuid": f"MIG-{uuid}", "fields": {str(ACTIVE): 0.25 * (ci + 1)}}


def instance_spec(gi, *compute, profile="1g.10gb"):
    own = {str(ACTIVE): 0.5, str(DRAM): 0.125, str(USED): 1000 + gi}
    return {"gi": gi, "profile": profile, "slices": 1, "memory_mib": 9984, "compute": compute, "fields": own}


TWO_GPUS = {"about": "two", "epoch": 1000, "devices": [gpu_spec(0), gpu_spec(1)]}
MIG = {
    "about": "mig",
    "epoch": 1000,
    "devices": [
        gpu_spec(
            0,
            mig=True,
            instances=[
                instance_spec(3, compute_spec(0, "a")),
                instance_spec(5, compute_spec(0, "b"), compute_spec(1, "c")),
            ],
        ),
        gpu_spec(1),
    ],
}


def test_a_value_has_the_layout_of_the_second_record_version(start):
    engine = start(TWO_GPUS)
    handle = engine.open()
    engine.watch(handle, [POWER, UTIL, 1])
    code, values = engine.read(handle, [(GPU, 0), (GPU, 1)], [POWER, UTIL, 1])
    assert code == 0
    assert [(v.version, v.kind, v.id, v.field, v.type, v.status) for v in values] == [
        (FV | 2 << 24, GPU, gpu, field, kind, 0)
        for gpu in (0, 1)
        for field, kind in ((POWER, "d"), (UTIL, "i"), (1, "s"))
    ]
    assert values[0].float == 300.5
    assert values[1].int == 55
    assert values[2].text == "570.133.20"
    assert {value.timestamp for value in values} == {1000 * 10**6}


def test_a_number_overwrites_only_the_first_bytes_of_its_record_in_a_reused_buffer(start):
    engine = start(TWO_GPUS)
    handle = engine.open()
    engine.watch(handle, [POWER])
    _, (value,) = engine.read(handle, [(GPU, 0)], [POWER], fill=b"x")
    assert value.raw[40:] == b"x" * (FV - 40)


def test_values_and_timestamps_follow_the_newest_table(start):
    engine = start(TWO_GPUS)
    handle = engine.open()
    engine.watch(handle, [ENERGY])
    engine.table.tick(7)
    _, (value,) = engine.read(handle, [(GPU, 1)], [ENERGY])
    assert (value.int, value.timestamp) == (7000, 1007 * 10**6)


def test_a_field_that_is_not_watched_has_that_status_and_can_be_read_live(start):
    engine = start(TWO_GPUS)
    handle = engine.open()
    _, (cached,) = engine.read(handle, [(GPU, 0)], [UTIL])
    assert (cached.status, cached.int, cached.timestamp) == (-16, BLANK, 0)
    _, (live,) = engine.read(handle, [(GPU, 0)], [UTIL], flags=LIVE)
    assert (live.status, live.int) == (0, 55)


def test_an_unknown_field_fails_the_whole_read_and_its_field_group(start):
    engine = start(TWO_GPUS)
    handle = engine.open()
    engine.watch(handle, [UTIL])
    assert engine.read(handle, [(GPU, 0)], [UTIL, 9999])[0] == -3
    assert engine.field_group(handle, [UTIL, 9999], b"other")[0] == -1


def test_an_older_engine_does_not_know_newer_fields(start):
    engine = start({**TWO_GPUS, "versions": {"dcgm": "3.3.9"}}, major=3)
    assert engine.field_group(engine.open(), [1420])[0] == -1
    assert engine.lib.DcgmFieldGetById(1420) is None


@pytest.mark.parametrize(("major", "limit"), MAX_ENTITIES.items())
def test_a_read_takes_as_many_entities_as_the_version_allows_and_128_fields(start, major, limit):
    engine = start(TWO_GPUS, major=major)
    handle = engine.open()
    assert engine.read(handle, [(GPU, 0)] * limit, [UTIL])[0] == 0
    assert engine.read(handle, [(GPU, 0)] * (limit + 1), [UTIL])[0] == -1
    assert engine.read(handle, [(GPU, 0)], [UTIL] * 128)[0] == 0
    assert engine.read(handle, [(GPU, 0)], [UTIL] * 129)[0] == -1


def test_a_field_group_takes_127_fields(start):
    engine = start(TWO_GPUS)
    handle = engine.open()
    ids = sorted(field.id for field in fields_by_name().values())
    known = [i for i in dict.fromkeys(ids) if engine.lib.DcgmFieldGetById(i)]
    assert engine.field_group(handle, (known * 2)[:127], b"most")[0] == 0
    assert engine.field_group(handle, (known * 2)[:128], b"too many")[0] == -1


def test_field_group_names_are_unique_across_connections(start):
    engine = start(TWO_GPUS)
    one, two = engine.open(), engine.open()
    assert engine.field_group(one, [UTIL], b"same")[0] == 0
    assert engine.field_group(two, [UTIL], b"same")[0] == -26
    assert engine.lib.dcgmDisconnect(one) == 0
    assert engine.field_group(two, [UTIL], b"same")[0] == 0


def test_a_group_has_what_was_added_and_rejects_unknown_and_repeated_entities(start):
    engine = start(TWO_GPUS)
    handle, group = engine.open(), c.c_size_t(0)
    assert engine.lib.dcgmGroupCreate(handle, 1, b"g", c.byref(group)) == 0
    assert [engine.lib.dcgmGroupAddEntity(handle, group, GPU, n) for n in (1, 1, 9)] == [0, -1, -1]
    engine.watch(handle, [UTIL], group.value)
    _, values = engine.read(handle, [(GPU, 0), (GPU, 1)], [UTIL])
    assert [value.status for value in values] == [-16, 0]
    assert engine.lib.dcgmGroupDestroy(handle, group) == 0
    assert engine.lib.dcgmGroupDestroy(handle, group) == -5


@pytest.mark.parametrize(
    ("function", "size", "version"),
    [
        ("dcgmGetGpuInstanceHierarchy", 73480, 2),
        ("dcgmProfGetSupportedMetricGroups", 1376, 3),
        ("dcgmModuleGetStatuses", 136, 1),
        ("dcgmHostengineIsHealthy", 8, 1),
        ("dcgmHostengineVersionInfo", 516, 2),
    ],
)
def test_a_wrong_version_word_and_a_null_pointer_are_rejected(start, function, size, version):
    engine = start(TWO_GPUS)
    handle, buffer = engine.open(), c.create_string_buffer(size)
    call = getattr(engine.lib, function)
    struct.pack_into("<I", buffer, 0, size | version << 24)
    assert call(handle, buffer) == 0
    struct.pack_into("<I", buffer, 0, size | (version + 1) << 24)
    assert call(handle, buffer) == -12
    assert call(handle, None) == -1


def test_null_pointers_and_empty_lists_are_rejected(start):
    engine = start(TWO_GPUS)
    handle, lib = engine.open(), engine.lib
    assert lib.dcgmConnect_v2(None, (c.c_uint32 * 4)(16 | 2 << 24, 0, 0, 0), c.byref(c.c_size_t())) == -1
    assert lib.dcgmConnect_v2(b"h", (c.c_uint32 * 4)(16 | 3 << 24, 0, 0, 0), c.byref(c.c_size_t())) == -12
    assert lib.dcgmGetAllDevices(handle, None, None) == -1
    assert lib.dcgmEntitiesGetLatestValues(handle, None, 1, (c.c_uint16 * 1)(1), 1, 0, None) == -1
    assert lib.dcgmFieldGroupCreate(handle, 0, (c.c_uint16 * 1)(1), b"g", c.byref(c.c_size_t())) == -1


def test_watching_with_an_unknown_group_is_rejected(start):
    engine = start(TWO_GPUS)
    handle = engine.open()
    _, fields = engine.field_group(handle, [UTIL])
    arguments = (c.c_longlong(10**6), c.c_double(60), 0)
    assert engine.lib.dcgmWatchFields(handle, c.c_size_t(77), fields, *arguments) == -5
    assert engine.lib.dcgmWatchFields(handle, c.c_size_t(ALL_GPUS), c.c_size_t(77), *arguments) == -14


def test_no_call_succeeds_before_init_or_without_a_connection(start):
    engine = start(TWO_GPUS)
    assert engine.connect()[0] == -10
    assert engine.lib.dcgmStartEmbedded(1, c.byref(c.c_size_t())) == -10
    assert engine.lib.dcgmInit() == 0
    assert engine.read(c.c_size_t(5), [(GPU, 0)], [UTIL])[0] == -21


def test_the_embedded_engine_starts_once_and_a_second_start_sets_no_handle(start):
    engine = start(TWO_GPUS)
    engine.lib.dcgmInit()
    handle, again = c.c_size_t(0), c.c_size_t(0)
    assert engine.lib.dcgmStartEmbedded(1, c.byref(handle)) == 0
    assert engine.lib.dcgmStartEmbedded(1, c.byref(again)) == 0
    assert (handle.value, again.value) == (0x7FFFFFFF, 0)
    assert engine.devices(handle) == [0, 1]
    assert engine.lib.dcgmStopEmbedded(c.c_size_t(1)) == -1
    assert engine.lib.dcgmStopEmbedded(handle) == 0
    assert engine.read(handle, [(GPU, 0)], [UTIL])[0] == -21


def test_only_version_4_knows_the_newest_start_parameters(start):
    for major, code in ((4, 0), (3, -12)):
        engine = start(TWO_GPUS, major=major)
        engine.lib.dcgmInit()
        buffer = c.create_string_buffer(104)
        struct.pack_into("<II", buffer, 0, 104 | 3 << 24, 1)
        assert engine.lib.dcgmStartEmbedded_v2(buffer) == code
        struct.pack_into("<I", buffer, 0, 72 | 1 << 24)
        assert engine.lib.dcgmStartEmbedded_v2(buffer) == 0


def test_after_a_restart_old_handles_stay_invalid_and_gpus_have_other_ids(start):
    engine = start({**TWO_GPUS, "events": [{"event": "restart", "at": 10, "for": 5}]})
    handle = engine.open()
    engine.watch(handle, [UTIL])
    engine.table.tick(12)
    assert engine.read(handle, [(GPU, 0)], [UTIL])[0] == -21
    assert engine.connect()[0] == -21
    engine.table.tick(20)
    assert engine.read(handle, [(GPU, 0)], [UTIL])[0] == -21
    code, new = engine.connect()
    assert (code, engine.devices(new)) == (0, [1, 2])
    assert engine.read(new, [(GPU, 1)], [UTIL])[1][0].status == -16
    engine.watch(new, [UTIL])
    assert engine.read(new, [(GPU, 1)], [UTIL])[1][0].int == 55


def test_a_lost_connection_comes_back_as_a_new_one_with_the_same_ids(start):
    engine = start({**TWO_GPUS, "events": [{"event": "disconnect", "at": 10, "for": 5}]})
    handle = engine.open()
    engine.table.tick(11)
    assert engine.connect()[0] == -21
    engine.table.tick(16)
    assert engine.read(handle, [(GPU, 0)], [UTIL])[0] == -21
    code, new = engine.connect()
    assert (code, engine.devices(new)) == (0, [0, 1])


def test_the_hierarchy_lists_instances_and_their_compute_instances(start):
    engine = start(MIG)
    rows = engine.hierarchy(engine.open())
    found = [(row[:4], row[4].split(b"\0")[0].decode(), row[6], row[7]) for row in rows]
    assert found == [
        ((GI, 0, GPU, 0), UUID[0], 3, -1),
        ((CI, 0, GI, 0), UUID[0], 3, 0),
        ((GI, 1, GPU, 0), UUID[0], 5, -1),
        ((CI, 1, GI, 1), UUID[0], 5, 0),
        ((CI, 2, GI, 1), UUID[0], 5, 1),
    ]


def test_an_instance_has_its_own_values_and_those_of_its_gpu_for_fields_of_a_gpu(start):
    engine = start(MIG)
    handle = engine.open()
    ids = [50, 54, USED, POWER, UTIL, ACTIVE, DRAM]
    engine.watch(handle, ids, ALL_INSTANCES, b"gi")
    engine.watch(handle, ids, ALL_COMPUTE, b"ci")
    engine.table.tick(1)  # profiling fields are blank until one interval after the watch
    _, gi = engine.read(handle, [(GI, 1)], ids)
    assert [gi[0].text, gi[1].text, gi[2].int, gi[3].float] == ["1g.10gb", "MIG-b", 1005, 300.5]
    assert [gi[4].int, gi[5].float, gi[6].float] == [BLANK + 2, 0.5, 0.125]
    _, ci = engine.read(handle, [(CI, 2)], ids)
    assert [ci[1].text, ci[5].float, ci[6].float] == ["MIG-c", 0.5, float(2**47)]


def test_a_reused_id_keeps_the_old_value_until_it_is_watched_again(start):
    events = [{"event": "mig", "device": UUID[0], "at": 30, "instances": [instance_spec(9, compute_spec(0, "z"))]}]
    engine = start({**MIG, "events": events})
    handle = engine.open()
    engine.watch(handle, [USED], ALL_INSTANCES)
    engine.table.tick(29)
    engine.read(handle, [(GI, 0), (GI, 1)], [USED])
    engine.table.tick(31)
    _, (reused, removed) = engine.read(handle, [(GI, 0), (GI, 1)], [USED])
    assert (reused.int, reused.timestamp, removed.int, removed.timestamp) == (1003, 1029 * 10**6, 1005, 1029 * 10**6)
    assert [row[6] for row in engine.hierarchy(handle)] == [9, 9]
    engine.watch(handle, [USED], ALL_INSTANCES, b"again")
    _, (fresh,) = engine.read(handle, [(GI, 0)], [USED])
    assert (fresh.int, fresh.timestamp) == (1009, 1031 * 10**6)


def test_blank_values_have_the_type_of_the_field_except_where_the_engine_stores_an_integer(start):
    names = ("blank", "not_found", "not_supported", "no_permission")
    events = [
        {"event": "samples", "at": step * 10, "for": 10, "fields": ["155", "203", "50", "254"], "sentinel": name}
        for step, name in enumerate(names)
    ]
    engine = start({**TWO_GPUS, "events": events})
    handle = engine.open()
    engine.watch(handle, [POWER, UTIL, 50, RATIO])
    texts = ("<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>")
    for step in range(4):
        engine.table.tick(step * 10 + 1)
        _, (power, util, name, ratio) = engine.read(handle, [(GPU, 0)], [POWER, UTIL, 50, RATIO])
        assert (power.type, power.float, util.int) == ("d", 2.0**47 + step, BLANK + step)
        assert (name.text, ratio.type, ratio.int) == (texts[step], "i", BLANK + step)
        assert {power.status, util.status, name.status} == {0}


def test_a_field_that_the_scenario_does_not_give_is_not_supported_and_an_xid_has_no_data(start):
    engine = start(TWO_GPUS)
    handle = engine.open()
    engine.watch(handle, [202, XID])
    _, (replay, xid) = engine.read(handle, [(GPU, 0)], [202, XID])
    assert (replay.status, replay.int, xid.status) == (0, BLANK + 2, -14)


def test_every_xid_since_a_time_is_returned_once(start):
    xids = [{"event": "xid", "device": UUID[0], "at": at, "xid": code} for at, code in ((5, 31), (6, 79), (8, 13))]
    engine = start({**TWO_GPUS, "events": xids})
    handle, seen, after = engine.open(), [], c.c_longlong(0)
    fields = engine.watch(handle, [XID])
    kind = c.CFUNCTYPE(c.c_int, c.c_uint32, c.c_uint32, c.c_void_p, c.c_int, c.c_void_p)

    def take(_kind, entity, values, _count, _user):
        version, _, _, _, _, stamp, value = struct.unpack("<IHHiiqq", c.string_at(values, 32))
        seen.append((version, entity, stamp, value))
        return 0

    def since(when):
        seen.clear()
        call = engine.lib.dcgmGetValuesSince_v2
        group = c.c_size_t(ALL_GPUS)
        assert call(handle, group, fields, c.c_longlong(when), c.byref(after), kind(take), None) == 0
        return [(stamp // 10**6, value) for _, _, stamp, value in seen]

    engine.table.tick(7)
    assert since(0) == [(1005, 31), (1006, 79)]
    assert seen[0][:2] == (4120 | 1 << 24, 0)
    engine.table.tick(9)
    assert since(after.value) == [(1008, 13)]
    assert engine.read(handle, [(GPU, 0)], [XID])[1][0].int == 13


def test_attributes_have_the_layout_of_their_third_version(start):
    engine = start(TWO_GPUS)
    buffer = c.create_string_buffer(5220)
    struct.pack_into("<I", buffer, 0, 5220 | 3 << 24)
    assert engine.lib.dcgmGetDeviceAttributes(engine.open(), 1, buffer) == 0
    brand, name, bus, _, uuid = struct.unpack_from("<256s256s256s256s256s", buffer, 3120 + 4)
    assert [text.split(b"\0")[0].decode() for text in (brand, name, bus, uuid)] == [
        "NVIDIA",
        "NVIDIA H100 80GB HBM3",
        "00000000:01:00.0",
        UUID[1],
    ]


def test_the_library_describes_a_field_in_a_record_of_72_bytes(start):
    engine = start(TWO_GPUS)
    for number, kind, scope, level in ((POWER, "d", 1, GPU), (1, "s", 0, 0), (DRAM, "d", 1, GI), (USED, "i", 1, CI)):
        meta = c.string_at(engine.lib.DcgmFieldGetById(number), 72)
        assert struct.unpack_from("<Hc", meta) == (number, kind.encode())
        assert struct.unpack_from("<i", meta, 52)[0] == scope
        assert struct.unpack_from("<I", meta, 60)[0] == level


def test_the_library_has_a_version_and_a_text_for_a_status(start):
    engine = start(TWO_GPUS)
    buffer = c.create_string_buffer(516)
    struct.pack_into("<I", buffer, 0, 516 | 2 << 24)
    assert engine.lib.dcgmVersionInfo(buffer) == 0
    assert buffer.raw[4:].startswith(b"version:4.2.3;")
    assert b"connection" in engine.lib.errorString(-21)


def test_entities_of_a_kind_are_listed_if_the_array_is_large_enough(start):
    engine = start(MIG)
    handle, ids, count = engine.open(), (c.c_uint32 * 8)(), c.c_int(8)
    assert engine.lib.dcgmGetEntityGroupEntities(handle, CI, ids, c.byref(count), 0) == 0
    assert list(ids[: count.value]) == [0, 1, 2]
    count.value = 2
    assert engine.lib.dcgmGetEntityGroupEntities(handle, CI, ids, c.byref(count), 0) == -31
    assert engine.lib.dcgmGetEntityGroupEntities(handle, 2, ids, c.byref(count), 0) == -6


def test_switches_are_listed_and_read_and_their_links_have_their_states(start):
    switch = {"fields": {"858": 51}, "nvlinks": [{"number": 255, "fields": {"787": 9}}]}
    switches = [switch | {"number": number} for number in (0, 2)]
    engine = start({"about": "x", "epoch": 1000, "devices": [], "switches": switches, "versions": {"dcgm": "4.6.0"}})
    handle, ids, count = engine.open(), (c.c_uint32 * 12)(), c.c_int(12)
    assert engine.lib.dcgmGetEntityGroupEntities(handle, SWITCH, ids, c.byref(count), 0) == 0
    assert list(ids[: count.value]) == [0, 2]
    link = 3 | 255 << 8 | 2 << 24
    _, (temperature, unknown) = engine.read(handle, [(SWITCH, 2), (SWITCH, 1)], [858], LIVE)
    _, (errors,) = engine.read(handle, [(LINK, link)], [787], LIVE)
    assert (temperature.int, unknown.status, errors.int) == (51, -1, 9)
    buffer = c.create_string_buffer(17084)
    struct.pack_into("<I", buffer, 0, 17084 | 5 << 24)
    assert engine.lib.dcgmGetNvLinkLinkStatus(handle, buffer) == 0
    (found,) = struct.unpack_from("<I", buffer, 8 + 32 * 4 * 37)
    rows = [struct.unpack_from("<I256i", buffer, 12 + 32 * 4 * 37 + row * 4 * 257) for row in range(2)]
    assert (found, rows) == (2, [(0, *[0] * 255, 3), (2, *[0] * 255, 3)])


@pytest.mark.parametrize(
    ("major", "function", "record", "size"),
    [
        (4, "dcgmGetCpuHierarchy_v2", 2, 3208),
        (4, "dcgmGetCpuHierarchy", 1, 1160),
        (3, "dcgmGetCpuHierarchy", 1, 1160),
    ],
)
def test_cpus_are_listed_with_a_bit_for_each_core(start, major, function, record, size):
    cpus = [
        {"number": 0, "serial": "1A", "cores": [{"number": 0}, {"number": 71}]},
        {"number": 1, "cores": [{"number": 72, "fields": {"1100": 0.5}}]},
    ]
    engine = start({"about": "x", "epoch": 1000, "devices": [], "cpus": cpus, "versions": {"dcgm": "4.6.0"}}, major)
    handle, buffer = engine.open(), c.create_string_buffer(size)
    struct.pack_into("<I", buffer, 0, size | record << 24)
    assert getattr(engine.lib, function)(handle, buffer) == 0
    step = (size - 8) // 8
    rows = [struct.unpack_from("<I4xI4x16Q", buffer, 8 + row * step) for row in range(2)]
    assert struct.unpack_from("<I", buffer, 4) == (2,)
    assert [(row[0], row[2:4]) for row in rows] == [(0, (1, 1 << 7)), (1, (0, 1 << 8))]
    assert (b"1A" in buffer.raw) == (record == 2)
    _, (utilization, none) = engine.read(handle, [(CORE, 72), (CORE, 1)], [1100], LIVE)
    assert (utilization.float, none.status) == (0.5, -1)


def link_spec(number, state):
    return {"number": number, "state": state, "fields": {"1525": 7 + number}}


def linked(version):
    links = [link_spec(0, "up"), link_spec(1, "down"), link_spec(17, "disabled")]
    devices = [gpu_spec(0), gpu_spec(1, nvlinks=links)]
    return {"about": "links", "epoch": 1000, "devices": devices, "versions": {"dcgm": version}}


@pytest.mark.parametrize(
    ("major", "version", "record", "size", "links", "code"),
    [
        (4, "4.6.0", 5, 17084, 36, 0),
        (4, "4.6.0", 4, 14780, 18, 0),
        (4, "4.5.3", 5, 17084, 36, -12),
        (4, "4.5.3", 4, 14780, 18, 0),
        (3, "3.3.9", 4, 14780, 18, -12),
    ],
)
def test_the_states_of_nvlinks_are_listed_in_the_records_of_the_version(
    start, major, version, record, size, links, code
):
    engine = start(linked(version), major=major)
    buffer = c.create_string_buffer(size)
    struct.pack_into("<I", buffer, 0, size | record << 24)
    assert engine.lib.dcgmGetNvLinkLinkStatus(engine.open(), buffer) == code
    if code == 0:
        assert struct.unpack_from("<I", buffer, 4) == (2,)
        rows = [struct.unpack_from(f"<I{links}i", buffer, 8 + row * 4 * (1 + links)) for row in range(2)]
        assert rows[0] == (0, *[0] * links)
        assert rows[1] == (1, 3, 2, *[0] * 15, 1, *[0] * (links - 18))


def test_a_link_has_values_of_its_own_and_one_that_is_not_there_cannot_be_watched(start):
    engine = start(linked("4.6.0"))
    handle, links = engine.open(), [(6, 1 | number << 8 | 1 << 24) for number in (0, 1, 2)]
    code, records = engine.read(handle, links, [1525], LIVE)
    assert code == 0
    assert [(record.status, record.int) for record in records[:2]] == [(0, 7), (0, 8)]
    assert records[2].status == -1
    group = c.c_size_t(0)
    assert engine.lib.dcgmGroupCreate(handle, 1, b"links", c.byref(group)) == 0
    codes = [engine.lib.dcgmGroupAddEntity(handle, group, *link) for link in links]
    assert codes == [0, 0, -1]


def test_a_call_fails_or_is_slow_when_the_scenario_has_that_fault(start):
    slow = {"event": "call", "function": "dcgmGetAllDevices", "at": 10, "for": 5, "delay": 0.2}
    failing = {"event": "call", "function": "dcgmEntitiesGetLatestValues", "at": 20, "status": -11}
    engine = start({**TWO_GPUS, "events": [slow, failing]})
    handle = engine.open()
    engine.table.tick(11)
    began = time.monotonic()
    assert engine.devices(handle) == [0, 1]
    assert time.monotonic() - began >= 0.2
    engine.table.tick(21)
    assert engine.read(handle, [(GPU, 0)], [UTIL])[0] == -11
    assert engine.devices(handle) == [0, 1]


def test_a_fault_about_a_device_or_a_field_is_one_of_the_calls_about_it(start):
    about = {"event": "call", "function": "dcgmEntitiesGetLatestValues", "status": -18}
    events = [{**about, "device": UUID[1]}, {**about, "status": -6, "field": str(POWER)}]
    engine = start({**TWO_GPUS, "events": events})
    handle = engine.open()
    reads = [([(GPU, 0)], [UTIL]), ([(GPU, 0), (GPU, 1)], [UTIL]), ([(GPU, 0)], [UTIL, POWER])]
    assert [engine.read(handle, pairs, ids)[0] for pairs, ids in reads] == [0, -18, -6]


def test_a_destroyed_group_makes_place_for_another(start):
    engine = start(TWO_GPUS)
    handle = engine.open()
    groups = [engine.group(handle) for _ in range(62)]
    assert groups[-1][0] == -24
    assert engine.lib.dcgmGroupDestroy(handle, groups[0][1]) == 0
    assert engine.group(handle)[0] == 0


def test_a_connect_finds_an_engine_that_listens_on_a_tcp_port(start):
    engine = start(TWO_GPUS)
    engine.lib.dcgmInit()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert [engine.connect(f"{host}:{port}", 2000)[0] for host in ("127.0.0.1", "localhost")] == [0, 0]


def process_with_fault(libraries, tmp_path, fault):
    document = {**TWO_GPUS, "events": [{"event": "call", "function": "dcgmInit", **fault}]}
    ScenarioTable(parse(json.dumps(document), "test.json"), tmp_path / "table").tick(0)
    code = f"import ctypes; print('go', flush=True); ctypes.CDLL({str(libraries['libdcgm.so.4'])!r}).dcgmInit()"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "GPUGAUGE_FAKE_TABLE": str(tmp_path / "table")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def test_a_hanging_call_never_returns(libraries, tmp_path):
    with process_with_fault(libraries, tmp_path, {"hang": True}) as process:
        assert process.stdout.readline() == b"go\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.kill()


def test_a_crashing_call_aborts_the_process(libraries, tmp_path):
    with process_with_fault(libraries, tmp_path, {"crash": True}) as process:
        assert process.wait(60) == -6
