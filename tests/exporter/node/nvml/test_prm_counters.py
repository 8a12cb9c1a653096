"""Counters of the ports of NVLinks, from PRM registers: fields 580 to 592 and 1509."""

import pynvml
import pytest

from exporter.node.nvml.calls.prm_counters import COUNTERS
from exporter.node.simulation.document import CallFault
from exporter.node.simulation.scenario import load
from tests.exporter.node.nvml.fixture import column, counted
from tests.exporter.node.nvml.test_links import link, of_links, with_links

UUID = load("whole").document.devices[0].uuid
PORTS = {field: 2**40 + 1000 * field for field in COUNTERS}
FIELDS = {str(field): value for field, value in PORTS.items()}


def test_each_field_is_a_counter_of_nvml_and_no_two_are_the_same():
    assert set(COUNTERS) == {*range(580, 593), 1509}
    assert len(set(COUNTERS.values())) == len(COUNTERS)


def test_every_counter_of_every_link_is_its_own(scenario_table, open_source):
    scenario_table(with_links(link(0, **FIELDS), link(17, **FIELDS), link(35, **FIELDS)))
    readings = open_source(*COUNTERS, 150).read()
    assert of_links(readings) == {
        (gpu, number, field): value + number
        for gpu in (0, 1)
        for number in (0, 17, 35)
        for field, value in PORTS.items()
    }
    assert (readings.rejections, None in column(readings, 150)) == ((), False)


def test_all_links_of_a_gpu_are_read_with_one_call(scenario_table, open_source, monkeypatch):
    counts, original = [], pynvml.nvmlDeviceReadPRMCounters_v1

    def noted(handle, counters):
        counts.append(counters.numCounters)
        return original(handle, counters)

    monkeypatch.setattr(pynvml, "nvmlDeviceReadPRMCounters_v1", noted)
    scenario_table(with_links(link(0, **FIELDS), link(5, **FIELDS)))
    open_source(*COUNTERS, 1525).read()
    assert counts == [2 * len(COUNTERS)] * 2
    counts.clear()
    open_source(1525).read()
    assert counts == []


STATUSES = {2: "not_supported", 3: "not_supported", 4: "no_permission", 6: "not_found", 999: "blank"}


@pytest.mark.parametrize("field", sorted(COUNTERS))
def test_each_status_of_a_counter_costs_one_value_of_one_link(scenario_table, open_source, field):
    table = scenario_table(with_links(link(0, **FIELDS), link(5, **FIELDS)))
    source = open_source(*COUNTERS)
    healthy = of_links(source.read())
    for status, reason in STATUSES.items():
        fault = CallFault("nvmlDeviceReadPRMCounters_v1", status=status, device=f"{UUID}/nvlink5", field=str(field))
        table.scenario = with_links(link(0, **FIELDS), link(5, **FIELDS), faults=[fault])
        table.tick(1)
        readings = source.read()
        assert of_links(readings) == healthy | {(0, 5, field): None}, status
        assert counted(readings, field) == {reason: 1}, status
        assert readings.down == ()


@pytest.mark.parametrize(("status", "reason"), [(3, "not_supported"), (13, "not_supported"), (4, "no_permission")])
def test_a_call_that_fails_costs_the_counters_of_one_gpu(scenario_table, open_source, status, reason):
    fault = CallFault("nvmlDeviceReadPRMCounters_v1", status=status, device=UUID)
    scenario_table(with_links(link(0, **FIELDS), faults=[fault]))
    readings = open_source(583, 1525).read()
    assert of_links(readings) == {
        (0, 0, 583): None, (0, 0, 1525): 11, (1, 0, 583): PORTS[583], (1, 0, 1525): 11,
    }  # fmt: skip
    assert counted(readings, 583) == {reason: 1}


@pytest.mark.parametrize("status", [15, 16, 28])
def test_a_lost_gpu_is_lost_whatever_call_says_so(scenario_table, open_source, status):
    fault = CallFault("nvmlDeviceReadPRMCounters_v1", status=status, device=UUID)
    scenario_table(with_links(link(0, **FIELDS), faults=[fault]))
    readings = open_source(583).read()
    assert readings.down == (UUID,)
    assert of_links(readings) == {(1, 0, 583): PORTS[583]}
