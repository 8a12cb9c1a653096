"""The simulated source: readings from a scenario, by the same read plan and the same checks as those of a library."""

import json
from itertools import chain
from pathlib import Path

import msgspec
import pytest

from exporter.node.devices.fields.device_source import ReaderConfig
from exporter.node.devices.fields.field import fields, fields_by_name
from exporter.node.devices.fields.read_plan import plan
from exporter.node.devices.readings.readings import Rejection
from exporter.node.simulation.document import XidEvent
from exporter.node.simulation.scenario import Scenario, ScenarioError, builtin, load
from exporter.node.simulation.script import ScriptedSample
from exporter.node.simulation.source import SimulatedSource, validated
from exporter.node.simulation.source import readings as readings_of
from exporter.source import SourceError
from tests.clock import Clock

FAKES = Path(__file__).parents[3] / "fakes/scenarios"
NAMES = [
    "DCGM_FI_DEV_SM_CLOCK",
    "DCGM_FI_DEV_MEM_CLOCK",
    "DCGM_FI_DEV_MEMORY_TEMP",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_FB_USED_PERCENT",
    "DCGM_FI_DRIVER_VERSION",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",
    "DCGM_FI_PROF_PCIE_TX_BYTES",
]
WANTED = tuple(fields_by_name()[name].wanted() for name in NAMES)
POWER, UTIL, XID, USED, ACTIVE, DRAM = 155, 203, 230, 252, 1001, 1005


def open_source(scenario, interval=1.0):
    clock = Clock()
    return SimulatedSource(ReaderConfig("simulated", WANTED, interval, scenario=str(scenario)), clock), clock


def at(scenario, t):
    source, clock = open_source(scenario)
    clock.now += t
    return source.read()


def samples(readings):
    """Return every sample by (uuid, gi, ci, field); none may be there twice."""
    found = {}
    for batch in readings.batches:
        for number, column in zip(batch.fields, batch.columns, strict=True):
            for position, value in zip(batch.devices, column, strict=True):
                device = readings.inventory[position]
                key = (device.uuid, device.gi, device.ci, number)
                assert key not in found
                found[key] = value
    return found


@pytest.mark.parametrize("name", [*builtin(), *sorted(map(str, FAKES.glob("*.json")))])
def test_the_batches_are_those_of_the_read_plan(name):
    readings = at(name, 0.5)
    batches = [(batch.devices, batch.fields) for batch in readings.batches]
    assert batches == [(request.devices, request.fields) for request in plan(readings.inventory, WANTED)]
    assert readings.source == "simulated"
    assert readings.taken_at == 1000.5


def test_whole_gpus_have_every_value_that_the_scenario_gives():
    readings = at("whole", 30)
    found = samples(readings)
    assert len(readings.inventory) == 8
    assert [device.index for device in readings.inventory] == list(range(8))
    assert {number for *_, number in found} == {field.id for field in WANTED}
    assert {value for (*_, number), value in found.items() if number == XID} == {0}
    assert None not in found.values()
    assert readings.rejections == ()
    assert readings.versions == {"dcgm": "4.2.3", "nvml": "12.570.133.20", "driver": "570.133.20"}


@pytest.mark.parametrize("name", builtin())
def test_every_value_of_a_built_in_scenario_is_in_the_range_of_its_field(name):
    source, clock = open_source(name)
    for _ in range(50):
        clock.now += 13
        assert not [each for each in source.read().rejections if each.reason == "out_of_range"]


