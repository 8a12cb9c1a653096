"""Faults of components: NVSwitches and CPUs. Everything else is exposed as before."""

import pytest

from exporter.node.devices.counters.counters_file import parse
from tests.exporter.node.dcgm.component_fixture import cpu_spec, switch_spec, switched
from tests.exporter.node.dcgm.fixture import EngineFixture
from tests.exporter.node.scenario_flow import flow_over
from tests.faults.fault import fault
from tests.faults.programs import INTERVAL, collecting

pytestmark = [pytest.mark.slow]

GENERIC_ERROR = -3
"""A status of libdcgm."""
TEMPERATURE = "DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT"
COUNTERS = parse(
    f"DCGM_FI_DEV_GPU_TEMP, gauge, x\n{TEMPERATURE}, gauge, x\nDCGM_FI_DEV_CPU_POWER_UTIL_CURRENT, gauge, x", "f.csv"
)


@fault(
    name="The host engine cannot list its NVSwitches",
    shows=(
        'gpugauge_source_problem{source="dcgm",reason="switches_unreadable"} 1',
        f'gpugauge_field_unsupported_devices{{field="{TEMPERATURE}",reason="not_supported"}} 2',
        'gpugauge_source_up{source="dcgm"} 1',
        "DCGM_FI_DEV_GPU_TEMP > 0",
        "DCGM_FI_DEV_CPU_POWER_UTIL_CURRENT > 0",
    ),
    absent=("DCGM_FI_DEV_NVSWITCH_",),
)
def test_switches_that_cannot_be_listed_cost_only_their_own_series(tmp_path, row):
    failing = {"event": "call", "function": "dcgmGetEntityGroupEntities", "status": GENERIC_ERROR, "at": 0, "for": 10}
    engine = EngineFixture(tmp_path, switched(switch_spec(0), cpus=[cpu_spec(0)], events=[failing]))
    source = engine.source(*(field.id for field in COUNTERS.fields))
    try:
        with collecting(flow_over(source, None, COUNTERS, lambda: engine.now).pipeline.collect) as get:
            row.wait_until_shown(get)
            engine.at(11.0)
            row.wait_until_recovered(get, lambda exposed: bool(exposed.named(TEMPERATURE)), INTERVAL)
    finally:
        engine.close()
