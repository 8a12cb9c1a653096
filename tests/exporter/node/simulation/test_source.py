"""The simulated source: a scenario becomes readings by the same plan and judgements as a library's values."""

import json
from itertools import chain
from pathlib import Path

import pytest

from exporter.node.devices.field import fields, fields_by_name
from exporter.node.devices.read_plan import plan
from exporter.node.devices.readings import ReaderConfig, Rejection
from exporter.node.simulation.scenario import ScenarioError, builtin
from exporter.node.simulation.script import ScriptCell
from exporter.node.simulation.source import SimulatedSource, judge
from exporter.source import SourceError

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


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def open_(scenario, interval=1.0):
    clock = Clock()
    return SimulatedSource(ReaderConfig("simulated", WANTED, interval, scenario=str(scenario)), clock), clock


def at(scenario, t):
    source, clock = open_(scenario)
    clock.now += t
    return source.read()


def cells(readings):
    """Every cell by (uuid, gi, ci, field); a pair that is there twice is an error."""
    found = {}
    for block in readings.blocks:
        for number, column in zip(block.fields, block.columns, strict=True):
            for place, value in zip(block.devices, column, strict=True):
                one = readings.inventory[place]
                key = (one.uuid, one.gi, one.ci, number)
                assert key not in found
                found[key] = value
    return found


@pytest.mark.parametrize("name", [*builtin(), *sorted(map(str, FAKES.glob("*.json")))])
def test_what_is_asked_of_whom_is_the_plan(name):
    readings = at(name, 0.5)
    asked = [(block.devices, block.fields) for block in readings.blocks]
    assert asked == [(request.devices, request.fields) for request in plan(readings.inventory, WANTED)]
    assert readings.source == "simulated"
    assert readings.taken_at == 1000.5


def test_whole_gpus_have_every_value_that_the_scenario_gives():
    readings = at("whole", 30)
    found = cells(readings)
    assert len(readings.inventory) == 8
    assert [one.index for one in readings.inventory] == list(range(8))
    assert {number for *_, number in found} == {field.id for field in WANTED}
    assert {value for (*_, number), value in found.items() if number == XID} == {None}
    assert None not in [value for (*_, number), value in found.items() if number != XID]
    assert readings.rejections == ()
    assert readings.versions == {"dcgm": "4.2.3", "nvml": "12.570.133.20", "driver": "570.133.20"}


@pytest.mark.parametrize("name", builtin())
def test_no_built_in_scenario_leaves_the_range_of_a_field(name):
    source, clock = open_(name)
    for _ in range(50):
        clock.now += 13
        assert not [one for one in source.read().rejections if one.reason == "out_of_range"]


def test_instances_have_memory_and_activity_and_their_board_the_rest():
    readings = at("mig", 30)
    devices = [(one.index, one.gi, one.ci, one.profile, len(one.mig_uuids)) for one in readings.inventory]
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
        for (uuid, gi, ci, number), value in cells(readings).items()
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
        assert {value for (uuid, *_), value in cells(readings).items() if uuid == second} == {None}
        counted = {rejection.field for rejection in readings.rejections if rejection.reason == reason}
        assert counted >= {field.id for field in WANTED} - {XID, 1}
    after = at(FAKES / "sentinels.json", 45)
    found = cells(after)
    assert found[after.inventory[1].uuid, -1, -1, POWER] > 500
    assert {(r.field, r.reason) for r in after.rejections} == {
        (100, "blank"), (155, "blank"), (1001, "blank"),
        (101, "not_found"), (1004, "not_found"), (1, "not_found"),
        (140, "not_supported"), (254, "not_supported"), (1005, "not_supported"),
        (150, "no_permission"), (156, "no_permission"), (1009, "no_permission"),
    }  # fmt: skip


def test_a_value_whose_timestamp_stands_still_goes_after_three_intervals_or_five_seconds():
    source, clock = open_(FAKES / "stale.json", interval=2.0)
    clock.now += 25.9
    assert source.read().rejections == ()
    clock.now += 0.2
    readings = source.read()
    assert Rejection(UTIL, "stale", 2) in readings.rejections
    assert Rejection(POWER, "stale", 1) in readings.rejections
    assert cells(readings)[readings.inventory[0].uuid, -1, -1, UTIL] is None


