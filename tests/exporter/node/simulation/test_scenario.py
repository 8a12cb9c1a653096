"""Scenarios: which documents are errors, and what state a scenario has at a time."""

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.simulation.scenario import ScenarioError, builtin, load, parse
from exporter.node.simulation.script import (
    CounterScript,
    Failed,
    Frozen,
    Missing,
    Ramp,
    ScriptedSample,
    Sine,
    Square,
    Steps,
    value_at,
)

ROOT = Path(__file__).parents[4]
FAKES = sorted((ROOT / "tests/fakes/scenarios").glob("*.json"))
UUID = "GPU-00000000-0000-0000-0000-000000000000"
POWER, UTIL, XID = 155, 203, 230


def gpu(**more):
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
    return parse(json.dumps({"about": "a test", "devices": devices or [gpu()], **more}), "test.json")


def only_gpu(state):
    (found,) = state.gpus
    return found


@pytest.mark.parametrize("name", [*builtin(), *map(str, FAKES)])
def test_every_scenario_of_the_repository_gives_the_same_state_for_the_same_time(name):
    found = load(name)
    for t in (0, 12.5, 31, 1000):
        assert found.at(t) == found.at(t)


def test_the_example_in_the_documentation_is_a_scenario():
    text = (ROOT / "docs/scenario.md").read_text()
    (example,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    found = parse(example, "docs/scenario.md")
    assert found.begins(5.0) == 1767225600
    assert [each.samples[1001].value for each in only_gpu(found.at(50)).instances[0].compute] == [0.4, 0.1]
    assert only_gpu(found.at(31)).samples[150].value == 62


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
        (CounterScript(3, start=100), 10, 130),
    ],
)
def test_a_shape_gives_its_value_at_a_time(script, t, value):
    sample = value_at(script, t)
    assert sample == ScriptedSample(sample.value, t)
    assert sample.value == pytest.approx(value) if isinstance(value, int) else sample.value == value


def test_a_script_without_a_value_gives_a_sentinel_a_status_or_an_old_timestamp():
    assert value_at(Missing("not_found"), 3) == ScriptedSample(None, 3, sentinel="not_found")
    assert value_at(Failed(-18), 3) == ScriptedSample(None, 3, status=-18)
    assert [value_at(Frozen(1, at=5), t).stamp for t in (3, 9)] == [3, 5]


