"""NVLinks of GPUs as entities of their own, through NVML: which there are, and what each has."""

import time

import msgspec
import pynvml
import pytest

from exporter.node.devices.entities.link import Link
from exporter.node.nvml.entities.links import READ_FIELDS
from exporter.node.simulation.document import CallFault, GpuLoss, NvlinkSpec
from exporter.node.simulation.scenario import Scenario, load
from tests.exporter.node.nvml.fixture import column, counted

ERRORS = {1525: 11, 1526: 12, 1527: 13, 1528: 14}
RATES = {1529: 30_000, 1530: 20_000, 1531: 10_000}


def link(number, state="up", **fields):
    own = {1508: 1} | ERRORS | RATES | {int(key): value for key, value in fields.items()}
    return NvlinkSpec(number, state=state, fields={str(key): value + number for key, value in own.items()})


def with_links(*links, faults=()):
    """The scenario `whole` whose first two GPUs have these links."""
    document = load("whole").document
    first, second, *others = document.devices
    linked = tuple(msgspec.structs.replace(gpu, nvlinks=links) for gpu in (first, second))
    return Scenario("links", msgspec.structs.replace(document, devices=(*linked, *others), events=tuple(faults)))


def of_links(readings):
    """Return every sample of links by (position of the GPU, number, field)."""
    return {
        (readings.links[position].gpu, readings.links[position].number, field): value
        for batch in readings.link_batches
        for field, column in zip(batch.fields, batch.columns, strict=True)
        for position, value in zip(batch.devices, column, strict=True)
    }


def test_each_active_link_has_its_state_and_its_errors(scenario_table, open_source):
    scenario_table(with_links(link(0), link(3), link(5, "down"), link(6, "disabled")))
    readings = open_source(1508, *ERRORS, 150).read()
    assert readings.links == (Link(0, 0), Link(0, 3), Link(1, 0), Link(1, 3))
    expected = {1508: 1} | ERRORS
    assert of_links(readings) == {
        (gpu, number, field): value + number for gpu in (0, 1) for number in (0, 3) for field, value in expected.items()
    }
    assert readings.rejections == ()
    assert None not in column(readings, 150)


def test_bandwidth_of_a_link_is_the_change_of_its_own_counters(scenario_table, open_source):
    scenario_table(with_links(link(0), link(17)))
    source = open_source(*RATES)
    first = source.read()
    assert set(of_links(first).values()) == {None}
    assert counted(first, 1530) == {"blank": 4}
    time.sleep(0.02)  # the fake library's counters grow with the real time
    found = of_links(source.read())
    for (_, number, field), value in found.items():
        both = 2 * number if field == 1529 else number
        assert value == pytest.approx(RATES[field] + both, rel=0.02)
    assert len(found) == 2 * 2 * 3


def test_a_link_that_goes_down_is_still_read_and_one_that_comes_up_is_found(scenario_table, open_source):
    table = scenario_table(with_links(link(0), link(1, "down")))
    source = open_source(1527)
    assert {each.number for each in source.read().links} == {0}
    table.scenario = with_links(link(0, "down"), link(1))
    table.tick(1)
    assert {each.number for each in source.read().links} == {0, 1}


@pytest.fixture
def state_calls(monkeypatch):
    """The numbers of the links whose state is asked for, in order."""
    asked = []
    original = pynvml.nvmlDeviceGetNvLinkState

    def noted(handle, number):
        asked.append(number)
        return original(handle, number)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetNvLinkState", noted)
    return asked


def test_states_are_asked_for_once_and_only_where_a_field_of_links_is_wanted(scenario_table, open_source, state_calls):
    scenario_table(with_links(link(0)))
    open_source(150, 449).read()
    assert state_calls == []
    source = open_source(1525)
    source.read()
    assert len(state_calls) == 8 * pynvml.NVML_NVLINK_MAX_LINKS
    source.read()
    assert len(state_calls) == 8 * pynvml.NVML_NVLINK_MAX_LINKS


@pytest.mark.parametrize("code", [3, 13])
def test_a_driver_without_states_of_links_has_no_links(scenario_table, open_source, code):
    scenario_table(with_links(link(0), faults=[CallFault("nvmlDeviceGetNvLinkState", status=code)]))
    readings = open_source(*READ_FIELDS, 150).read()
    assert readings.links == readings.link_batches == ()
    assert None not in column(readings, 150)


