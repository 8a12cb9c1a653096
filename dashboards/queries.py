"""PromQL that several panels share, as text: labels that identify something, selections, joins. No I/O, no state.

`selection` is always the inner part of a selector, such as CLUSTER or NODE, which select by the dashboard's variables.
Panels of one node read what exporters expose per device; panels of a fleet read sums that rules record.
"""

from dashboards.links import CLUSTER_OF_LINKS
from dashboards.states import NOT_SUPPORTED, SHARED, SOURCE_BROKEN
from dashboards.style import TABLE_ROWS

DEVICE = "cluster, node, UUID, GPU_I_ID, GPU_CI_ID"
"""What identifies a GPU or a MIG device."""
GPU = "cluster, node, UUID"
"""What identifies a GPU, MIG-enabled or not."""
POD = "cluster, namespace, pod"
WORKLOAD = "cluster, namespace, workload, workload_type"

CLUSTER = 'cluster=~"$cluster"'
NODE = f'{CLUSTER}, node=~"$node"'
NAMESPACE = f'{CLUSTER}, namespace=~"$namespace"'
"""For recorded series and alerts. Series of exporters have the namespace in `gpu_namespace`."""
WITH_NAMESPACES = f'{{__name__=~"namespace:gpu_pods:count|workload:gpu_pending_pods:count", {CLUSTER}}}'
"""Selects series of every namespace with GPU pods, running or pending."""
FIRING = f'component="gpu", alertstate="firing", severity!="none", {CLUSTER}'
"""Without the watchdog, which always fires: its severity is `none`."""

WATCHER_UP = f'0 * max(up{{job="gpugauge-cluster", {CLUSTER}}} == 1)'
"""Zero while the watcher answers, else nothing: after `or`, so that none is 0 only while it would be known."""

RULES_LOADED = "0 * max(global:gpugauge_threshold:value)"
"""Zero while the rules are loaded, else nothing."""

INFO = "gpugauge_device_info"
ALLOCATED_PODS = "gpugauge_device_allocated_pods"

WINDOW_TEXT = "15 minutes"
"""Whether something is idle or below its threshold depends on its mean activity over this window, as in the alerts."""
IDLE_THRESHOLD_TEXT = "the idle threshold (1 % unless another is recorded)"
ALLOCATED_BUT_IDLE = (
    "GPUs and MIG devices that are allocated and were idle: "
    f"mean activity of {WINDOW_TEXT} below {IDLE_THRESHOLD_TEXT}."
)
"""The description of a panel that shows idle devices."""


SOURCE_DOWN = f'gpugauge_source_up{{{NODE}, source=~"dcgm|nvml|simulated"}} == 0'
"""A result exactly while the device library of a chosen node does not answer."""


def unsupported(*fields: str) -> str:
    """A result exactly while a chosen node has devices that do not support one of these fields."""
    return f'gpugauge_field_unsupported_devices{{{NODE}, field=~"{"|".join(fields)}"}} > 0'


def per_device(series: str, selection: str, chosen: str) -> str:
    """One series per device, with `gpu`, `model` and `GPU_I_PROFILE`, without the devices that `chosen` excludes."""
    return with_names(f"max by ({DEVICE}) ({series}{{{selection}}})", chosen)


def with_names(values: str, chosen: str) -> str:
    """Add `gpu`, `model` and `GPU_I_PROFILE` to series of devices, and drop devices that `chosen` excludes."""
    names = f"max by ({DEVICE}, gpu, model, GPU_I_PROFILE) ({INFO}{{{chosen}}})"
    return f"{values} * on ({DEVICE}) group_left (gpu, model, GPU_I_PROFILE) {names}"


def memory_share(selection: str) -> str:
    """Used framebuffer of each device as a share of what can be allocated."""
    used = f"max by ({DEVICE}) (gpugauge_device_memory_used_bytes{{{selection}}})"
    return f"{used} / max by ({DEVICE}) (gpugauge_device_memory_total_bytes{{{selection}}})"


def per_gpu(series: str, selection: str, chosen: str) -> str:
    """The same of quantities of which there is one per GPU, with `gpu` and `model`."""
    values = f"max by ({GPU}) ({series}{{{selection}}})"
    return f"{values} * on ({GPU}) group_left (gpu, model) max by ({GPU}, gpu, model) ({INFO}{{{chosen}}})"


def total(series: str) -> str:
    """A recorded sum over all chosen clusters."""
    return f"sum({series}{{{CLUSTER}}})"


def share(part: str, whole: str) -> str:
    """One recorded sum as a share of another, or a mean of sum and count, over all chosen clusters."""
    return f"{total(part)} / {total(whole)}"


def below_threshold(comparison: str) -> str:
    """The utilization of pods over the window, compared (`<` or `< bool`) with the threshold of each."""
    busy = f"avg_over_time(pod:gpu_busy:ratio{{{CLUSTER}}}[15m])"
    return f"{busy} {comparison} on ({POD}) pod:gpu_low_utilization_threshold:ratio{{{CLUSTER}}}"


def of_pod(expression: str) -> str:
    """Add the node and the workload to series of pods."""
    return f"({expression}) * on ({POD}) group_left (node, workload, workload_type) pod:gpu_workload:info{{{CLUSTER}}}"


def of_first_rows(expression: str, keys: str, ranking: str) -> str:
    """Keep the series of the rows of a table with the largest values of `ranking`, which has one series per `keys`.

    Every query of the table needs this, because a row is made of what any of them returns.
    """
    return f"({expression}) and on ({keys}) topk({TABLE_ROWS}, {ranking})"


def with_cluster_of_links(expression: str) -> str:
    """Add the label that links of rows set `cluster` to. Without a label `cluster` it is Grafana's choice All."""
    named = f'label_replace({expression}, "{CLUSTER_OF_LINKS}", "$1", "cluster", "(.+)")'
    return f'label_replace({named}, "{CLUSTER_OF_LINKS}", "$$__all", "cluster", "")'


def value_or_cause(value: str, *, broken: str = "", unsupported: str = "", shared: str = "") -> str:
    """The value, else a number of `states.CAUSES` that says why there is none, else nothing.

    `value` has no labels. Each cause is an expression with a result exactly while it holds.
    """
    causes = ((shared, SHARED), (broken, SOURCE_BROKEN), (unsupported, NOT_SUPPORTED))
    return " or ".join([value, *(f"0 * count({each}) {number:+d}" for each, number in causes if each)])


def over_range(series: str, selection: str, *keys: str) -> str:
    """The sum over the time range of a series that is recorded every 5 minutes of the 5 minutes before."""
    total = f"sum_over_time({series}{{{selection}}}[$__range])"
    return f"sum by ({', '.join(keys)}) ({total})" if keys else total


def oldest_pending(selection: str) -> str:
    """The oldest pending pod of each workload with its reason; its value is how long it has been pending.

    One per workload: where a series ended without a mark, that of the pod before is still found for 5 minutes.
    """
    return f"topk by ({WORKLOAD}) (1, workload:gpu_pending_oldest:info{{{selection}}})"


def count_or_zero(found: str, known: str) -> str:
    """How many series there are, and 0 only where there is one of `known`: else it is not known that there are none."""
    return f"count({found}) or 0 * count({known})"