def test_gpu_instances_have_memory_and_activity_and_their_gpu_the_rest():
    readings = at("mig", 30)
    devices = [(each.index, each.gi, each.ci, each.profile, len(each.mig_uuids)) for each in readings.inventory]
    assert devices == [
        (0, -1, -1, "", 0),
        (0, 1, -1, "3g.40gb", 1),
        (0, 5, -1, "2g.20gb", 2),
        (0, 5, 0, "1c.2g.20gb", 1),
        (0, 5, 1, "1c.2g.20gb", 1),
        (0, 9, -1, "1g.10gb", 1),
        (0, 10, -1, "1g.10gb", 1),
        (1, -1, -1, "", 0),
    ]
    found = {
        (gi, ci, number): value
        for (uuid, gi, ci, number), value in samples(readings).items()
        if number < 2000 and uuid == readings.inventory[0].uuid
    }
    assert {number for gi, _, number in found if gi == -1} == {
        field.id for field in WANTED if field.scope != "instance"
    }
    assert {number for gi, ci, number in found if (gi, ci) == (1, -1)} == {USED, 251, 254, ACTIVE, 1004, DRAM}
    assert {number for gi, ci, number in found if (gi, ci) == (5, -1)} == {USED, 251, 254, DRAM}
    assert {number for gi, ci, number in found if (gi, ci) == (5, 1)} == {ACTIVE, 1004}
    assert found[5, 1, ACTIVE] == 0.06
    assert found[-1, -1, UTIL] is None
    assert Rejection(UTIL, "not_supported", 1) in readings.rejections


def test_no_sentinel_becomes_a_value_and_each_is_counted_by_its_reason():
    for t, reason in ((5, "blank"), (15, "not_found"), (25, "not_supported"), (35, "no_permission")):
        readings = at(FAKES / "sentinels.json", t)
        second = readings.inventory[1].uuid
        of_second = {number: value for (uuid, *_, number), value in samples(readings).items() if uuid == second}
        assert of_second.pop(XID) == 0, "that no XID came is not a blank"
        assert set(of_second.values()) == {None}
        counted = {rejection.field for rejection in readings.rejections if rejection.reason == reason}
        assert counted >= {field.id for field in WANTED} - {XID, 1}
    after = at(FAKES / "sentinels.json", 45)
    found = samples(after)
    assert found[after.inventory[1].uuid, -1, -1, POWER] > 500
    assert {(r.field, r.reason) for r in after.rejections} == {
        (100, "blank"), (155, "blank"), (1001, "blank"),
        (101, "not_found"), (1004, "not_found"), (1, "not_found"),
        (140, "not_supported"), (254, "not_supported"), (1005, "not_supported"),
        (150, "no_permission"), (156, "no_permission"), (1009, "no_permission"),
    }  # fmt: skip


def test_a_value_whose_timestamp_stands_still_is_stale_after_three_intervals_or_five_seconds():
    source, clock = open_source(FAKES / "stale.json", interval=2.0)
    clock.now += 25.9
    assert source.read().rejections == ()
    clock.now += 0.2
    readings = source.read()
    assert Rejection(UTIL, "stale", 2) in readings.rejections
    assert Rejection(POWER, "stale", 1) in readings.rejections
    assert samples(readings)[readings.inventory[0].uuid, -1, -1, UTIL] is None


def test_a_lost_gpu_is_down_and_has_no_samples():
    source, clock = open_source(FAKES / "lost.json")
    before = source.read()
    clock.now += 20
    readings = source.read()
    first, second, third = (device.uuid for device in before.inventory)
    assert readings.down == (first, second)
    assert third not in {device.uuid for device in readings.inventory}
    assert (readings.batches, readings.rejections) == ((), ())
    clock.now += 30
    after = source.read()
    assert after.down == ()
    assert samples(after)[first, -1, -1, XID] == 79


@pytest.mark.parametrize("where", ["", "/{gi}", "/{gi}/{ci}"])
def test_the_newest_xid_of_a_gpu_and_of_its_instances_is_exposed_on_the_gpu(where):
    scenario = load("mig")
    gpu = scenario.document.devices[0]
    instance = gpu.instances[0]
    address = gpu.uuid + where.format(gi=instance.gi, ci=instance.compute[0].ci)
    events = (XidEvent(gpu.uuid, 5, 31), XidEvent(address, 10, 94))
    state = Scenario("t", msgspec.structs.replace(scenario.document, events=events)).at(20)
    config = ReaderConfig("simulated", (fields()[XID].wanted(),), 10.0)
    found = samples(readings_of(state, config, 20.0))
    assert {key[0]: value for key, value in found.items() if value} == {gpu.uuid: 94}


