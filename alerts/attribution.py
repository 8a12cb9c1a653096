"""Who holds which device, and what a pod does with all it holds: the join between devices and workloads."""

from alerts.expression import DEVICE, POD, by, inside, located, named, one_by, ours, relabel
from alerts.generations import SEEN
from alerts.rule import Group, Recording

ALLOCATION = "namespace_pod_gpu:gpugauge_allocation:info"
HOLDER = "namespace_pod_gpu:gpugauge_holder:info"
GPU_POD = "namespace_pod:gpugauge_gpu_pod:info"
PER_DEVICE = "namespace_pod_gpu:gpu_busy:ratio"
HELD_BY = "namespace, pod, container, uid"
POD_DEVICE = f"{POD}, node, UUID, GPU_I_ID, GPU_CI_ID"

_STOCK_SPELLINGS = (
    ("exported_namespace", "exported_pod", "exported_container"),
    ("pod_namespace", "pod_name", "container_name"),
)
"""Where namespace, pod and container stand under `honor_labels: false`, and with the old namespace option."""


def _stock(namespace: str, pod: str, container: str) -> str:
    labels = (("namespace", namespace), ("pod", pod), ("container", container))
    return relabel(f'{{__name__=~"{SEEN}", {pod}!=""}}', *labels)


def _stock_holders() -> str:
    """What the pod labels of stock pages say.

    With `honor_labels: true` a stock page's idle device carries the pod label of its own scrape target, which `up`
    tells: that is no holder.
    """
    kept = f"""(
  {{__name__=~"{SEEN}", pod!=""}}
  unless on (cluster, job, instance, namespace, pod) up
)"""
    spellings = "\nor\n".join([*(_stock(*spelling) for spelling in _STOCK_SPELLINGS), kept])
    return by(f"{DEVICE}, {HELD_BY}", relabel(located(spellings), ("uid", "pod_uid")), "group")


def _holders() -> str:
    """Our allocation series; stock pages only for devices that no exporter of ours attributes."""
    pages = ours(named("gpugauge_allocation_info", "pod", "container", "uid"))
    own = by(f"{DEVICE}, {HELD_BY}, workload, workload_type", pages)
    stock = f"{_stock_holders()}\nunless on ({DEVICE})\n{by(DEVICE, ours('gpugauge_device_holders'))}"
    return f"{own}\nor on ({DEVICE})\n{inside(stock)}"


GPU_POD_INFO = one_by(
    POD,
    by(
        f"{POD}, uid, node, workload, workload_type, class, priority_class",
        named("gpugauge_gpu_pod_info", "pod", "uid"),
    ),
)

WITH_WORKLOAD = f"""{HOLDER} * on ({POD}) group_left (workload, workload_type) {GPU_POD}
or on ({POD})
{HOLDER}{{workload!=""}}
or on ({POD})
label_replace({relabel(HOLDER, ("workload", "pod"))}, "workload_type", "pod", "", "")"""
"""The watcher knows the owner; without it the exporter may; else a pod is its own workload."""

HOLDERS = f"""{by(DEVICE, ours("gpugauge_device_holders"))}
or
count by ({DEVICE}) (max by ({DEVICE}, namespace, pod) ({ALLOCATION}))"""

BUSY_PER_DEVICE = f"""max by ({POD_DEVICE}) ({ALLOCATION})
* on ({DEVICE}) group_left ()
(gpu_instance:busy:ratio and on ({DEVICE}) (gpu_instance:holders:count == 1))"""
"""What a shared device does cannot be told apart by pod, so it says nothing about any of its holders."""

BUSY = f"""avg by ({POD}) ({PER_DEVICE})
and on ({POD})
(count by ({POD}) ({PER_DEVICE}) == on ({POD}) pod:gpu_devices:count)"""
"""The mean over all devices of a pod, and nothing unless each of them is known."""

GROUP = Group(
    "gpugauge-attribution",
    (
        Recording(HOLDER, _holders()),
        Recording(GPU_POD, GPU_POD_INFO),
        Recording(
            ALLOCATION,
            by(f"{POD_DEVICE}, container, uid, workload, workload_type", WITH_WORKLOAD),
        ),
        Recording("gpu_instance:holders:count", HOLDERS),
        Recording(
            "pod:gpu_devices:count",
            f"count by ({POD}) (max by ({POD_DEVICE}) ({ALLOCATION}))",
        ),
        Recording("pod:gpu_workload:info", one_by(POD, by(f"{POD}, node, workload, workload_type", ALLOCATION))),
        Recording(PER_DEVICE, BUSY_PER_DEVICE),
        Recording("pod:gpu_busy:ratio", BUSY),
    ),
)
