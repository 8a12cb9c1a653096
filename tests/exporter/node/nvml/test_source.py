"""Collections of the NVML source over scenarios, through the real pynvml and the compiled fake library."""

import time
from importlib.resources import files

import msgspec
import pytest

from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.fields import field_ids
from exporter.node.nvml.calls.calls import BRANDS, COMPUTE_MODES
from exporter.node.nvml.entities import links, vgpus
from exporter.node.nvml.reading.read_fields import read_fields
from exporter.node.simulation.document import CallFault, GpuLoss, MigChange, SampleFault, XidEvent
from exporter.node.simulation.scenario import Scenario, load
from exporter.node.simulation.source import readings as simulated
from exporter.source import SourceError
from tests.exporter.node.nvml.fixture import column, config, counted, samples, wait_for_xids, with_events
from tests.exporter.node.read_fields import NOT_IN_NVML, READ

MORE_FROM_NVML = {4, 526, 843, 897}
"""Fields that the fake library has although the scenarios do not give them."""


def near(a, b):
    """Whether two values are equal as far as milliwatts and counters allow: power and rates are rounded by them."""
    if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
        return a == b
    return type(a) is type(b) and a == pytest.approx(b, abs=1 if isinstance(a, int) and a > 1000 else 1e-3, rel=1e-9)


def has_value(device, field):
    """Whether NVML has a value: of engine activity (GPM) only on Hopper, and not of a compute instance."""
    return READ[field].watch != "profiling" or (device.architecture == "hopper" and device.ci < 0)


def test_a_field_is_either_read_or_it_is_known_why_not():
    of_devices = read_fields() - links.READ_FIELDS - vgpus.READ_FIELDS
    assert of_devices | NOT_IN_NVML.keys() == READ.keys()
    assert of_devices & NOT_IN_NVML.keys() == set()


@pytest.mark.parametrize("name", ["whole", "mig", "time_sliced"])
@pytest.mark.parametrize("t", [5, 61])
def test_the_same_scenario_gives_what_the_simulated_source_gives(scenario_table, open_source, clock, name, t):
    table, source = scenario_table(name), open_source()
    table.tick(t)
    source.read()
    clock.now += 1
    state = table.tick(t)
    found, expected = source.read(), simulated(state, config(), 0.0)
    assert found.inventory == expected.inventory
    assert found.down == expected.down == ()
    devices = {(d.uuid, d.gi, d.ci): d for d in expected.inventory}
    ours = samples(found)
    assert ours.keys() == samples(expected).keys()
    for key, value in samples(expected).items():
        if key[3] in NOT_IN_NVML or not has_value(devices[key[:3]], key[3]):
            assert ours[key] is None, key
        elif key[3] not in MORE_FROM_NVML:
            assert near(ours[key], value), (key, ours[key], value)


def test_every_field_of_the_default_file_has_a_value_on_hopper(scenario_table, open_source, clock):
    text = files("exporter.node.devices").joinpath("defaults", "default-counters.csv").read_text()
    ids = [field.id for field in parse(text, "default").fields]
    table = scenario_table("whole")
    uuid = first_uuid(table)
    table.scenario = with_events("whole", XidEvent(uuid, 1, 31))
    source = open_source(*ids)
    source.read()
    table.tick(2)
    wait_for_xids(source, 31)
    clock.now += 1
    first = {key[3]: value for key, value in samples(source.read()).items() if key[0] == uuid}
    assert None not in first.values()
    assert first[230] == 31
    assert set(first) == set(ids)


FROM_THE_DEVICE = {1, 2, 4, 5, 50, 52, 53, 54, 55, 57, 63, 67, 69, 85, 94, 254, 526, 1216, 1218}
ONE_COUNTER = {1420: 240, 1421: 242}
"""DCGM field -> the other DCGM field that is the same NVML counter."""

REGISTERED = (3, 0, "0d1e2f30-4152-4637-8495-a6b7c8d9eafb", 7, 0x1A6, 2)
"""What a GPU has in the fields of the NVLink fabric."""


