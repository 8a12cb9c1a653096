"""Normalized values through the whole flow: without a fitting counters file, and with the flag that leaves them out."""

from dataclasses import replace

import pytest

from exporter.node.devices.counters.counters_file import parse
from tests.exporter.node.scenario_flow import STYLE, SimulatedFlow, default_counters, series_of

NORMALIZED = ("gpugauge_device_", "gpugauge_gpu_", "gpugauge_allocation_")
ENDINGS = ("_ratio", "_bytes", "_watts", "_celsius", "_joules_total")
OF_BASIC_FIELDS = {
    "gpugauge_device_busy_ratio",
    "gpugauge_device_memory_used_bytes",
    "gpugauge_device_memory_total_bytes",
    "gpugauge_gpu_power_watts",
    "gpugauge_gpu_power_limit_watts",
    "gpugauge_gpu_energy_joules_total",
    "gpugauge_gpu_temperature_celsius",
    "gpugauge_gpu_memory_temperature_celsius",
    "gpugauge_allocation_busy_ratio",
    "gpugauge_allocation_memory_used_bytes",
}


def normalized(counters, **options):
    """The names of the normalized series that the scenario `whole` has."""
    exposed = series_of(SimulatedFlow("whole", counters, **options).exposition(61).text)
    return {name for name, _ in exposed if name.startswith(NORMALIZED) and name.endswith(ENDINGS)}


def test_the_default_counters_file_suffices_for_all_but_the_activity_of_multiprocessors():
    activity = {"gpugauge_device_tensor_active_ratio", "gpugauge_device_dram_active_ratio"}
    of_pods = {"gpugauge_allocation_tensor_active_ratio"}
    assert normalized(default_counters()) == OF_BASIC_FIELDS | activity | of_pods


def test_only_what_needs_profiling_fields_depends_on_the_counters_file():
    one_field = parse("DCGM_FI_DEV_SM_CLOCK, gauge, Clock.", "one.csv")
    assert normalized(one_field) == OF_BASIC_FIELDS
    multiprocessors = parse("DCGM_FI_PROF_SM_ACTIVE, gauge, Activity.", "one.csv")
    assert normalized(multiprocessors) == OF_BASIC_FIELDS | {"gpugauge_device_sm_active_ratio"}


@pytest.mark.parametrize("time", ["gpugauge_device_state_seconds_total", "gpugauge_allocation_info"])
def test_without_normalized_values_everything_else_stays(time):
    assert normalized(default_counters(), normalized=False) == set()
    exposed = series_of(SimulatedFlow("whole", default_counters(), normalized=False).exposition(61).text)
    assert any(name == time for name, _ in exposed)


def test_without_labels_of_pods_only_the_value_that_rules_read_is_exposed_under_a_pod():
    style = replace(STYLE, allocation_labels=False)
    series = series_of(SimulatedFlow("whole", style=style).exposition(61).text)
    of_pods = {name for name, labels in series if dict(labels).get("gpu_pod")}
    assert of_pods == {"gpugauge_allocation_info", "gpugauge_allocation_busy_ratio"}
    assert "gpugauge_device_tensor_active_ratio" in {name for name, _ in series}
