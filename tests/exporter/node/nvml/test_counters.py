"""Rates from counters: PCIe on GPUs without GPM, and NVLink 5, through the fake library's own growing counters."""

import time

import msgspec
import pynvml
import pytest

from exporter.node.devices.fields.field_ids import NVLINK_5_COUNTS, NVLINK_ECC_DATA_ERROR_COUNT_TOTAL
from exporter.node.nvml.calls.counter_rates import CounterRates
from exporter.node.nvml.calls.field_values import ALL_LINKS
from exporter.node.nvml.native.values import RejectedValue
from exporter.node.simulation.document import CallFault
from exporter.node.simulation.scenario import Scenario, load
from tests.exporter.node.nvml.fixture import column, counted

FIELD_VALUES = "nvmlDeviceGetFieldValues"
SENT, RECEIVED = 12_000_000_000, 3_000_000_000
BLANK = RejectedValue("blank")


def gpus(architecture, fields, *faults):
    """The scenario `whole` with GPUs of this architecture that have these values at any time."""
    document = load("whole").document
    own = {str(field): value for field, value in fields.items()}
    devices = tuple(
        msgspec.structs.replace(gpu, use=(), architecture=architecture, fields=own) for gpu in document.devices
    )
    return Scenario("gpus", msgspec.structs.replace(document, devices=devices, events=faults))


def ada(*faults):
    return gpus("ada", {150: 40, 1009: SENT, 1010: RECEIVED}, *faults)


def read_twice(source, clock):
    """Return what the first and the second collection give."""
    first = source.read()
    time.sleep(0.02)  # the fake library's counters grow with the real time
    clock.now += 1
    return first, source.read()


def test_pcie_traffic_of_a_gpu_without_gpm_is_the_change_of_its_counters(scenario_table, open_source, clock):
    scenario_table(ada())
    first, second = read_twice(open_source(1009, 1010), clock)
    assert column(first, 1009) == column(first, 1010) == [None] * 8
    assert counted(first, 1009) == {"blank": 8}
    assert column(second, 1009) == pytest.approx([SENT] * 8, rel=1e-4)
    assert column(second, 1010) == pytest.approx([RECEIVED] * 8, rel=1e-4)
    assert second.rejections == ()


def test_the_counters_are_not_read_where_there_is_gpm(scenario_table, open_source, clock, field_value_requests):
    scenario_table(gpus("hopper", {1009: SENT, 1010: RECEIVED}))
    _, second = read_twice(open_source(1009, 1010), clock)
    assert column(second, 1009) == [SENT] * 8
    assert field_value_requests == []


def test_a_gpu_with_neither_gpm_nor_counters_is_asked_for_them_once(
    scenario_table, open_source, clock, field_value_requests
):
    scenario_table(gpus("ampere", {1009: SENT, 1010: RECEIVED}))
    source = open_source(1009, 1010)
    for _ in range(3):
        clock.now += 1
        readings = source.read()
        assert column(readings, 1009) == [None] * 8
        assert counted(readings, 1009) == {"not_supported": 8}
    assert field_value_requests == [[(197, 0), (198, 0)]] * 8


def test_one_gpu_whose_counters_fail_costs_that_value_of_that_gpu(scenario_table, open_source, clock):
    uuid = ada().document.devices[5].uuid
    scenario_table(ada(CallFault(FIELD_VALUES, status=4, field="1009", device=uuid)))
    _, second = read_twice(open_source(1009, 1010, 150), clock)
    assert [index for index, value in enumerate(column(second, 1009)) if value is None] == [5]
    assert counted(second, 1009) == {"no_permission": 1}
    assert None not in column(second, 1010) + column(second, 150)


def test_a_driver_without_field_values_has_no_counters(scenario_table, open_source, clock):
    scenario_table(ada(CallFault(FIELD_VALUES, status=13)))
    _, second = read_twice(open_source(1009, 150), clock)
    assert counted(second, 1009) == {"not_supported": 8}
    assert None not in column(second, 150)


def nvlink(architecture, *faults):
    """GPUs with 40,000 MB/s out and 10,000 MB/s in."""
    return gpus(architecture, {150: 40, 449: 50_000, 843: 40_000, 897: 10_000}, *faults)


NO_KIB = (CallFault(FIELD_VALUES, status=3, field="843"), CallFault(FIELD_VALUES, status=3, field="897"))