def distinct(flag):
    """Return a different value for each field; of the fields that are 0 or 1, only `flag` is 1."""
    values = {}
    for number, field in READ.items():
        if number in {*NOT_IN_NVML, *FROM_THE_DEVICE} or field.kind == "string":
            continue
        if field.high == 1:
            values[number] = int(number == flag)
        elif field.unit == "ratio":
            values[number] = (number - 1000) / 100
        else:
            narrow = field.high is not None and field.high < 20_000
            values[number] = len(values) % (100 if field.high == 250 else 30) if narrow else 10_000 + 10 * number
    values |= {number: values[same] for number, same in ONE_COUNTER.items()}
    values |= {field_ids.COMPUTE_MODE: 2} | dict(zip(field_ids.FABRIC, REGISTERED, strict=True))
    return {str(number): value for number, value in values.items()}


FLAGS = [number for number, field in READ.items() if field.high == 1 and number not in {254, *NOT_IN_NVML}]


@pytest.mark.parametrize("flag", FLAGS)
def test_no_field_has_the_value_of_another(scenario_table, open_source, clock, flag):
    document = load("whole").document
    gpu = msgspec.structs.replace(document.devices[0], use=(), fields=distinct(flag))
    table = scenario_table(Scenario("distinct", msgspec.structs.replace(document, devices=(gpu,), events=())))
    source = open_source()
    source.read()
    clock.now += 1
    ours, expected = samples(source.read()), samples(simulated(table.tick(0), config(), 0.0))
    for key, value in expected.items():
        if key[3] not in {*NOT_IN_NVML, *FROM_THE_DEVICE, 230, 449, 843, 897}:
            assert near(ours[key], value), (key, ours[key], value)


def with_fields(fields):
    """Return a scenario of one GPU with these fields."""
    document = load("whole").document
    gpu = msgspec.structs.replace(
        document.devices[0], use=(), fields={str(key): value for key, value in fields.items()}
    )
    return Scenario("own", msgspec.structs.replace(document, devices=(gpu,), events=()))


def test_texts_of_the_product_line_and_the_inforom_are_those_of_dcgm(scenario_table, open_source):
    texts = {51: "Tesla", 56: "1.1", 80: "6.16", 81: "7.0", 82: "G520.0200.00.05"}
    scenario_table(with_fields(texts))
    assert {key[3]: value for key, value in samples(open_source(*texts).read()).items()} == texts


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_the_compute_mode_is_numbered_as_in_dcgm(scenario_table, open_source, mode):
    scenario_table(with_fields({65: mode}))
    assert column(open_source(65).read(), 65) == [mode]


def test_a_product_line_or_mode_that_dcgm_has_no_place_for_is_not_supported():
    assert BRANDS.get(0) is None
    assert COMPUTE_MODES.get(1) is None


def test_errors_of_each_of_eighteen_nvlinks_are_read(scenario_table, open_source):
    fields = [field for each in field_ids.NVLINK_ERROR_COUNTS.values() for field in each]
    scenario_table(with_fields({field: 7 + field for field in fields}))
    found = {key[3]: value for key, value in samples(open_source(*fields).read()).items()}
    assert found == {field: 7 + field for field in fields}
    assert len(found) == 4 * 18


def first_uuid(table):
    return table.scenario.document.devices[0].uuid


def test_engine_activity_needs_two_samples(scenario_table, open_source, clock):
    scenario_table("whole")
    source = open_source(1004)
    first = source.read()
    assert set(column(first, 1004)) == {None}
    assert counted(first, 1004) == {"blank": 8}
    clock.now += 1
    assert None not in column(source.read(), 1004)


def test_samples_less_than_a_tenth_of_a_second_apart_are_not_compared(scenario_table, open_source, clock):
    scenario_table("whole")
    source = open_source(1001)
    source.read()
    clock.now += 0.05
    assert set(column(source.read(), 1001)) == {None}
    clock.now += 0.06
    assert None not in column(source.read(), 1001)


