"""The row `Pending and idle` of the Grafana dashboard `gpu-capacity`: who is pending, and which allocated GPUs idle.

Both by resource and model, side by side, because an idle GPU helps a pending pod only if it is what the pod asks for.
"""

from typing import Any

from dashboards import queries as q
from dashboards.columns import (
    CLUSTER_COLUMN,
    MODEL_COLUMN,
    NAMESPACE_COLUMN,
    RESOURCE_COLUMN,
    TYPE_COLUMN,
    WORKLOAD_COLUMN,
    count,
)
from dashboards.layout import PanelRow, SizedPanel
from dashboards.panels import table
from dashboards.queries import CLUSTER
from dashboards.style import Column, Unit

CHOSEN = f'{CLUSTER}, model=~"$model", resource=~"$resource"'
ASKED_FOR = f'{CLUSTER}, model=~"$model|any", resource=~"$resource"'
"""Pending pods that ask for no certain model fit every chosen one."""
TITLE = "Pending and idle by resource and model"


def summary(title: str, chosen: str, asked_for: str) -> Any:
    """Pending beside idle and free GPUs, by resource and model; the two selections are inner parts of selectors."""
    return table(
        title,
        "For each resource and model: GPUs and MIG devices that pending pods ask for, those that are allocated and "
        "were idle over 15 minutes, and those that are free. The model any has pods that ask for no certain model. "
        "Pending beside idle: talk to the owners of the idle ones, who are listed on the dashboard of capacity. "
        "Pending beside free: the free ones do not fit, as the reason says.",
        (
            CLUSTER_COLUMN,
            RESOURCE_COLUMN,
            MODEL_COLUMN,
            count("Value #A", "Pending"),
            count("Value #B", "Allocated but idle", 140),
            count("Value #C", "Free"),
            count("Value #D", "Largest free block", 140),
            count("Value #E", "Requested", 100),
            count("Value #F", "Allocatable", 100),
        ),
        f"model:gpu_pending_devices:sum{{{asked_for}}}",
        f"""
        model:gpu_idle_devices:count15m{{{chosen}}}
        or (0 * model:gpu_requested:sum{{{chosen}}} and on (cluster, model) model:gpu_allocated_busy:count{{{CLUSTER}}})
        """,
        f"model:gpu_free:sum{{{chosen}}}",
        f"max by (cluster, resource, model) (gpugauge_largest_free_block_devices{{{chosen}}})",
        f"model:gpu_requested:sum{{{chosen}}}",
        f"model:gpu_allocatable:sum{{{chosen}}}",
        sort="Pending",
    )


SUMMARY = summary(TITLE, CHOSEN, ASKED_FOR)

_PENDING = f"""
topk(100,
  max by (cluster, namespace, workload, workload_type, resource, model) (
    label_replace(
      time() - gpugauge_pending_workload_since_timestamp_seconds{{{ASKED_FOR}}},
      "namespace", "$1", "gpu_namespace", "(.*)"
    )
  )
)
"""

PENDING = table(
    "Pending workloads by resource and model",
    "Workloads with GPU pods that could be scheduled and do not run, the longest pending first, and the reason of "
    "their oldest pod; the model is the one that its selectors demand, else any. A controller that replaces its pods "
    "counts from when the workload last ran. At most 100 rows.",
    (
        NAMESPACE_COLUMN,
        WORKLOAD_COLUMN,
        CLUSTER_COLUMN,
        RESOURCE_COLUMN,
        MODEL_COLUMN,
        Column("reason", "Reason", width=130),
        Column("Value #A", "Pending for", Unit.DURATION, width=100),
        count("Value #B", "Pods", 60),
    ),
    f"""
    {_PENDING} * on ({q.WORKLOAD}) group_left (reason) ({q.oldest_pending(CLUSTER)} ^ 0)
    or on ({q.WORKLOAD}) {_PENDING}
    """,
    f"({_PENDING} * 0) + on ({q.WORKLOAD}) group_left () workload:gpu_pending_pods:count{{{CLUSTER}}}",
    sort="Pending for",
)

_IDLE = f"topk(100, workload:gpu_idle_devices:count15m{{{CHOSEN}}})"

IDLE = table(
    "Idle workloads by resource and model",
    "Workloads with allocated GPUs or MIG devices that were idle over 15 minutes, most first, beside all devices of "
    "the workload. Shared devices are left out: their activity is not known per pod. Workloads that are still "
    "starting are in the list too. At most 100 rows.",
    (
        NAMESPACE_COLUMN,
        WORKLOAD_COLUMN,
        TYPE_COLUMN,
        CLUSTER_COLUMN,
        RESOURCE_COLUMN,
        MODEL_COLUMN,
        count("Value #A", "Idle", 60),
        count("Value #B", "Allocated"),
    ),
    _IDLE,
    f"({_IDLE} * 0) + on ({q.WORKLOAD}) group_left () workload:gpu_devices:sum{{{CLUSTER}}}",
    sort="Idle",
)

ROW = PanelRow("Pending and idle", (SizedPanel(SUMMARY, 24, 7), SizedPanel(PENDING, 13, 10), SizedPanel(IDLE, 11, 10)))