@given(st.floats(0, 1e6))
def test_a_sine_stays_within_its_amplitude_and_a_counter_never_falls(t):
    assert math.fabs(value_at(Sine(5, 2, 7, 0.3), t).value - 5) <= 2
    assert value_at(CounterScript(2), t + 1).value > value_at(CounterScript(2), t).value


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "test.json: Input data was truncated"),
        ('{"about": "x"}', "test.json: Object missing required field `devices`"),
        ('{"about": "x", "devices": [], "color": 1}', "test.json: Object contains unknown field `color`"),
    ],
)
def test_what_is_not_a_scenario_is_an_error_with_one_message(document, message):
    with pytest.raises(ScenarioError) as error:
        parse(document, "test.json")
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("devices", "more", "message"),
    [
        ([gpu(index="1")], {}, "Expected `int`, got `str` - at `$.devices[0].index`"),
        ([gpu(size=1)], {}, "Object contains unknown field `size` - at `$.devices[0]`"),
        ([gpu(fields={"DCGM_FI_X": 1})], {}, "no field is called 'DCGM_FI_X' - at `$.devices[0].fields`"),
        ([gpu(fields={"155": "x"})], {}, "155 must be a number - at `$.devices[0].fields`"),
        ([gpu(fields={"1": 5})], {}, "1 must be text - at `$.devices[0].fields`"),
        (
            [gpu(fields={"155": {"shape": "steps", "points": [[0, 1], [2, "x"]]}})],
            {},
            "155 must be a number - at `$.devices[0].fields`",
        ),
        (
            [gpu(fields={"155": {"shape": "sine", "mean": 1, "amplitude": 1, "period": 0}})],
            {},
            "155 has period 0, which must be above 0 - at `$.devices[0].fields`",
        ),
        (
            [gpu(fields={"155": {"shape": "steps", "points": [[5, 1], [2, 2]]}})],
            {},
            "155 has points that are not in the order of time - at `$.devices[0].fields`",
        ),
        (
            [gpu(fields={"155": {"shape": "spiral"}})],
            {},
            "Invalid value 'spiral' - at `$.devices[0].fields[...].shape`",
        ),
        ([gpu(use=["busy"])], {}, "no value set is called 'busy' - at `$.devices[0].use`"),
        ([gpu(), gpu(index=1)], {}, f"uuid '{UUID}' is there twice - at `$.devices[1]`"),
        ([gpu(), gpu(uuid="GPU-b")], {}, "index 0 is there twice - at `$.devices[1]`"),
        (
            [gpu(nvlinks=[{"number": 1}, {"number": 1}])],
            {},
            "number 1 is there twice - at `$.devices[0].nvlinks[1]`",
        ),
        (
            [gpu(nvlinks=[{"number": 36}])],
            {},
            "number 36 is not one from 0 to 35 - at `$.devices[0].nvlinks[0]`",
        ),
        (
            [gpu(nvlinks=[{"number": 0, "fields": {"DCGM_FI_NO": 1}}])],
            {},
            "no field is called 'DCGM_FI_NO' - at `$.devices[0].nvlinks[0].fields`",
        ),
        ([], {"cpus": [{"number": 8}]}, "number 8 is not one from 0 to 7 - at `$.cpus[0]`"),
        (
            [],
            {"cpus": [{"number": 0, "cores": [{"number": 1024}]}]},
            "number 1024 is not one from 0 to 1023 - at `$.cpus[0].cores[0]`",
        ),
        (
            [],
            {"cpus": [{"number": 0, "cores": [{"number": 1}]}, {"number": 1, "cores": [{"number": 1}]}]},
            "number 1 is there twice - at `$.cpus[1].cores[0]`",
        ),
        ([], {"switches": [{"number": 12}]}, "number 12 is not one from 0 to 11 - at `$.switches[0]`"),
        ([], {"switches": [{"number": 1}, {"number": 1}]}, "number 1 is there twice - at `$.switches[1]`"),
        (
            [],
            {"switches": [{"number": 0, "nvlinks": [{"number": 256}]}]},
            "number 256 is not one from 0 to 255 - at `$.switches[0].nvlinks[0]`",
        ),
        (
            [],
            {"switches": [{"number": 0, "fields": {"858": "hot"}}]},
            "858 must be a number - at `$.switches[0].fields`",
        ),
        (
            [],
            {"switches": [{"number": 0}], "events": [{"event": "xid", "device": "nvswitch0", "at": 1, "xid": 79}]},
            "no device has the uuid 'nvswitch0' - at `$.events[0].device`",
        ),
        (
            [gpu()],
            {"events": [{"event": "call", "function": "f", "device": UUID, "field": "power"}]},
            "no field is called 'power' - at `$.events[0].field`",
        ),
        ([gpu(instances=[instance(1)])], {}, "has instances although mig is not true - at `$.devices[0]`"),
        (
            [gpu(mig=True, instances=[instance(1), instance(1)])],
            {},
            "gi 1 is there twice - at `$.devices[0].instances[1]`",
        ),
        (
            [gpu(mig=True, instances=[instance(1, 0, 0)])],
            {},
            "ci 0 is there twice - at `$.devices[0].instances[0].compute[1]`",
        ),
        (
            [gpu(mig=True, instances=[instance(1, fields={"DCGM_FI_Y": 1})])],
            {},
            "no field is called 'DCGM_FI_Y' - at `$.devices[0].instances[0].fields`",
        ),
        (
            [gpu()],
            {"values": {"busy": {"DCGM_FI_Z": 1}}},
            "no field is called 'DCGM_FI_Z' - at `$.values.busy`",
        ),
        (
            [gpu()],
            {"events": [{"event": "lost", "device": "GPU-b", "at": 1}]},
            "no device has the uuid 'GPU-b' - at `$.events[0].device`",
        ),
        (
            [gpu()],
            {"events": [{"event": "call", "function": "nvmlInit", "device": "GPU-b"}]},
            "no device has the uuid 'GPU-b' - at `$.events[0].device`",
        ),
        (
            [gpu()],
            {"events": [{"event": "samples", "stale": True, "devices": ["GPU-b/1"]}]},
            "no device has the uuid 'GPU-b/1' - at `$.events[0].devices`",
        ),
        (
            [gpu()],
            {"events": [{"event": "samples", "stale": True, "fields": ["power"]}]},
            "no field is called 'power' - at `$.events[0].fields`",
        ),
        (
            [gpu()],
            {"events": [{"event": "call", "function": "f", "device": "GPU-b"}]},
            "no device has the uuid 'GPU-b' - at `$.events[0].device`",
        ),
        (
            [gpu()],
            {"events": [{"event": "call", "function": "f", "field": "power"}]},
            "no field is called 'power' - at `$.events[0].field`",
        ),
        (
            [gpu()],
            {"events": [{"event": "samples"}]},
            "has neither sentinel nor status nor stale - at `$.events[0]`",
        ),
        (
            [gpu()],
            {"events": [{"event": "explosion"}]},
            "Invalid value 'explosion' - at `$.events[0].event`",
        ),
    ],
)
def test_an_error_names_the_file_the_place_and_the_value(devices, more, message):
    with pytest.raises(ScenarioError) as error:
        scenario(*devices, **more)
    assert str(error.value) == f"test.json: {message}"