def test_with_patience_the_first_collection_is_complete(scenario_table, open_source):
    scenario_table("mig")
    source = open_source(1001, 1005, clock=time.monotonic, patience=0.5)
    readings = source.read()
    devices = readings.inventory
    missing = {key for key, value in samples(readings).items() if value is None}
    assert {key[:2] for key in missing} <= {(d.uuid, d.gi) for d in devices if d.ci >= 0}


@pytest.mark.parametrize(
    ("sentinel", "reason"),
    [
        ("blank", "blank"),
        ("not_found", "not_found"),
        ("not_supported", "not_supported"),
        ("no_permission", "no_permission"),
    ],
)
def test_a_missing_value_is_none_and_counted_by_its_reason(scenario_table, open_source, clock, sentinel, reason):
    ids = (100, 140, 150, 155, 156, 202, 203, 250, 393, 1001)
    scenario_table(with_events("whole", SampleFault(sentinel=sentinel)))
    source = open_source(*ids)
    source.read()
    clock.now += 1
    readings = source.read()
    assert set(samples(readings).values()) == {None}
    assert {field: counted(readings, field) for field in ids} == {field: {reason: 8} for field in ids}


def test_a_missing_value_affects_only_its_own_field(scenario_table, open_source):
    scenario_table(with_events("whole", SampleFault(fields=("DCGM_FI_DEV_GPU_TEMP",), sentinel="not_supported")))
    readings = open_source(100, 150, 155).read()
    assert set(column(readings, 150)) == {None}
    assert None not in column(readings, 100)
    assert None not in column(readings, 155)


def test_a_value_above_the_largest_possible_is_out_of_range(scenario_table, open_source):
    document = load("whole").document
    first, *others = document.devices
    first = msgspec.structs.replace(first, fields={**first.fields, "DCGM_FI_DEV_GPU_UTIL": 101})
    scenario_table(Scenario("changed", msgspec.structs.replace(document, devices=(first, *others))))
    readings = open_source(203).read()
    assert column(readings, 203)[0] is None
    assert counted(readings, 203) == {"out_of_range": 1}


@pytest.mark.parametrize("seen", ["status", "absent"])
def test_a_lost_gpu_is_down_keeps_its_labels_and_affects_no_other_gpu(scenario_table, open_source, clock, seen):
    table = scenario_table("whole")
    uuid = first_uuid(table)
    table.scenario = with_events("whole", GpuLoss(uuid, 10, seen=seen))
    source = open_source(100, 150, 230, 250, 1001)
    before = source.read()
    table.tick(11)
    clock.now += 1
    readings = source.read()
    assert readings.inventory == before.inventory
    assert readings.down == (uuid,)
    exposed = samples(readings)
    assert {key[0] for key in exposed} == {device.uuid for device in before.inventory} - {uuid}
    assert None not in exposed.values()
    assert readings.rejections == ()


def test_a_gpu_lost_during_a_collection_has_no_samples_in_it(scenario_table, open_source, clock):
    table, source = scenario_table("whole"), open_source(100, 1001)
    source.read()
    table.scenario = with_events("whole", CallFault("nvmlGpmSampleGet", status=15))
    table.tick(1)
    clock.now += 1
    readings = source.read()
    assert len(readings.down) == 8
    assert readings.batches == ()
    table.scenario = with_events("whole")
    table.tick(2)
    clock.now += 1
    assert source.read().down == ()


def test_a_lost_gpu_is_looked_for_in_a_new_session_once_a_minute(scenario_table, open_source, clock):
    table = scenario_table("whole")
    uuid = first_uuid(table)
    table.scenario = with_events("whole", GpuLoss(uuid, 10, for_=20, seen="absent"))
    source = open_source(150)
    source.read()
    table.tick(11)
    assert source.read().down == (uuid,)
    clock.now += 61
    readings = source.read()  # a session that lists seven GPUs; the eighth is remembered
    assert (len(readings.inventory), readings.down) == (8, (uuid,))
    table.tick(31)
    clock.now += 30
    assert source.read().down == (uuid,)  # it is back, but a session lists what was there when it began
    clock.now += 31
    readings = source.read()
    assert (len(readings.inventory), readings.down) == (8, ())
    assert None not in column(readings, 150)


