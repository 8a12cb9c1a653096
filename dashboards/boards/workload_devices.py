"""Lower rows of the Grafana dashboard `gpu-workload`: the devices of the chosen pods, and what happened to them.

Series of devices are read of the nodes of the chosen pods alone, and joined with the allocations to these pods.
"""

from dashboards import queries as q
from dashboards.boards import alert_rows
from dashboards.boards.device_tables import GPU_LINK
from dashboards.columns import CLUSTER_COLUMN, NODE_COLUMN, count, share
from dashboards.layout import PanelRow, SizedPanel
from dashboards.panels import graph, table
from dashboards.queries import CLUSTER, NODE
from dashboards.style import Column, Query, Unit

NODES = NODE
ALLOCATED = f'{NODES}, gpu_namespace=~"$namespace", gpu_pod=~"$pod"'
PLACES = "GPUs of the pods"


def of_pods(series: str) -> str:
    """A series of devices under each of the chosen pods that the device is allocated to, with its label `gpu_pod`."""
    return f"""
    max by ({q.DEVICE}, gpu_namespace, gpu_pod) (gpugauge_allocation_info{{{ALLOCATED}}})
    * on ({q.DEVICE}) group_left ()
    max by ({q.DEVICE}) ({series}{{{NODES}}})
    """


def of_gpus(series: str, labels: str = "") -> str:
    """A series of whole GPUs, MIG-enabled or not, of which a device is allocated to one of the chosen pods."""
    keys = f"{q.GPU}, {labels}" if labels else q.GPU
    return f"""
    max by ({keys}) ({series}{{{NODES}}})
    and on ({q.GPU}) gpugauge_allocation_info{{{ALLOCATED}}}
    """


_ROWS = f"""
topk(100,
  max by ({q.DEVICE}, gpu_namespace, gpu_pod, gpu, GPU_I_PROFILE, sharing) (gpugauge_allocation_info{{{ALLOCATED}}})
)
"""


def _beside(keys: str, values: str) -> str:
    return f"{_ROWS} * on ({keys}) group_left () max by ({keys}) ({values})"


DEVICES = table(
    PLACES,
    "One row per pod and GPU or MIG device that is allocated to it. Power and temperature are those of the whole GPU. "
    "On a shared device, all values belong to all of its pods together. At most 100 rows.",
    (
        Column("gpu_pod", "Pod"),
        NODE_COLUMN,
        CLUSTER_COLUMN,
        Column("gpu", "GPU", width=60),
        Column("UUID", "UUID", width=120, link=GPU_LINK),
        Column("GPU_I_PROFILE", "Profile", width=90),
        Column("GPU_I_ID", "Instance", width=80),
        Column("sharing", "Sharing", width=110),
        share("Value #B", "Busy"),
        share("Value #C", "Tensor"),
        share("Value #D", "Memory used"),
        Column("Value #E", "Power", Unit.WATT, width=80),
        Column("Value #F", "Temperature", Unit.CELSIUS, width=100),
    ),
    _ROWS,
    _beside(q.DEVICE, f"gpugauge_device_busy_ratio{{{NODES}}}"),
    _beside(q.DEVICE, f"gpugauge_device_tensor_active_ratio{{{NODES}}}"),
    _beside(q.DEVICE, q.memory_share(NODES)),
    _beside(q.GPU, f"gpugauge_gpu_power_watts{{{NODES}}}"),
    _beside(q.GPU, f"gpugauge_gpu_temperature_celsius{{{NODES}}}"),
    sort="Busy",
)

THROTTLE = graph(
    "Throttled GPUs by reason",
    "How many GPUs of the pods had their clocks lowered, by reason. power_cap alone is full load; the others slow the "
    "work down and are for whoever runs the node. Low clocks of idle GPUs do not count.",
    Unit.COUNT,
    Query(f"sum by (reason) ({of_gpus('gpugauge_clock_event', 'reason')})", "{{reason}}"),
)

ERRORS = table(
    "XIDs of these GPUs",
    "Errors that the driver reported on the GPUs of the pods, and when last; also those from before the pods started. "
    "The runbook says which are of the work and which of the GPU. Newest first, at most 100 rows; empty when there "
    "was none.",
    (
        NODE_COLUMN,
        CLUSTER_COLUMN,
        Column("gpu", "GPU", width=60),
        Column("xid", "XID", width=60),
        Column("Value", "Last", Unit.AGE, width=140),
    ),
    f"""
    topk(100,
      max by ({q.GPU}, gpu, xid) (gpugauge_xid_last_timestamp_seconds{{{NODES}}}) * 1000
      and on ({q.GPU}) gpugauge_allocation_info{{{ALLOCATED}}}
    )
    """,
    sort="Last",
)

_OF_WORKLOAD = f'{CLUSTER}, gpu_namespace=~"$namespace"'
_LISTED = f"""
max by (cluster, gpu_namespace, gpu_pod) (gpugauge_gpu_pod_info{{{_OF_WORKLOAD}, workload=~"$workload"}})
"""

PHASES = table(
    "Pods of the workload",
    "Pods of the workload that are not finished, pending ones too, since when they run, and how many GPUs and MIG "
    "devices are allocated to each. At most 100 rows.",
    (
        Column("gpu_pod", "Pod"),
        CLUSTER_COLUMN,
        Column("phase", "Phase", width=100),
        Column("Value #B", "Started", Unit.AGE, width=140),
        count("Value #C", "GPUs", 70),
    ),
    *(
        q.of_first_rows(expression, "cluster, gpu_namespace, gpu_pod", _LISTED)
        for expression in (
            f"max by (cluster, gpu_namespace, gpu_pod, phase) (gpugauge_gpu_pod_phase{{{_OF_WORKLOAD}}})",
            f"""
            max by (cluster, gpu_namespace, gpu_pod)
              (gpugauge_gpu_pod_start_timestamp_seconds{{{_OF_WORKLOAD}}}) * 1000
            """,
            f"""
            count by (cluster, gpu_namespace, gpu_pod)
              (max by ({q.DEVICE}, gpu_namespace, gpu_pod) (gpugauge_allocation_info{{{ALLOCATED}}}))
            """,
        )
    ),
)

ROWS = (
    PanelRow("Where they run", (SizedPanel(DEVICES, 24, 9),)),
    PanelRow(
        "What happened",
        (
            SizedPanel(THROTTLE, 8, 8),
            SizedPanel(ERRORS, 8, 8),
            SizedPanel(PHASES, 8, 8),
            SizedPanel(
                alert_rows.firing("Alerts of the workload", f'{q.NAMESPACE}, workload=~"$workload|"'),
                24,
                7,
            ),
        ),
    ),
)
