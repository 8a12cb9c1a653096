"""The time of each device by state, in expositions: it goes on after a restart, and ends with the device."""

from tests.exporter.node.scenario_flow import SimulatedFlow
from tests.exporter.node.test_pipeline import STATE_SECONDS, of


def state_seconds(exposition):
    """The seconds of each state, by UUID and GPU instance, without those of no time."""
    found = {}
    for labels, value in of(exposition, STATE_SECONDS):
        own = found.setdefault((labels["UUID"], labels.get("GPU_I_ID", "")), {})
        if value:
            own[labels["state"]] = value
    return found


def test_the_time_of_each_device_counts_while_its_source_is_read_and_survives_a_restart():
    flow = SimulatedFlow("whole", t=61)
    for t in (61, 71, 81):
        exposition = flow.exposition(t)
    found = state_seconds(exposition)
    assert len(found) == 8
    assert {sum(states.values()) for states in found.values()} == {20}
    assert {state for states in found.values() for state in states} == {"busy", "unallocated"}
    flow.devices.reason = "connection_lost"
    assert state_seconds(flow.exposition(91)) == {}
    flow.devices.reason = ""
    assert state_seconds(flow.exposition(101)) == found
    restarted = SimulatedFlow("whole", t=111, state=flow.flow.pipeline.state)
    assert state_seconds(restarted.exposition(111)) == found
    assert {sum(states.values()) for states in state_seconds(restarted.exposition(121)).values()} == {30}


def test_without_attribution_all_time_is_in_the_state_unknown():
    flow = SimulatedFlow("whole", attributed=False)
    for t in (61, 71):
        exposition = flow.exposition(t)
    assert set(map(str, state_seconds(exposition).values())) == {"{'unknown': 10.0}"}


def test_the_seconds_of_mig_devices_end_with_a_mig_reconfiguration():
    flow = SimulatedFlow("mig_reconfigured")
    for t in (5, 15, 25, 60):
        exposition = flow.exposition(t)
        counted = {(labels["UUID"], labels.get("GPU_I_ID", "")) for labels, _ in of(exposition, "gpugauge_device_info")}
        assert state_seconds(exposition).keys() <= counted
    assert len(flow.flow.pipeline.state.devices) == len(state_seconds(exposition))
