"""Alerts on faults that a GPU reports itself, for both exporters and every naming generation."""

import pytest

from alerts.alerting import faults
from alerts.recorded import faults as recorded
from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture
from tests.alerts.targets import check, firing, on_node, texts

pytestmark = pytest.mark.prometheus

GROUPS = (recorded.GROUP, faults.GROUP)


def _sample(fixture: RuleFixture, name: str, node: str, values: object, **labels: str) -> None:
    """As gpugauge exposes it: a target with a node, and DCGM's names with the label hostname."""
    exposed = {"node": node, "hostname": node, "UUID": f"GPU-{node}", "gpu": "0", **labels}
    on_node(fixture, name, exposed, values)


FLAGS = (
    ("GPURecoveryActionRequired", "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", 2, 0, 3),
    ("GPUEccUncorrectable", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 1, 0, 1),
    ("GPURowRemapFailed", "DCGM_FI_DEV_ROW_REMAP_FAILURE", 1, 0, 1),
    ("GPURowRemapPending", "DCGM_FI_DEV_ROW_REMAP_PENDING", 1, 0, 16),
    ("GPURowRemapExhausting", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW", 3, 0, 61),
    ("GPURetiredPagesPending", "DCGM_FI_DEV_RETIRED_PENDING", 2, 0, 16),
    ("GPUHealthCheckFailed", "DCGM_EXP_GPU_HEALTH_STATUS", 20, 10, 6),
    ("GPUHealthCheckWarning", "DCGM_EXP_GPU_HEALTH_STATUS", 10, 20, 6),
    ("GPUFabricUnhealthy", "DCGM_FI_DEV_FABRIC_MANAGER_STATUS", 4, 3, 6),
)
"""Alert, field, a value that is a fault and one that is none, and the minute at which it fires."""


def test_f7_each_fault_fires_after_its_time_and_ends(tmp_path):
    fixtures = []
    for alert, name, bad, good, fires in FLAGS:
        fixture = RuleFixture()
        _sample(fixture, name, "bad", f"{bad}x140 {good}x100")
        _sample(fixture, name, "good", always(good))
        if fires > 1:
            firing(fixture, alert, fires - 2, "node")
        firing(fixture, alert, fires, "node", "bad")
        firing(fixture, alert, 71, "node", "bad")
        firing(fixture, alert, 87, "node")
        fixtures.append(fixture)
    check(tmp_path, *fixtures, groups=GROUPS)


def test_the_gpu_is_named_alike_whatever_the_exporter_calls_it(tmp_path):
    """Names of both generations, and each spelling of host and UUID; a MIG-enabled GPU is one GPU."""
    fixture = RuleFixture()
    stock = {"job": "dcgm-exporter", "instance": "10.0.0.1:9400"}
    for name, labels in (
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", {"Hostname": "old", "UUID": "GPU-1"}),
        ("DCGM_FI_DEV_ROW_REMAP_FAILED", {"hostname": "new", "UUID": "GPU-1"}),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", {"Hostname": "spelled", "uuid": "GPU-1"}),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", {"Hostname": "mig", "UUID": "GPU-1", "GPU_I_ID": "1"}),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", {"Hostname": "mig", "UUID": "GPU-1", "GPU_I_ID": "2"}),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", {"Hostname": "nameless"}),
    ):
        fixture.add(name, {**stock, **labels}, always(1))
    wanted = [({"node": node, "UUID": "GPU-1"}, 1.0) for node in ("old", "new", "spelled", "mig")]
    fixture.expect('count by (node, UUID) (ALERTS{alertname="GPURowRemapFailed"})', 5, *wanted)
    check(tmp_path, fixture, groups=GROUPS)


def test_limits_are_those_of_the_gpu_itself(tmp_path):
    fixture = RuleFixture()
    for node, slowdown, temperature, width in (("near", 90, 86, 8), ("far", 90, 85, 16), ("hot-model", 100, 87, 16)):
        _sample(fixture, "DCGM_FI_DEV_SLOWDOWN_TEMP", node, always(slowdown))
        _sample(fixture, "DCGM_FI_DEV_GPU_TEMP", node, always(temperature))
        _sample(fixture, "DCGM_FI_DEV_MEM_MAX_OP_TEMP", node, always(slowdown))
        _sample(fixture, "DCGM_FI_DEV_MEMORY_TEMP", node, always(temperature))
        _sample(fixture, "DCGM_FI_DEV_PCIE_LINK_WIDTH", node, always(width))
        _sample(fixture, "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", node, always(16))
    for alert, minute in (
        ("GPUTemperatureNearLimit", 11),
        ("GPUMemoryTemperatureNearLimit", 11),
        ("GPUPCIeLinkDegraded", 16),
    ):
        firing(fixture, alert, minute - 2, "node")
        firing(fixture, alert, minute, "node", "near")
    check(tmp_path, fixture, groups=GROUPS)


def test_full_load_at_the_power_limit_is_no_fault_and_at_a_lowered_one_it_is_told(tmp_path):
    fixture = RuleFixture()
    for node, limit, capped in (("full", 700, 1), ("almost", 665, 1), ("lowered", 600, 1), ("lowered-at-rest", 600, 0)):
        _sample(fixture, "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", node, always(limit))
        _sample(fixture, "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", node, always(700))
        event = {"node": node, "UUID": f"GPU-{node}", "reason": "power_cap"}
        on_node(fixture, "gpugauge_clock_event", event, always(capped))
    firing(fixture, "GPUPowerCapped", 29, "node")
    firing(fixture, "GPUPowerCapped", 31, "node", "lowered")
    check(tmp_path, fixture, groups=GROUPS)


def test_errors_of_links_count_by_their_rate(tmp_path):
    fixture = RuleFixture()
    for node, per_step in (("many", 5), ("some", 4), ("none", 0)):
        _sample(fixture, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", node, f"0+{per_step}x180")
        _sample(
            fixture, "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", node, f"0+{per_step - 1 if per_step else 0}x180"
        )
    firing(fixture, "GPUPCIeReplaysHigh", 14, "node")
    firing(fixture, "GPUPCIeReplaysHigh", 40, "node", "many")
    firing(fixture, "GPUNVLinkErrors", 40, "node", "many")
    check(tmp_path, fixture, groups=GROUPS)


def test_the_text_says_what_the_driver_asks_for(tmp_path):
    fixture = RuleFixture()
    _sample(fixture, "DCGM_FI_DEV_GPU_RECOVERY_ACTION", "node-1", always(4))
    needs = "needs what its driver asks for: drain the node and reset the GPU."
    texts(
        fixture,
        "GPURecoveryActionRequired",
        5,
        {"node": "node-1", "UUID": "GPU-node-1", "fault": "recovery_action"},
        f"GPU GPU-node-1 of node node-1 {needs}",
        f"GPU GPU-node-1 of node node-1 {needs} It cannot be used before.",
    )
    check(tmp_path, fixture, groups=GROUPS)
