"""What is wrong in the data set with trouble: a GPU that is lost, an exporter and a watcher with problems.

Series of a healthy exporter are golden files; those of a fault that no scenario has are written here.
"""

from tests.dashboards.prometheus import GROWING

SICK = "GPU-00000000-0000-0000-0000-00000000dead"
RULES = {"prometheus_rule_group_last_duration_seconds": "0.2", "prometheus_rule_evaluation_failures_total": GROWING}
RULES |= {"prometheus_rule_group_iterations_missed_total": GROWING}
FIELDS = {
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": 3,
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": 8,
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": 1,
    "DCGM_FI_DEV_ROW_REMAP_PENDING": 1,
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 2,
    "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION": 2,
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": 8,
    "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": 16,
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": GROWING,
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": GROWING,
}
"""Fields of the GPU that is lost, as they were before it was."""


def of_gpu(node: str) -> list[str]:
    """A GPU that cannot be read any more."""
    ids = f'UUID="{SICK}",node="{node}"'
    dcgm = f'gpu="7",UUID="{SICK}",modelName="NVIDIA H100 80GB HBM3",hostname="{node}"'
    return [
        f'gpugauge_device_info{{gpu="7",model="NVIDIA-H100-80GB-HBM3",driver_version="570.133.20",{ids}}} 1',
        f'gpugauge_device_up{{gpu="7",{ids}}} 0',
        f"gpugauge_device_sm_active_ratio{{{ids}}} 0.2",
        *(f"{name}{{{dcgm}}} {value}" for name, value in FIELDS.items()),
    ]


def of_exporter(node: str) -> list[str]:
    """Sources of an exporter that do not answer, and what it counts of them."""
    return [
        f'gpugauge_source_up{{node="{node}",source="processes"}} 0',
        f'gpugauge_source_errors_total{{node="{node}",source="processes",reason="no_permission"}} {GROWING}',
        f'gpugauge_rejected_values_total{{node="{node}",field="DCGM_FI_DEV_GPU_TEMP",reason="stale"}} {GROWING}',
    ]


def of_cluster(node: str) -> list[str]:
    """A watch that was interrupted and one that is off, a node without exporter, and one whose MIG layout changes."""
    group = 'rule_group="/etc/prometheus/rules/nodes.yaml;gpugauge-nodes"'
    return [
        f'gpugauge_watch_restarts_total{{object="pods",reason="expired"}} {GROWING}',
        'gpugauge_watch_off{object="events",reason="forbidden"} 1',
        'gpugauge_node_info{node="node-9",model="NVIDIA-L4",gpu_count="4",sharing="none",pool="training"} 1',
        f'gpugauge_node_maintenance{{node="{node}",reason="mig_reconfig"}} 1',
        *(f"{name}{{{group}}} {value}" for name, value in RULES.items()),
    ]