def test_a_lost_board_is_down_and_shows_nothing():
    source, clock = open_(FAKES / "lost.json")
    before = source.read()
    clock.now += 20
    readings = source.read()
    first, second, third = (one.uuid for one in before.inventory)
    assert readings.down == (first, second)
    assert third not in {one.uuid for one in readings.inventory}
    assert (readings.blocks, readings.rejections) == ((), ())
    clock.now += 30
    after = source.read()
    assert after.down == ()
    assert cells(after)[first, -1, -1, XID] == 79


def test_a_broken_connection_is_a_source_error_and_heals():
    source, clock = open_(FAKES / "restart.json")
    clock.now += 12
    with pytest.raises(SourceError) as error:
        source.read()
    assert error.value.reason == "connection_lost"
    clock.now += 5
    assert len(source.read().inventory) == 2


def test_the_inventory_follows_a_reconfiguration():
    source, clock = open_(FAKES / "mig_reconfigured.json")
    kinds = []
    for _ in range(4):
        kinds.append([(one.index, one.profile, one.ci) for one in source.read().inventory if one.gi >= 0])
        clock.now += 20
    assert kinds[0] == [(0, "3g.40gb", -1)] * 2
    assert kinds[1][:3] == [(0, "1g.10gb", -1)] * 3
    assert kinds[1][3:] == [(0, "2g.20gb", -1), (0, "1c.2g.20gb", 0), (0, "1c.2g.20gb", 1)]
    assert kinds[2] == []
    assert kinds[3] == [(1, "3g.40gb", -1)]


def test_a_planned_failure_of_a_read_is_a_source_error(tmp_path):
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
    source, clock = open_(path)
    assert source.read().inventory == ()
    clock.now += 6
    with pytest.raises(SourceError, match="fail with -11"):
        source.read()


def test_a_read_suffers_one_fault_however_many_of_its_spellings_have_one(tmp_path):
    spellings = ("dcgmEntitiesGetLatestValues", "read", "*")
    faults = [{"event": "call", "function": name, "status": -n} for n, name in enumerate(spellings, start=10)]
    faults[0] = faults[0] | {"status": 0, "delay": 0.01}
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"about": "fails", "devices": [], "events": faults}))
    source, _ = open_(path)
    assert source.read().inventory == ()


def test_a_scenario_that_cannot_be_played_is_refused_when_the_source_is_made(tmp_path):
    with pytest.raises(ScenarioError, match="cannot be read"):
        open_(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("number", "cell", "answer"),
    [
        (UTIL, ScriptCell(55, 100), (55, None)),
        (UTIL, ScriptCell(101, 100), (None, "out_of_range")),
        (UTIL, ScriptCell(55, 49), (None, "stale")),
        (UTIL, ScriptCell(None, 100, "not_found"), (None, "not_found")),
        (UTIL, ScriptCell(None, 100, status=-17), (None, "no_permission")),
        (UTIL, ScriptCell(None, 100, status=-6), (None, "not_supported")),
        (UTIL, ScriptCell(None, 100, status=-3), (None, "blank")),
        (UTIL, None, (None, "not_supported")),
        (XID, None, (None, None)),
        (XID, ScriptCell(None, 100, "blank"), (None, None)),
        (XID, ScriptCell(None, 100, "not_supported"), (None, "not_supported")),
        (XID, ScriptCell(79, 100), (79, None)),
        (XID, ScriptCell(79, 49), (None, None)),
        (1, ScriptCell("570", 100), ("570", None)),
    ],
)
def test_a_cell_is_shown_only_when_nothing_speaks_against_it(number, cell, answer):
    assert judge(fields()[number].wanted(), cell, oldest=50) == answer


def test_the_56_instances_are_all_read():
    readings = at(FAKES / "mig_56.json", 5)
    assert sum(one.gi >= 0 for one in readings.inventory) == 56
    assert len(set(chain.from_iterable(one.mig_uuids for one in readings.inventory))) == 56
