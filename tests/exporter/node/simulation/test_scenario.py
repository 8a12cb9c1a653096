"""Scenarios: what is refused, and what one says about a moment."""

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.simulation.scenario import ScenarioError, builtin, load, parse
from exporter.node.simulation.script import (
    Counter,
    Failed,
    Frozen,
    Missing,
    Ramp,
    ScriptCell,
    Sine,
    Square,
    Steps,
    value_at,
)

ROOT = Path(__file__).parents[4]
FAKES = sorted((ROOT / "tests/fakes/scenarios").glob("*.json"))
UUID = "GPU-00000000-0000-0000-0000-000000000000"
POWER, UTIL, XID = 155, 203, 230


def board(**more):
    return {
        "uuid": UUID,
        "index": 0,
        "pci_bus_id": "00000000:07:00.0",
        "model": "NVIDIA H100",
        "memory_mib": 81559,
        **more,
    }


def instance(gi, *compute, **more):
    return {
        "gi": gi,
        "profile": "1g.10gb",
        "slices": 1,
        "memory_mib": 9984,
        "compute": [{"ci": n, "uuid": f"MIG-{gi}-{n}"} for n in compute],
        **more,
    }


def scenario(*devices, **more):
    return parse(json.dumps({"about": "a test", "devices": devices or [board()], **more}), "test.json")


def only(state):
    (one,) = state.boards
    return one


@pytest.mark.parametrize("name", [*builtin(), *map(str, FAKES)])
def test_every_scenario_that_we_bring_can_be_played(name):
    one = load(name)
    for t in (0, 12.5, 31, 1000):
        assert one.at(t) == one.at(t)


