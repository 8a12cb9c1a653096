"""Recording rules that join devices with pods: which pods and workloads a device is allocated to, how busy a pod is.

They read the allocations of gpugauge's node exporter, the pod labels of a stock (unmodified) dcgm-exporter, and what
the cluster watcher exposes about pods; they record the `namespace_pod_gpu:`, `namespace_pod:` and `pod:` series below.
In recorded names the level `gpu_instance:` means any device: a GPU or a MIG device.
"""

from alerts.expression import (
    DEVICE,
    POD,
    by,
    one_by,
    parenthesized,
    relabel,
    with_device_labels,
    with_pod_labels,
)
from alerts.generations import COMMON_FIELDS
from alerts.rule import Group, Recording

ALLOCATION = "namespace_pod_gpu:gpugauge_allocation:info"
"""One series per device and container that the device is allocated to, with the workload of the pod."""
POD_ALLOCATION = "namespace_pod_gpu:gpugauge_holder:info"
"""The same before the join: with the workload only where an exporter exposes it on the allocation itself."""
GPU_POD = "namespace_pod:gpugauge_gpu_pod:info"
"""One series per pod that requests GPUs, with workload and workload class, as the cluster watcher exposes it."""
ALLOCATED_PODS = "gpu_instance:holders:count"
"""How many pods a device is allocated to: 0 when it is unallocated, absent where that is not known."""
POD_DEVICE_BUSY = "namespace_pod_gpu:gpu_busy:ratio"
"""How busy each device of a pod is; absent for shared devices."""
POD_BUSY = "pod:gpu_busy:ratio"
"""How busy a pod's devices are on average."""
POD_DEVICES = "pod:gpu_devices:count"
"""How many devices are allocated to a pod, alone or shared."""
CONTAINER = "namespace, pod, container, uid"
POD_DEVICE = f"{POD}, node, UUID, GPU_I_ID, GPU_CI_ID"

_STOCK_POD_LABELS = (
    ("exported_namespace", "exported_pod", "exported_container"),
    ("pod_namespace", "pod_name", "container_name"),
)
"""The labels of dcgm-exporter that name a pod: with `honor_labels: false`, and with `--use-old-namespace`."""


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
    """The allocations of gpugauge; those of dcgm-exporter only for devices without `gpugauge_device_allocated_pods`."""
    allocations = with_pod_labels("gpugauge_allocation_info", "pod", "container", "uid")
    own = by(f"{DEVICE}, {CONTAINER}, workload, workload_type", allocations)
    attributed = by(DEVICE, "gpugauge_device_allocated_pods")
    stock = f"{_stock_allocations()}\nunless on ({DEVICE})\n{attributed}"
    return f"{own}\nor on ({DEVICE})\n{parenthesized(stock)}"


_GPU_POD = one_by(
    POD,
    by(
        f"{POD}, uid, node, workload, workload_type, workload_class, priority_class",
        with_pod_labels("gpugauge_gpu_pod_info", "pod", "uid"),
    ),
)
"""Two watchers may differ in one of the labels for a moment: one of the two series is selected."""

_WITH_WORKLOAD = f"""{POD_ALLOCATION} * on ({POD}) group_left (workload, workload_type) {GPU_POD}
or on ({POD})
{POD_ALLOCATION}{{workload!=""}}
or on ({POD})
label_replace({relabel(POD_ALLOCATION, ("workload", "pod"))}, "workload_type", "pod", "", "")"""
"""The workload as the watcher exposes it, else as the allocation has it, else the pod itself."""

_ALLOCATED_PODS = f"""{by(DEVICE, "gpugauge_device_allocated_pods")}
or
count by ({DEVICE}) (max by ({DEVICE}, namespace, pod) ({ALLOCATION}))"""

_POD_DEVICE_BUSY = f"""max by ({POD_DEVICE}) ({ALLOCATION})
* on ({DEVICE}) group_left ()
(gpu_instance:busy:ratio and on ({DEVICE}) ({ALLOCATED_PODS} == 1))"""
"""Absent for shared devices: their activity is not known per pod."""

_POD_BUSY = f"""avg by ({POD}) ({POD_DEVICE_BUSY})
and on ({POD})
(count by ({POD}) ({POD_DEVICE_BUSY}) == on ({POD}) {POD_DEVICES})"""
"""The mean over all devices of a pod; absent unless each of them has a value."""

GROUP = Group(
    "gpugauge-attribution",
    (
        Recording(POD_ALLOCATION, _pod_allocations()),
        Recording(GPU_POD, _GPU_POD),
        Recording(
            ALLOCATION,
            by(f"{POD_DEVICE}, container, uid, workload, workload_type", _WITH_WORKLOAD),
        ),
        Recording(ALLOCATED_PODS, _ALLOCATED_PODS),
        Recording(
            POD_DEVICES,
            f"count by ({POD}) (max by ({POD_DEVICE}) ({ALLOCATION}))",
        ),
        Recording("pod:gpu_workload:info", one_by(POD, by(f"{POD}, node, workload, workload_type", ALLOCATION))),
        Recording(POD_DEVICE_BUSY, _POD_DEVICE_BUSY),
        Recording(POD_BUSY, _POD_BUSY),
    ),
)
