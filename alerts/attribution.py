"""The join between devices and pods: which device is allocated to which pod and workload, and how busy a pod is."""

from alerts.expression import (
    DEVICE,
    POD,
    by,
    one_by,
    parenthesized,
    relabel,
    with_device_labels,
    with_node,
    with_pod_labels,
)
from alerts.generations import COMMON_FIELDS
from alerts.rule import Group, Recording

ALLOCATION = "namespace_pod_gpu:gpugauge_allocation:info"
"""One series per device and container that the device is allocated to, with the workload of the pod."""
POD_ALLOCATION = "namespace_pod_gpu:gpugauge_holder:info"
"""The same with the workload only where the node exporter exposes it."""
GPU_POD = "namespace_pod:gpugauge_gpu_pod:info"
BUSY_OF_POD_DEVICE = "namespace_pod_gpu:gpu_busy:ratio"
CONTAINER = "namespace, pod, container, uid"
POD_DEVICE = f"{POD}, node, UUID, GPU_I_ID, GPU_CI_ID"

_STOCK_POD_LABELS = (
    ("exported_namespace", "exported_pod", "exported_container"),
    ("pod_namespace", "pod_name", "container_name"),
)
"""The labels of dcgm-exporter that name a pod, with `honor_labels: false` and with its old namespace option."""


def _stock(namespace: str, pod: str, container: str) -> str:
    labels = (("namespace", namespace), ("pod", pod), ("container", container))
    return relabel(f'{{__name__=~"{COMMON_FIELDS}", {pod}!=""}}', *labels)


def _stock_allocations() -> str:
    """The allocations that dcgm-exporter exposes as pod labels of the fields.

    With `honor_labels: true` an unallocated device has the pod label of its scrape target. That is no allocation; it is
    recognized by `up`, which has the same label.
    """
    honored = f"""(
  {{__name__=~"{COMMON_FIELDS}", pod!=""}}
  unless on (cluster, job, instance, namespace, pod) up
)"""
    fields = "\nor\n".join([*(_stock(*labels) for labels in _STOCK_POD_LABELS), honored])
    return by(f"{DEVICE}, {CONTAINER}", relabel(with_device_labels(fields), ("uid", "pod_uid")), "group")


def _pod_allocations() -> str:
    """The allocations of gpugauge; those of dcgm-exporter only for devices whose allocation no gpugauge exposes."""
    allocations = with_node(with_pod_labels("gpugauge_allocation_info", "pod", "container", "uid"))
    own = by(f"{DEVICE}, {CONTAINER}, workload, workload_type", allocations)
    attributed = by(DEVICE, with_node("gpugauge_device_allocated_pods"))
    stock = f"{_stock_allocations()}\nunless on ({DEVICE})\n{attributed}"
    return f"{own}\nor on ({DEVICE})\n{parenthesized(stock)}"


GPU_POD_INFO = one_by(
    POD,
    by(
        f"{POD}, uid, node, workload, workload_type, workload_class, priority_class",
        with_pod_labels("gpugauge_gpu_pod_info", "pod", "uid"),
    ),
)

WITH_WORKLOAD = f"""{POD_ALLOCATION} * on ({POD}) group_left (workload, workload_type) {GPU_POD}
or on ({POD})
{POD_ALLOCATION}{{workload!=""}}
or on ({POD})
label_replace({relabel(POD_ALLOCATION, ("workload", "pod"))}, "workload_type", "pod", "", "")"""
"""The workload as the watcher exposes it, else as the node exporter does, else the pod itself."""

ALLOCATED_PODS = f"""{by(DEVICE, with_node("gpugauge_device_allocated_pods"))}
or
count by ({DEVICE}) (max by ({DEVICE}, namespace, pod) ({ALLOCATION}))"""

BUSY_PER_DEVICE = f"""max by ({POD_DEVICE}) ({ALLOCATION})
* on ({DEVICE}) group_left ()
(gpu_instance:busy:ratio and on ({DEVICE}) (gpu_instance:holders:count == 1))"""
"""Absent for shared devices: their activity is not known per pod."""

BUSY = f"""avg by ({POD}) ({BUSY_OF_POD_DEVICE})
and on ({POD})
(count by ({POD}) ({BUSY_OF_POD_DEVICE}) == on ({POD}) pod:gpu_devices:count)"""
"""The mean over all devices of a pod; absent unless each of them has a value."""

GROUP = Group(
    "gpugauge-attribution",
    (
        Recording(POD_ALLOCATION, _pod_allocations()),
        Recording(GPU_POD, GPU_POD_INFO),
        Recording(
            ALLOCATION,
            by(f"{POD_DEVICE}, container, uid, workload, workload_type", WITH_WORKLOAD),
        ),
        Recording("gpu_instance:holders:count", ALLOCATED_PODS),
        Recording(
            "pod:gpu_devices:count",
            f"count by ({POD}) (max by ({POD_DEVICE}) ({ALLOCATION}))",
        ),
        Recording("pod:gpu_workload:info", one_by(POD, by(f"{POD}, node, workload, workload_type", ALLOCATION))),
        Recording(BUSY_OF_POD_DEVICE, BUSY_PER_DEVICE),
        Recording("pod:gpu_busy:ratio", BUSY),
    ),
)