def test_a_broken_connection_is_a_source_error_and_recovers():
    source, clock = open_source(FAKES / "restart.json")
    clock.now += 12
    with pytest.raises(SourceError) as error:
        source.read()
    assert error.value.reason == "connection_lost"
    clock.now += 5
    assert len(source.read().inventory) == 2


def test_the_inventory_follows_a_mig_reconfiguration():
    source, clock = open_source(FAKES / "mig_reconfigured.json")
    layouts = []
    for _ in range(4):
        layouts.append([(each.index, each.profile, each.ci) for each in source.read().inventory if each.gi >= 0])
        clock.now += 20
    assert layouts[0] == [(0, "3g.40gb", -1)] * 2
    assert layouts[1][:3] == [(0, "1g.10gb", -1)] * 3
    assert layouts[1][3:] == [(0, "2g.20gb", -1), (0, "1c.2g.20gb", 0), (0, "1c.2g.20gb", 1)]
    assert layouts[2] == []
    assert layouts[3] == [(1, "3g.40gb", -1)]


def test_a_call_fault_of_a_read_is_a_source_error(tmp_path):
    document = {
        "about": "fails",
        "devices": [],
        "events": [
            {"event": "call", "function": "read", "at": 5, "status": -11, "delay": 0.01},
            {"event": "call", "function": "nvmlInit", "status": 9},
        ],
    }
    path = tmp_path / "own.json"
    path.write_text(json.dumps(document))
    source, clock = open_source(path)
    assert source.read().inventory == ()
    clock.now += 6
    with pytest.raises(SourceError, match="fails with status -11"):
        source.read()


def test_only_the_first_of_several_faults_of_a_read_applies(tmp_path):
    functions = ("dcgmEntitiesGetLatestValues", "read", "*")
    faults = [{"event": "call", "function": name, "status": -n} for n, name in enumerate(functions, start=10)]
    faults[0] = faults[0] | {"status": 0, "delay": 0.01}
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"about": "fails", "devices": [], "events": faults}))
    source, _ = open_source(path)
    assert source.read().inventory == ()


def test_a_missing_scenario_is_an_error_when_the_source_is_created(tmp_path):
    with pytest.raises(ScenarioError, match="cannot be read"):
        open_source(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("number", "sample", "result"),
    [
        (UTIL, ScriptedSample(55, 100), (55, None)),
        (UTIL, ScriptedSample(101, 100), (None, "out_of_range")),
        (UTIL, ScriptedSample(55, 49), (None, "stale")),
        (UTIL, ScriptedSample(None, 100, "not_found"), (None, "not_found")),
        (UTIL, ScriptedSample(None, 100, status=-17), (None, "no_permission")),
        (UTIL, ScriptedSample(None, 100, status=-6), (None, "not_supported")),
        (UTIL, ScriptedSample(None, 100, status=-3), (None, "blank")),
        (UTIL, None, (None, "not_supported")),
        (XID, None, (0, None)),
        (XID, ScriptedSample(None, 100, "blank"), (None, None)),
        (XID, ScriptedSample(None, 100, "not_supported"), (None, "not_supported")),
        (XID, ScriptedSample(79, 100), (79, None)),
        (XID, ScriptedSample(79, 49), (None, None)),
        (1, ScriptedSample("570", 100), ("570", None)),
    ],
)
def test_a_value_is_exposed_unless_a_check_rejects_it(number, sample, result):
    assert validated(fields()[number].wanted(), sample, oldest=50) == result


def test_all_56_gpu_instances_are_read():
    readings = at(FAKES / "mig_56.json", 5)
    assert sum(device.gi >= 0 for device in readings.inventory) == 56
    assert len(set(chain.from_iterable(device.mig_uuids for device in readings.inventory))) == 56
