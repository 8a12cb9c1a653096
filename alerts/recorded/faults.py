"""Recorded faults of GPUs: one series per GPU and fault, and none for a sound one.

Read from DCGM-named series of every naming generation, so that they are known of our exporter and of
dcgm-exporter alike. Most of these fields are not in the default counters file: the runbook says what each alert needs.
"""

from alerts.rules.rule import Group, Recording

FLAGS = """
label_replace(
  {__name__=~"DCGM_FI_DEV_ROW_REMAP_FAILURE|DCGM_FI_DEV_ROW_REMAP_FAILED"} > 0,
  "fault", "row_remap_failed", "", ""
)
or
label_replace(DCGM_FI_DEV_ROW_REMAP_PENDING > 0, "fault", "row_remap_pending", "", "")
or
label_replace(
  {__name__=~"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE|DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE"} > 0
  or
  {__name__=~"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW|DCGM_FI_DEV_BANK_REMAP_AVAIL_LOW"} > 0,
  "fault", "row_remap_exhausting", "", ""
)
or
label_replace(
  {__name__=~"DCGM_FI_DEV_RETIRED_PENDING|DCGM_FI_DEV_PAGE_RETIRED_PENDING"} > 0,
  "fault", "retired_pages_pending", "", ""
)
or
label_replace(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL > 0, "fault", "ecc_uncorrectable", "", "")
or
label_replace(
  {__name__=~"DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION|DCGM_FI_DEV_GPU_RECOVERY_ACTION"} > 0,
  "fault", "recovery_action", "", ""
)
or
label_replace(DCGM_EXP_GPU_HEALTH_STATUS == 20, "fault", "health_failed", "", "")
or
label_replace(DCGM_EXP_GPU_HEALTH_STATUS == 10, "fault", "health_warning", "", "")
or
label_replace(
  DCGM_FI_DEV_FABRIC_MANAGER_STATUS == 1 or DCGM_FI_DEV_FABRIC_MANAGER_STATUS == 2
  or DCGM_FI_DEV_FABRIC_MANAGER_STATUS == 4 or DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY == 2,
  "fault", "fabric", "", ""
)
"""
"""What a sound GPU has as 0 or not at all. Fabric: not started, in progress or failed (1, 2, 4), or unhealthy (2) by
its summary. Of several health checks one that failed counts."""

COMPARED = """
label_replace(
  max by (cluster, node, hostname, Hostname, UUID, uuid) (DCGM_FI_DEV_PCIE_LINK_WIDTH)
  < max by (cluster, node, hostname, Hostname, UUID, uuid) (DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH),
  "fault", "pcie_link_narrow", "", ""
)
or
label_replace(
  max by (cluster, node, hostname, Hostname, UUID, uuid) (
    {__name__=~"DCGM_FI_DEV_SLOWDOWN_TEMP|DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS"}
  )
  - max by (cluster, node, hostname, Hostname, UUID, uuid) (
    {__name__=~"DCGM_FI_DEV_GPU_TEMP|DCGM_FI_DEV_GPU_TEMP_CELSIUS"}
  )
  < 5,
  "fault", "near_slowdown_temperature", "", ""
)
or
label_replace(
  max by (cluster, node, hostname, Hostname, UUID, uuid) (
    {__name__=~"DCGM_FI_DEV_MEM_MAX_OP_TEMP|DCGM_FI_DEV_MEMORY_MAX_OP_TEMP_CELSIUS"}
  )
  - max by (cluster, node, hostname, Hostname, UUID, uuid) (
    {__name__=~"DCGM_FI_DEV_MEMORY_TEMP|DCGM_FI_DEV_MEMORY_TEMP_CELSIUS"}
  )
  < 5,
  "fault", "near_memory_temperature_limit", "", ""
)
or
label_replace(
  max by (cluster, node, hostname, Hostname, UUID, uuid) (
    {__name__=~"DCGM_FI_DEV_ENFORCED_POWER_LIMIT|DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS"}
  )
  / max by (cluster, node, hostname, Hostname, UUID, uuid) (
    {__name__=~"DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF|DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS"}
  )
  < 0.95,
  "fault", "power_limit_lowered", "", ""
)
"""
"""Limits are the GPU's own: models differ. The value of the temperatures is how many degrees are left."""

COUNTED = """
label_replace(
  max by (cluster, node, hostname, Hostname, UUID, uuid) (rate(DCGM_FI_DEV_PCIE_REPLAY_COUNTER[15m])) * 60 > 8
  or
  max by (cluster, node, hostname, Hostname, UUID, uuid) (rate(DCGM_FI_DEV_PCIE_REPLAY_TOTAL[15m])) * 60 > 8,
  "fault", "pcie_replays", "", ""
)
or
label_replace(
  max by (cluster, node, hostname, Hostname, UUID, uuid) (
    rate(DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL[15m])
  ) > 0.1
  or
  max by (cluster, node, hostname, Hostname, UUID, uuid) (
    rate(DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL[15m])
  ) > 0.1
  or
  max by (cluster, node, hostname, Hostname, UUID, uuid) (
    rate(DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL[15m])
  ) > 0.1
  or
  max by (cluster, node, hostname, Hostname, UUID, uuid) (
    rate(DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL[15m])
  ) > 0.1,
  "fault", "nvlink_errors", "", ""
)
"""
"""Per minute for PCIe, and per second for NVLink; a sound GPU has none."""

FAULTS = """
max by (cluster, node, UUID, fault) (
  label_replace(
    label_join(
      label_join(
        (FLAGS or COMPARED or COUNTED),
        "UUID", "", "UUID", "uuid"
      ),
      "node", ";", "node", "hostname", "Hostname"
    ),
    "node", "$1", "node", ";*([^;]*).*"
  )
  unless on (UUID) vector(0)
  unless on (node) vector(0)
)
"""
"""The node is that of the target where it has one, else the host. A device without UUID or node is left out."""


def _faults() -> str:
    parts = {"FLAGS": FLAGS, "COMPARED": COMPARED, "COUNTED": COUNTED}
    expression = FAULTS
    for name, part in parts.items():
        expression = expression.replace(name, part)
    return expression


GROUP = Group("gpugauge-faults", (Recording("node:gpu_fault:info", _faults()),))