def test_a_gpu_lost_before_the_start_is_a_problem(scenario_table, open_source):
    table = scenario_table("whole")
    table.scenario = with_events("whole", GpuLoss(first_uuid(table), 0))
    table.tick(1)
    readings = open_source(150).read()
    assert len(readings.inventory) == 7
    assert [reason for reason, _ in readings.problems] == ["gpu_lost"]


def test_a_lost_gpu_that_returns_is_read_again(scenario_table, open_source, clock):
    table = scenario_table("whole")
    table.scenario = with_events("whole", GpuLoss(first_uuid(table), 10, for_=20))
    source = open_source(150)
    source.read()
    table.tick(11)
    assert len(source.read().down) == 1
    table.tick(31)
    clock.now += 61
    readings = source.read()
    assert readings.down == ()
    assert None not in column(readings, 150)


@pytest.mark.parametrize(
    ("status", "reason"),
    [(9, "driver_not_loaded"), (18, "driver_mismatch"), (4, "no_permission"), (10, "timeout"), (999, "failed")],
)
def test_a_failure_to_open_the_library_has_a_reason(scenario_table, open_source, status, reason):
    scenario_table(with_events("whole", CallFault("nvmlInitWithFlags", status=status)))
    with pytest.raises(SourceError) as error:
        open_source(150).read()
    assert error.value.reason == reason


def test_a_driver_that_is_loaded_later_is_found_after_a_pause(scenario_table, open_source, clock):
    table = scenario_table(with_events("whole", CallFault("nvmlInitWithFlags", status=9, for_=10)))
    source = open_source(150)
    for _ in range(2):
        with pytest.raises(SourceError, match="not loaded"):
            source.read()
    table.tick(11)
    with pytest.raises(SourceError, match="not loaded"):  # still within the pause
        source.read()
    clock.now += 1.5
    assert len(source.read().inventory) == 8


def failed_read(source):
    """Return the error of a read: within a pause, that of the last attempt again."""
    with pytest.raises(SourceError) as error:
        source.read()
    return error.value


def test_pauses_between_attempts_grow_to_half_a_minute(scenario_table, open_source, clock):
    scenario_table(with_events("whole", CallFault("nvmlInitWithFlags", status=9)))
    source = open_source(150)
    last = failed_read(source)
    for pause in (1, 2, 4, 8, 16, 30, 30):
        clock.now += pause - 0.25
        assert failed_read(source) is last
        clock.now += 0.25
        attempt = failed_read(source)
        assert attempt is not last
        last = attempt


def test_a_driver_replaced_during_a_collection_is_a_driver_mismatch(scenario_table, open_source, clock):
    table, source = scenario_table("whole"), open_source(150)
    source.read()
    table.scenario = with_events("whole", CallFault("nvmlDeviceGetTemperatureV", status=18))
    table.tick(1)
    with pytest.raises(SourceError) as error:
        source.read()
    assert error.value.reason == "driver_mismatch"
    table.scenario = with_events("whole")
    table.tick(2)
    with pytest.raises(SourceError, match="replaced"):  # closed, and not opened again at once
        source.read()
    clock.now += 1
    assert None not in column(source.read(), 150)


def test_an_xid_is_exposed_from_its_event_on_and_only_on_its_gpu(scenario_table, open_source):
    table = scenario_table("whole")
    uuid = first_uuid(table)
    table.scenario = with_events("whole", XidEvent(uuid, 10, 31), XidEvent(uuid, 20, 63))
    source = open_source(230)
    assert set(column(source.read(), 230)) == {0}
    table.tick(11)
    wait_for_xids(source, 31)
    assert {key[0]: value for key, value in samples(source.read()).items() if value} == {uuid: 31}
    table.tick(12)
    assert column(source.read(), 230)[0] == 31
    table.tick(21)
    wait_for_xids(source, 63)
    readings = source.read()
    assert {key[0]: value for key, value in samples(readings).items() if value} == {uuid: 63}
    assert readings.rejections == ()


