"""Peer-to-peer statuses through NVML: of each pair that can be read."""

import pytest

from exporter.node.devices.counters.computed_metrics import P2P_STATUS, READ_BY_CALLS
from exporter.node.nvml.source import NvmlSource
from exporter.node.simulation.document import CallFault, GpuLoss
from exporter.node.simulation.scenario import load
from tests.exporter.node.nvml.fixture import config, with_events


def pairs_of(source):
    return {(pair.uuid, pair.peer): pair.status for pair in source.read().p2p}


@pytest.fixture
def source(open_source) -> NvmlSource:
    opened: NvmlSource = open_source(150)
    opened.want((*config((150,)).fields, READ_BY_CALLS[P2P_STATUS]))
    return opened


def test_each_ordered_pair_has_one_status_and_none_is_asked_for_unless_it_is_wanted(
    scenario_table, source, open_source
):
    scenario_table("whole")
    found = pairs_of(source)
    assert len(found) == 8 * 7
    assert set(found.values()) == {0}
    assert open_source(150).read().p2p == ()


def test_a_mig_enabled_gpu_reaches_no_other(scenario_table, source):
    scenario_table("mig")
    mig = {gpu.uuid for gpu in load("mig").document.devices if gpu.mig}
    found = pairs_of(source)
    assert found
    assert found == {pair: 2 if mig & set(pair) else 0 for pair in found}


def test_a_lost_gpu_is_in_no_pair(scenario_table, source):
    table = scenario_table("whole")
    lost = table.scenario.document.devices[0].uuid
    table.scenario = with_events("whole", GpuLoss(lost, 5))
    assert len(pairs_of(source)) == 8 * 7
    table.tick(6)
    found = pairs_of(source)
    assert len(found) == 7 * 6
    assert not [pair for pair in found if lost in pair]


@pytest.mark.parametrize("code", [3, 13, 999])
def test_a_call_that_fails_costs_its_pairs_only(scenario_table, source, code):
    scenario_table(with_events("whole", CallFault("nvmlDeviceGetP2PStatus", status=code)))
    readings = source.read()
    assert readings.p2p == ()
    assert readings.down == ()
    assert len(readings.batches) == 1