def test_the_example_in_the_guide_is_a_scenario():
    text = (ROOT / "docs/scenario.md").read_text()
    (example,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    one = parse(example, "docs/scenario.md")
    assert one.begins(5.0) == 1767225600
    assert [part.cells[1001].value for part in only(one.at(50)).instances[0].compute] == [0.4, 0.1]
    assert only(one.at(31)).cells[150].value == 62


@pytest.mark.parametrize(
    ("script", "t", "value"),
    [
        (7, 3, 7),
        ("text", 3, "text"),
        (Steps(((0, 1), (10, 2), (20, 3))), 15, 2),
        (Steps(((5, 1), (10, 2))), 0, 1),
        (Ramp(10, 20, 10, start=5), 0, 10),
        (Ramp(10, 20, 10, start=5), 10, 15),
        (Ramp(10, 20, 10, start=5), 99, 20),
        (Sine(5, 2, 40), 10, 7),
        (Sine(5, 2, 40, phase=0.5), 10, 3),
        (Square(1, 9, 10, duty=0.3), 2, 9),
        (Square(1, 9, 10, duty=0.3), 4, 1),
        (Square(1, 9, 10, duty=0.3, phase=0.5), 6, 9),
        (Counter(3, start=100), 10, 130),
    ],
)
def test_a_shape_gives_its_value_at_a_time(script, t, value):
    cell = value_at(script, t)
    assert cell == ScriptCell(cell.value, t)
    assert cell.value == pytest.approx(value) if isinstance(value, int) else cell.value == value


def test_what_is_not_a_value_says_why_it_is_none():
    assert value_at(Missing("not_found"), 3) == ScriptCell(None, 3, sentinel="not_found")
    assert value_at(Failed(-18), 3) == ScriptCell(None, 3, status=-18)
    assert [value_at(Frozen(1, at=5), t).stamp for t in (3, 9)] == [3, 5]


@given(st.floats(0, 1e6))
def test_a_sine_stays_within_its_amplitude_and_a_counter_never_falls(t):
    assert math.fabs(value_at(Sine(5, 2, 7, 0.3), t).value - 5) <= 2
    assert value_at(Counter(2), t + 1).value > value_at(Counter(2), t).value


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ("{", "test.json: Input data was truncated"),
        ('{"about": "x"}', "test.json: Object missing required field `devices`"),
        ('{"about": "x", "devices": [], "colour": 1}', "test.json: Object contains unknown field `colour`"),
    ],
)
def test_what_is_not_a_scenario_is_refused_with_one_sentence(document, sentence):
    with pytest.raises(ScenarioError) as refusal:
        parse(document, "test.json")
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("devices", "more", "sentence"),
    [
        ([board(index="1")], {}, "Expected `int`, got `str` - at `$.devices[0].index`"),
        ([board(size=1)], {}, "Object contains unknown field `size` - at `$.devices[0]`"),
        ([board(fields={"DCGM_FI_X": 1})], {}, "no field is called 'DCGM_FI_X' - at `$.devices[0].fields`"),
        ([board(fields={"155": "x"})], {}, "155 must be a number - at `$.devices[0].fields`"),
        ([board(fields={"1": 5})], {}, "1 must be text - at `$.devices[0].fields`"),
        (
            [board(fields={"155": {"shape": "steps", "points": [[0, 1], [2, "x"]]}})],
            {},
            "155 must be a number - at `$.devices[0].fields`",
        ),
        (
            [board(fields={"155": {"shape": "sine", "mean": 1, "amplitude": 1, "period": 0}})],
            {},
            "155 has period 0, which must be above 0 - at `$.devices[0].fields`",
        ),
        (
            [board(fields={"155": {"shape": "steps", "points": [[5, 1], [2, 2]]}})],
            {},
            "155 has points that are not in the order of time - at `$.devices[0].fields`",
        ),
        (
            [board(fields={"155": {"shape": "spiral"}})],
            {},
            "Invalid value 'spiral' - at `$.devices[0].fields[...].shape`",
        ),
        ([board(use=["busy"])], {}, "no value set is called 'busy' - at `$.devices[0].use`"),
        ([board(), board(index=1)], {}, f"uuid '{UUID}' is there twice - at `$.devices[1]`"),
        ([board(), board(uuid="GPU-b")], {}, "index 0 is there twice - at `$.devices[1]`"),
        ([board(instances=[instance(1)])], {}, "has instances although mig is not true - at `$.devices[0]`"),
        (
            [board(mig=True, instances=[instance(1), instance(1)])],
            {},
            "gi 1 is there twice - at `$.devices[0].instances[1]`",
        ),
        (
            [board(mig=True, instances=[instance(1, 0, 0)])],
            {},
            "ci 0 is there twice - at `$.devices[0].instances[0].compute[1]`",
        ),
        (
            [board(mig=True, instances=[instance(1, fields={"DCGM_FI_Y": 1})])],
            {},
            "no field is called 'DCGM_FI_Y' - at `$.devices[0].instances[0].fields`",
        ),
        (
            [board()],
            {"values": {"busy": {"DCGM_FI_Z": 1}}},
            "no field is called 'DCGM_FI_Z' - at `$.values.busy`",
        ),
        (
            [board()],
            {"events": [{"event": "lost", "device": "GPU-b", "at": 1}]},
            "no device has the uuid 'GPU-b' - at `$.events[0].device`",
        ),
        (
            [board()],
            {"events": [{"event": "cells", "stale": True, "devices": ["GPU-b/1"]}]},
            "no device has the uuid 'GPU-b/1' - at `$.events[0].devices`",
        ),
        (
            [board()],
            {"events": [{"event": "cells", "stale": True, "fields": ["power"]}]},
            "no field is called 'power' - at `$.events[0].fields`",
        ),
        (
            [board()],
            {"events": [{"event": "cells"}]},
            "says neither sentinel nor status nor stale - at `$.events[0]`",
        ),
        (
            [board()],
            {"events": [{"event": "explosion"}]},
            "Invalid value 'explosion' - at `$.events[0].event`",
        ),
    ],
)
def test_a_mistake_is_named_with_its_file_place_and_value(devices, more, sentence):
    with pytest.raises(ScenarioError) as refusal:
        scenario(*devices, **more)
    assert str(refusal.value) == f"test.json: {sentence}"


def test_a_file_that_is_not_there_is_refused_with_the_names_of_those_that_are(tmp_path):
    with pytest.raises(ScenarioError, match=r"missing\.json: cannot be read .* built in are mig, time_sliced, whole"):
        load(str(tmp_path / "missing.json"))
    (tmp_path / "own.json").write_text(json.dumps({"about": "x", "devices": []}))
    assert load(str(tmp_path / "own.json")).at(0).boards == ()
    assert load().label == "whole.json"


def test_it_begins_at_its_epoch_or_when_the_player_starts():
    assert scenario(epoch=100).begins(5000.0) == 100
    assert scenario().begins(5000.0) == 5000.0