def test_an_xid_is_exposed_for_five_minutes(scenario_table, open_source, clock):
    table = scenario_table("whole")
    table.scenario = with_events("whole", XidEvent(first_uuid(table), 10, 31))
    source = open_source(230)
    source.read()
    table.tick(11)
    wait_for_xids(source, 31)
    clock.now += 300
    assert column(source.read(), 230)[0] == 31
    clock.now += 1
    readings = source.read()
    assert column(readings, 230)[0] is None
    assert readings.rejections == ()


def test_gpus_are_looked_for_again_where_the_driver_had_none(scenario_table, open_source, clock):
    document = load("whole").document
    table = scenario_table(Scenario("none", msgspec.structs.replace(document, devices=(), events=())))
    source = open_source(150)
    assert source.read().inventory == ()
    table.scenario = load("whole")
    table.tick(1)
    assert source.read().inventory == ()
    clock.now += 61
    assert len(source.read().inventory) == 8


def test_the_xid_of_an_instance_is_exposed_on_its_gpu(scenario_table, open_source):
    table = scenario_table("mig")
    gpu = table.scenario.document.devices[0]
    table.scenario = with_events("mig", XidEvent(f"{gpu.uuid}/{gpu.instances[0].gi}", 10, 43))
    source = open_source(230)
    source.read()
    table.tick(11)
    wait_for_xids(source, 43)
    assert {key[:2]: value for key, value in samples(source.read()).items() if value} == {(gpu.uuid, -1): 43}


def test_the_xid_of_a_gpu_that_was_lost_with_it_is_kept(scenario_table, open_source, clock):
    table = scenario_table("whole")
    uuid = first_uuid(table)
    table.scenario = with_events("whole", XidEvent(uuid, 10, 79), GpuLoss(uuid, 10, for_=20))
    source = open_source(230)
    source.read()
    table.tick(11)
    wait_for_xids(source, 79)
    table.tick(31)
    clock.now += 61
    assert column(source.read(), 230)[0] == 79


def test_instances_follow_a_mig_reconfiguration_with_the_next_collection(scenario_table, open_source, clock):
    table = scenario_table("mig")
    gpu = table.scenario.document.devices[0]
    changed = gpu.instances[:1]
    table.scenario = with_events("mig", MigChange(gpu.uuid, 10, instances=changed))
    source = open_source(250, 1001)
    source.read()
    table.tick(11)
    clock.now += 1
    readings = source.read()
    assert [d.gi for d in readings.inventory if d.uuid == gpu.uuid] == [-1, changed[0].gi]
    clock.now += 1
    assert None not in column(source.read(), 1001)


def test_engine_activity_is_not_supported_on_gpus_without_gpm(scenario_table, open_source, clock):
    scenario_table("time_sliced")
    source = open_source(1001, 1004)
    source.read()
    clock.now += 1
    readings = source.read()
    assert counted(readings, 1004) == {"not_supported": len(readings.inventory)}


def test_one_memory_call_serves_every_framebuffer_field(scenario_table, open_source):
    scenario_table(with_events("whole", CallFault("nvmlDeviceGetMemoryInfo_v2", status=4)))
    readings = open_source(250, 251, 252, 253, 254, 150).read()
    assert counted(readings, 250) == counted(readings, 254) == {"no_permission": 8}
    assert None not in column(readings, 150)


def test_a_closed_source_opens_again_when_read(scenario_table, open_source):
    scenario_table("whole")
    source = open_source(150)
    source.read()
    source.close()
    source.close()
    assert None not in column(source.read(), 150)


def test_other_fields_are_read_from_the_next_read_on_and_the_xids_stay_known(scenario_table, open_source):
    table = scenario_table("whole")
    uuid = first_uuid(table)
    table.scenario = with_events("whole", XidEvent(uuid, 10, 31))
    source = open_source(150, 230)
    source.read()
    table.tick(11)
    wait_for_xids(source, 31)
    source.want(config((155, 230)).fields)
    readings = source.read()
    assert {key[3] for key in samples(readings)} == {155, 230}
    assert {key[0]: value for key, value in samples(readings).items() if key[3] == 230 and value} == {uuid: 31}