def test_the_error_for_a_missing_file_lists_the_built_in_scenarios(tmp_path):
    with pytest.raises(ScenarioError, match=r"missing\.json: cannot be read .* built in are mig, time_sliced, whole"):
        load(str(tmp_path / "missing.json"))
    (tmp_path / "own.json").write_text(json.dumps({"about": "x", "devices": []}))
    assert load(str(tmp_path / "own.json")).at(0).gpus == ()
    assert load().name == "whole.json"


def test_a_scenario_begins_at_its_epoch_or_else_now():
    assert scenario(epoch=100).begins(5000.0) == 100
    assert scenario().begins(5000.0) == 5000.0


def test_a_later_value_set_replaces_an_earlier_one_and_own_fields_replace_both():
    values = {"a": {"155": 1, "150": 1, "140": 1}, "b": {"DCGM_FI_DEV_POWER_USAGE": 2, "150": 2}}
    samples = only_gpu(scenario(gpu(use=["a", "b"], fields={"155": 3}), values=values).at(0)).samples
    assert [samples[number].value for number in (155, 150, 140)] == [3.0, 2, 1]


def test_values_have_the_type_of_their_field():
    shape = {"shape": "sine", "mean": 50.4, "amplitude": 0, "period": 9}
    samples = only_gpu(scenario(gpu(fields={"203": shape, "155": 300})).at(1)).samples
    assert (samples[203].value, type(samples[203].value)) == (50, int)
    assert (samples[155].value, type(samples[155].value)) == (300.0, float)


def test_power_is_rounded_to_milliwatts_and_every_gpu_has_the_number_of_gpus():
    shape = {"shape": "sine", "mean": 300.123456, "amplitude": 0, "period": 9}
    state = scenario(gpu(fields={"155": shape}), gpu(uuid="GPU-b", index=1)).at(1)
    assert state.gpus[0].samples[POWER].value == 300.123
    assert [each.samples[4].value for each in state.gpus] == [2, 2]