def test_value_sets_are_laid_over_one_another_and_own_fields_over_all():
    values = {"a": {"155": 1, "150": 1, "140": 1}, "b": {"DCGM_FI_DEV_POWER_USAGE": 2, "150": 2}}
    cells = only(scenario(board(use=["a", "b"], fields={"155": 3}), values=values).at(0)).cells
    assert [cells[number].value for number in (155, 150, 140)] == [3.0, 2, 1]


def test_values_have_the_type_of_their_field():
    shape = {"shape": "sine", "mean": 50.4, "amplitude": 0, "period": 9}
    cells = only(scenario(board(fields={"203": shape, "155": 300})).at(1)).cells
    assert (cells[203].value, type(cells[203].value)) == (50, int)
    assert (cells[155].value, type(cells[155].value)) == (300.0, float)


def test_power_has_milliwatts_and_every_board_knows_how_many_there_are():
    shape = {"shape": "sine", "mean": 300.123456, "amplitude": 0, "period": 9}
    state = scenario(board(fields={"155": shape}), board(uuid="GPU-b", index=1)).at(1)
    assert state.boards[0].cells[POWER].value == 300.123
    assert [one.cells[4].value for one in state.boards] == [2, 2]


def test_identity_and_free_memory_follow_from_the_device():
    cells = only(scenario(board(serial="S1", mig=True, fields={"252": 1000, "253": 559})).at(0)).cells
    assert [cells[n].value for n in (50, 52, 53, 54, 55, 57, 67, 250, 251)] == [
        "NVIDIA H100",
        0,
        "S1",
        UUID,
        0,
        "00000000:07:00.0",
        1,
        81559,
        80000,
    ]
    assert cells[254].value == pytest.approx(1000 / 81000)
    assert cells[85].sentinel == "not_supported"


def test_utilisation_of_a_board_in_mig_mode_is_not_supported():
    fields = {str(UTIL): 90}
    assert only(scenario(board(mig=True, fields=fields)).at(0)).cells[UTIL].sentinel == "not_supported"
    assert only(scenario(board(mig=False, fields=fields)).at(0)).cells[UTIL].value == 90


def test_compute_instances_have_their_gpu_instances_values_where_they_give_none():
    parts = [{"ci": 0, "uuid": "MIG-a", "fields": {"1001": 0.1}}, {"ci": 1, "uuid": "MIG-b"}]
    own = instance(3, fields={"1001": 0.5, "1005": 0.25, "252": 10})
    one = only(scenario(board(mig=True, instances=[{**own, "compute": parts}])).at(0)).instances[0]
    assert [part.cells[1001].value for part in one.compute] == [0.1, 0.5]
    assert [part.cells[1005].sentinel for part in one.compute] == ["blank", "blank"]
    assert [part.cells[54].value for part in one.compute] == ["MIG-a", "MIG-b"]
    assert one.cells[1005].value == 0.25


def test_a_gpu_instance_without_compute_instances_has_only_its_name():
    one = only(scenario(board(mig=True, instances=[instance(3, fields={"252": 10})])).at(0)).instances[0]
    assert one.cells[252].sentinel == "blank"
    assert one.cells[50].value == "1g.10gb"


def test_ids_are_used_again_after_a_reconfiguration_but_what_they_mean_differs():
    change = {"event": "mig", "device": UUID, "at": 10, "for": 10, "instances": [instance(3, 0), instance(9, 0, 1)]}
    one = scenario(board(mig=True, instances=[instance(3, 0)]), events=[change])
    states = [only(one.at(t)).instances for t in (0, 10, 20)]
    assert [[i.entity_id for i in found] for found in states] == [[0], [0, 1], [0]]
    assert [part.entity_id for i in states[1] for part in i.compute] == [0, 1, 2]
    assert [part.mig_index for i in states[1] for part in i.compute] == [0, 1, 2]
    assert states[0][0].identity != states[1][0].identity
    assert states[0][0].identity == states[2][0].identity


def test_a_restart_breaks_the_link_and_moves_entity_ids_on():
    one = scenario(board(), board(uuid="GPU-b", index=1), events=[{"event": "restart", "at": 10, "for": 5}])
    found = [(s.connected, s.generation, s.link, [b.entity_id for b in s.boards]) for s in map(one.at, (9, 11, 15))]
    assert found == [(True, 0, 0, [0, 1]), (False, 1, 1, [1, 2]), (True, 1, 1, [1, 2])]


def test_a_disconnection_breaks_the_link_only():
    one = scenario(events=[{"event": "disconnect", "at": 10, "for": 5}])
    found = [(s.connected, s.generation, s.link) for s in map(one.at, (9, 11, 15))]
    assert found == [(True, 0, 0), (False, 0, 1), (True, 0, 1)]