def test_a_failure_on_one_gpu_costs_the_errors_of_its_links_only(scenario_table, open_source):
    uuid = load("whole").document.devices[0].uuid
    fault = CallFault("nvmlDeviceGetNvLinkErrorCounter", status=4, device=uuid)
    scenario_table(with_links(link(0), faults=[fault]))
    readings = open_source(1525, 1508, 150).read()
    assert of_links(readings) == {(0, 0, 1525): None, (0, 0, 1508): 1, (1, 0, 1525): 11, (1, 0, 1508): 1}
    assert counted(readings, 1525) == {"no_permission": 1}
    assert None not in column(readings, 150)


def test_a_counter_that_links_of_this_generation_do_not_have_is_not_supported(scenario_table, open_source):
    scenario_table(with_links(link(0), faults=[CallFault("nvmlDeviceGetNvLinkErrorCounter", status=2)]))
    assert counted(open_source(1526).read(), 1526) == {"not_supported": 2}


def test_a_lost_gpu_has_no_links(scenario_table, open_source):
    uuid = load("whole").document.devices[0].uuid
    table = scenario_table(with_links(link(0), faults=[GpuLoss(uuid, 10)]))
    source = open_source(1525, 150)
    assert source.read().links == (Link(0, 0), Link(1, 0))
    table.tick(11)
    readings = source.read()
    assert readings.down == (uuid,)
    assert readings.links == (Link(1, 0),)
    assert of_links(readings) == {(1, 0, 1525): 11}


NO_KIB = [CallFault("nvmlDeviceGetFieldValues", field=field, status=3) for field in ("843", "897")]


def blackwell(*links, faults=()):
    scenario = with_links(*links, faults=faults)
    devices = tuple(msgspec.structs.replace(gpu, architecture="blackwell") for gpu in scenario.document.devices)
    return Scenario("links", msgspec.structs.replace(scenario.document, devices=devices))


def test_bandwidth_of_a_link_of_nvlink_5_is_that_of_its_counters_in_bytes(scenario_table, open_source):
    scenario_table(blackwell(link(0), link(17), faults=NO_KIB))
    source = open_source(*RATES)
    assert set(of_links(source.read()).values()) == {None}
    time.sleep(0.02)  # the fake library's counters grow with the real time
    found = of_links(source.read())
    for (_, number, field), value in found.items():
        both = 2 * number if field == 1529 else number
        assert value == pytest.approx(RATES[field] + both, rel=0.02)
    assert len(found) == 2 * 2 * 3


def test_a_link_without_any_counter_of_bytes_has_no_bandwidth(scenario_table, open_source):
    scenario_table(with_links(link(0), faults=NO_KIB))  # Hopper has none in bytes
    readings = open_source(*RATES).read()
    assert set(of_links(readings).values()) == {None}
    assert counted(readings, 1530) == {"not_supported": 2}


def test_bytes_over_a_link_come_from_two_gpm_samples(scenario_table, open_source, clock):
    sent, received = 1532, 1533
    scenario_table(with_links(*(link(n, **{"1532": 4096 << 20, "1533": 1024 << 20}) for n in (0, 17, 18, 35))))
    source = open_source(sent, received, 1002)
    first = source.read()
    assert set(of_links(first).values()) == {None}
    assert counted(first, sent) == {"blank": 8}
    clock.now += 1
    found = of_links(source.read())
    # The value that `link` gives is greater by the number of the link; GPM gives MiB.
    assert {(number, field): round(value / 2**20) for (_, number, field), value in found.items()} == {
        (number, field): mib for number in (0, 17, 18, 35) for field, mib in ((sent, 4096), (received, 1024))
    }


def test_gpm_samples_of_links_and_of_the_gpu_do_not_disturb_each_other(scenario_table, open_source, clock):
    scenario_table(with_links(link(0, **{"1532": 5 << 20})))
    source = open_source(1532, 1002)
    source.read()
    clock.now += 1
    readings = source.read()
    assert of_links(readings) == {(0, 0, 1532): 5 << 20, (1, 0, 1532): 5 << 20}
    assert None not in column(readings, 1002)


def test_a_gpu_that_was_lost_has_no_rate_over_its_absence(scenario_table, open_source, clock):
    uuid = load("whole").document.devices[0].uuid
    lost = GpuLoss(uuid, at=10, for_=10)
    table = scenario_table(with_links(link(0, **{"1532": 5 << 20}), faults=[lost]))
    source = open_source(1532)
    for t in (0, 1, 11):
        table.tick(t)
        source.read()
        clock.now += 1
    table.tick(21)
    clock.now += 120
    assert of_links(source.read())[0, 0, 1532] is None


@pytest.mark.parametrize("status", [3, 13])
def test_without_gpm_links_have_no_bytes(scenario_table, open_source, status):
    scenario_table(with_links(link(0), faults=[CallFault("nvmlGpmQueryDeviceSupport", status=status)]))
    assert counted(open_source(1532).read(), 1532) == {"not_supported": 2}