def test_nvlink_5_without_counters_in_kibibytes_is_read_from_those_in_bytes(scenario_table, open_source, clock):
    scenario_table(nvlink("blackwell", *NO_KIB))
    first, second = read_twice(open_source(449, 843, 897), clock)
    assert counted(first, 449) == {"blank": 8}
    assert column(second, 449) == pytest.approx([50_000] * 8, rel=1e-3)
    assert column(second, 843) == pytest.approx([40_000] * 8, rel=1e-3)
    assert column(second, 897) == pytest.approx([10_000] * 8, rel=1e-3)


def test_where_there_are_counters_in_kibibytes_those_in_bytes_are_not_read(
    scenario_table, open_source, clock, field_value_requests
):
    scenario_table(nvlink("blackwell"))
    _, second = read_twice(open_source(449), clock)
    assert column(second, 449) == pytest.approx([50_000] * 8, rel=1e-3)
    assert field_value_requests == [[(138, ALL_LINKS), (139, ALL_LINKS)]] * 16


def test_a_gpu_without_nvlink_is_asked_for_counters_in_bytes_once(
    scenario_table, open_source, clock, field_value_requests
):
    scenario_table(nvlink("hopper", *NO_KIB))
    source = open_source(449)
    for _ in range(3):
        clock.now += 1
        assert counted(source.read(), 449) == {"not_supported": 8}
    assert field_value_requests.count([(202, ALL_LINKS), (204, ALL_LINKS)]) == 8


def test_what_nvlink_5_counts_over_all_links_is_read_with_the_scope_of_all_links(scenario_table, open_source):
    counts = {field: 7 + field for field in (*NVLINK_5_COUNTS.values(), NVLINK_ECC_DATA_ERROR_COUNT_TOTAL)}
    scenario_table(gpus("blackwell", counts))
    readings = open_source(*counts).read()
    assert {field: column(readings, field) for field in counts} == {field: [n] * 8 for field, n in counts.items()}
    assert readings.rejections == ()


@pytest.mark.parametrize(
    ("encoded", "ratio"),
    [(0x30C, 3e-12), (0x10F, 1e-15), (0xA06, 1e-5), (0x0FF, 0.0), (0x100, 1.0), (0xFFF, 0.0), (0xFFFE30C, 3e-12)],
)
def test_bit_error_ratios_of_all_links_are_decoded(scenario_table, open_source, encoded, ratio):
    scenario_table(gpus("blackwell", {1215: encoded, 1217: 0x10C}))
    readings = open_source(1215, 1216, 1217, 1218).read()
    assert column(readings, 1216) == [pytest.approx(ratio, rel=1e-12)] * 8
    assert column(readings, 1218) == [pytest.approx(1e-12)] * 8
    assert column(readings, 1215) == [encoded] * 8


def test_a_bit_error_ratio_above_one_is_out_of_range_and_one_that_is_not_counted_is_absent(scenario_table, open_source):
    scenario_table(gpus("blackwell", {1215: 0x200}))
    readings = open_source(1216, 1218).read()
    assert counted(readings, 1216) == {"out_of_range": 8}
    assert counted(readings, 1218) == {"not_supported": 8}


def test_gpus_with_older_links_do_not_have_those_counts(scenario_table, open_source):
    scenario_table(gpus("hopper", {150: 40}))
    readings = open_source(1201, 1206, 1404, 150).read()
    assert counted(readings, 1201) == counted(readings, 1206) == counted(readings, 1404) == {"not_supported": 8}
    assert column(readings, 150) == [40] * 8


@pytest.fixture
def field_value_requests(monkeypatch):
    """What is asked of the library by nvmlDeviceGetFieldValues, in order."""
    asked = []
    original = pynvml.nvmlDeviceGetFieldValues

    def noted(handle, requests):
        asked.append(list(requests))
        return original(handle, requests)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetFieldValues", noted)
    return asked


def test_a_counter_that_was_reset_gives_no_rate_and_then_the_rate_since():
    rates = CounterRates()
    assert rates.per_second(("g", "1009"), 5_000, 1_000_000) == BLANK
    assert rates.per_second(("g", "1009"), 100, 2_000_000) == BLANK
    assert rates.per_second(("g", "1009"), 300, 2_500_000) == 400


def test_a_counter_that_could_not_be_read_is_not_compared_with_one_from_before():
    rates = CounterRates()
    rates.per_second(("g", "1009"), 5_000, 1_000_000)
    failed = RejectedValue("no_permission")
    assert rates.per_second(("g", "1009"), failed, 0) == failed
    assert rates.per_second(("g", "1009"), 9_000, 3_000_000) == BLANK