@pytest.mark.parametrize(("seen", "status", "sentinel"), [("status", -18, None), ("blank", 0, "blank")])
def test_a_lost_board_has_no_value_but_fresh_timestamps(seen, status, sentinel):
    lost = {"event": "lost", "device": UUID, "at": 10, "for": 5, "as": seen}
    one = scenario(board(fields={"155": 1}), events=[lost])
    cell = only(one.at(12)).cells[POWER]
    assert (only(one.at(12)).lost, cell) == (True, ScriptCell(None, 12, sentinel, status))
    assert (only(one.at(15)).lost, only(one.at(15)).cells[POWER].value) == (False, 1.0)


def test_identity_can_be_read_of_a_lost_board_and_is_spoilt_only_by_name():
    events = [
        {"event": "lost", "device": UUID, "at": 10, "for": 5},
        {"event": "cells", "at": 20, "for": 5, "sentinel": "blank"},
        {"event": "cells", "at": 30, "for": 5, "fields": ["54"], "sentinel": "blank"},
    ]
    one = scenario(board(fields={"155": 1}), events=events)
    found = [(only(one.at(t)).cells[54].value, only(one.at(t)).cells[POWER].value) for t in (12, 22, 32)]
    assert found == [(UUID, None), (UUID, None), (None, 1.0)]


def test_an_absent_board_is_not_listed():
    one = scenario(events=[{"event": "lost", "device": UUID, "at": 10, "for": 5, "as": "absent"}])
    assert [len(one.at(t).boards) for t in (9, 10, 15)] == [1, 0, 1]


def test_cells_lose_their_value_or_age_for_as_long_as_it_is_said():
    events = [
        {"event": "cells", "at": 10, "for": 5, "devices": [UUID], "fields": ["155"], "sentinel": "no_permission"},
        {"event": "cells", "at": 20, "for": 5, "status": -16, "fields": ["155"]},
        {"event": "cells", "at": 30, "for": 5, "stale": True},
        {"event": "cells", "at": 0, "devices": [f"{UUID}/1"], "sentinel": "blank"},
    ]
    one = scenario(board(fields={"155": 1, "150": 2}), events=events)
    power = [only(one.at(t)).cells[POWER] for t in (5, 12, 22, 33)]
    assert power == [
        ScriptCell(1.0, 5),
        ScriptCell(None, 12, "no_permission"),
        ScriptCell(None, 22, None, -16),
        ScriptCell(1.0, 30),
    ]
    assert only(one.at(12)).cells[150].value == 2
    assert only(one.at(33)).cells[150].stamp == 30


def test_an_xid_appears_with_its_time_and_is_forgotten_with_the_engines_cache():
    events = [
        {"event": "xid", "device": UUID, "at": 5, "xid": 31},
        {"event": "xid", "device": UUID, "at": 8, "xid": 79},
        {"event": "restart", "at": 20},
    ]
    one = scenario(events=events)
    assert XID not in only(one.at(4)).cells
    assert only(one.at(9)).cells[XID] == ScriptCell(79, 8)
    assert [xid.xid for xid in one.at(9).xids] == [31, 79]
    assert XID not in only(one.at(21)).cells
    assert one.at(21).xids == ()


def test_faults_and_holders_come_and_go():
    call = {"event": "call", "function": "read", "at": 10, "for": 5, "status": -3}
    holder = {"namespace": "n", "pod": "p", "container": "c", "resource": "nvidia.com/gpu", "devices": ["GPU-x::1"]}
    one = scenario(events=[call], holders=[{**holder, "from": 10, "until": 15}, {**holder, "pod": "q"}])
    assert [[call.status for call in one.at(t).calls] for t in (9, 10, 15)] == [[], [-3], []]
    assert [[holder.pod for holder in one.at(t).holders] for t in (9, 10, 15)] == [["q"], ["p", "q"], ["q"]]


def test_the_idle_pod_of_the_default_scenario_holds_two_gpus_at_two_percent():
    state = load().at(30)
    (idle,) = [holder for holder in state.holders if holder.pod == "ablation-7-xk2vp"]
    assert (idle.namespace, len(idle.devices), len(state.boards)) == ("research", 2, 8)
    for one in state.boards:
        if one.spec.uuid in idle.devices:
            assert 0.01 <= one.cells[1001].value <= 0.03