def test_identity_and_free_framebuffer_follow_from_the_device():
    samples = only_gpu(scenario(gpu(serial="S1", mig=True, fields={"252": 1000, "253": 559})).at(0)).samples
    assert [samples[n].value for n in (50, 52, 53, 54, 55, 57, 67, 250, 251)] == [
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
    assert samples[254].value == pytest.approx(1000 / 81000)
    assert samples[85].sentinel == "not_supported"


def test_utilization_of_a_mig_enabled_gpu_is_not_supported():
    fields = {str(UTIL): 90}
    assert only_gpu(scenario(gpu(mig=True, fields=fields)).at(0)).samples[UTIL].sentinel == "not_supported"
    assert only_gpu(scenario(gpu(mig=False, fields=fields)).at(0)).samples[UTIL].value == 90


def test_a_compute_instance_has_the_values_of_its_gpu_instance_where_it_gives_none():
    compute = [{"ci": 0, "uuid": "MIG-a", "fields": {"1001": 0.1}}, {"ci": 1, "uuid": "MIG-b"}]
    own = instance(3, fields={"1001": 0.5, "1005": 0.25, "252": 10})
    found = only_gpu(scenario(gpu(mig=True, instances=[{**own, "compute": compute}])).at(0)).instances[0]
    assert [each.samples[1001].value for each in found.compute] == [0.1, 0.5]
    assert [each.samples[1005].sentinel for each in found.compute] == ["blank", "blank"]
    assert [each.samples[54].value for each in found.compute] == ["MIG-a", "MIG-b"]
    assert found.samples[1005].value == 0.25


def test_a_gpu_instance_without_compute_instances_has_only_its_profile_name():
    found = only_gpu(scenario(gpu(mig=True, instances=[instance(3, fields={"252": 10})])).at(0)).instances[0]
    assert found.samples[252].sentinel == "blank"
    assert found.samples[50].value == "1g.10gb"


def test_entity_ids_are_used_again_after_a_reconfiguration_with_another_identity():
    change = {"event": "mig", "device": UUID, "at": 10, "for": 10, "instances": [instance(3, 0), instance(9, 0, 1)]}
    tested = scenario(gpu(mig=True, instances=[instance(3, 0)]), events=[change])
    states = [only_gpu(tested.at(t)).instances for t in (0, 10, 20)]
    assert [[i.entity_id for i in instances] for instances in states] == [[0], [0, 1], [0]]
    assert [each.entity_id for i in states[1] for each in i.compute] == [0, 1, 2]
    assert [each.mig_index for i in states[1] for each in i.compute] == [0, 1, 2]
    assert states[0][0].identity != states[1][0].identity
    assert states[0][0].identity == states[2][0].identity


def test_a_restart_breaks_connections_and_changes_entity_ids():
    tested = scenario(gpu(), gpu(uuid="GPU-b", index=1), events=[{"event": "restart", "at": 10, "for": 5}])
    found = [
        (s.connected, s.generation, s.connection_generation, [g.entity_id for g in s.gpus])
        for s in map(tested.at, (9, 11, 15))
    ]
    assert found == [(True, 0, 0, [0, 1]), (False, 1, 1, [1, 2]), (True, 1, 1, [1, 2])]


def test_a_disconnection_breaks_connections_only():
    tested = scenario(events=[{"event": "disconnect", "at": 10, "for": 5}])
    found = [(s.connected, s.generation, s.connection_generation) for s in map(tested.at, (9, 11, 15))]
    assert found == [(True, 0, 0), (False, 0, 1), (True, 0, 1)]


@pytest.mark.parametrize(("seen", "status", "sentinel"), [("status", -18, None), ("blank", 0, "blank")])
def test_a_lost_gpu_has_no_values_but_fresh_timestamps(seen, status, sentinel):
    lost = {"event": "lost", "device": UUID, "at": 10, "for": 5, "as": seen}
    tested = scenario(gpu(fields={"155": 1}), events=[lost])
    power = only_gpu(tested.at(12)).samples[POWER]
    assert (only_gpu(tested.at(12)).lost, power) == (True, ScriptedSample(None, 12, sentinel, status))
    assert (only_gpu(tested.at(15)).lost, only_gpu(tested.at(15)).samples[POWER].value) == (False, 1.0)


def test_the_driver_is_unbound_where_a_detached_gpu_is_lost_and_bound_where_it_is_back():
    events = [{"event": "lost", "device": UUID, "at": at, "for": 5, "state": "detached"} for at in (10, 20)]
    other = {"event": "lost", "device": UUID, "at": 1, "for": 5}
    tested = scenario(events=[*events, other])
    counts = [(state.unbinds, state.binds) for state in map(tested.at, (9, 10, 14, 15, 21, 30))]
    assert counts == [(0, 0), (1, 0), (1, 0), (1, 1), (2, 1), (2, 2)]


def test_identity_of_a_lost_gpu_can_be_read_and_only_a_fault_that_lists_it_changes_it():
    events = [
        {"event": "lost", "device": UUID, "at": 10, "for": 5},
        {"event": "samples", "at": 20, "for": 5, "sentinel": "blank"},
        {"event": "samples", "at": 30, "for": 5, "fields": ["54"], "sentinel": "blank"},
    ]
    tested = scenario(gpu(fields={"155": 1}), events=events)
    found = [
        (only_gpu(tested.at(t)).samples[54].value, only_gpu(tested.at(t)).samples[POWER].value) for t in (12, 22, 32)
    ]
    assert found == [(UUID, None), (UUID, None), (None, 1.0)]


def test_an_absent_gpu_is_not_listed():
    tested = scenario(events=[{"event": "lost", "device": UUID, "at": 10, "for": 5, "as": "absent"}])
    assert [len(tested.at(t).gpus) for t in (9, 10, 15)] == [1, 0, 1]


def test_a_sample_fault_takes_the_value_or_stops_the_timestamp_while_it_lasts():
    events = [
        {"event": "samples", "at": 10, "for": 5, "devices": [UUID], "fields": ["155"], "sentinel": "no_permission"},
        {"event": "samples", "at": 20, "for": 5, "status": -16, "fields": ["155"]},
        {"event": "samples", "at": 30, "for": 5, "stale": True},
        {"event": "samples", "at": 0, "devices": [f"{UUID}/1"], "sentinel": "blank"},
    ]
    tested = scenario(gpu(fields={"155": 1, "150": 2}), events=events)
    power = [only_gpu(tested.at(t)).samples[POWER] for t in (5, 12, 22, 33)]
    assert power == [
        ScriptedSample(1.0, 5),
        ScriptedSample(None, 12, "no_permission"),
        ScriptedSample(None, 22, None, -16),
        ScriptedSample(1.0, 30),
    ]
    assert only_gpu(tested.at(12)).samples[150].value == 2
    assert only_gpu(tested.at(33)).samples[150].stamp == 30


def test_an_xid_appears_with_its_time_and_is_forgotten_with_a_restart_of_the_engine():
    events = [
        {"event": "xid", "device": UUID, "at": 5, "xid": 31},
        {"event": "xid", "device": UUID, "at": 8, "xid": 79},
        {"event": "restart", "at": 20},
    ]
    tested = scenario(events=events)
    assert XID not in only_gpu(tested.at(4)).samples
    assert only_gpu(tested.at(9)).samples[XID] == ScriptedSample(79, 8)
    assert [xid.xid for xid in tested.at(9).xids] == [31, 79]
    assert XID not in only_gpu(tested.at(21)).samples
    assert tested.at(21).xids == ()


def test_call_faults_and_allocations_begin_and_end():
    call = {"event": "call", "function": "read", "at": 10, "for": 5, "status": -3}
    first = {"namespace": "n", "pod": "p", "container": "c", "resource": "nvidia.com/gpu", "devices": ["GPU-x::1"]}
    tested = scenario(events=[call], allocations=[{**first, "from": 10, "until": 15}, {**first, "pod": "q"}])
    assert [[call.status for call in tested.at(t).calls] for t in (9, 10, 15)] == [[], [-3], []]
    assert [[each.pod for each in tested.at(t).allocations] for t in (9, 10, 15)] == [["q"], ["p", "q"], ["q"]]


def test_the_idle_pod_of_the_default_scenario_has_two_gpus_at_two_percent():
    state = load().at(30)
    (idle,) = [allocation for allocation in state.allocations if allocation.pod == "ablation-7-xk2vp"]
    assert (idle.namespace, len(idle.devices), len(state.gpus)) == ("research", 2, 8)
    for found in state.gpus:
        if found.spec.uuid in idle.devices:
            assert 0.01 <= found.samples[1001].value <= 0.03
