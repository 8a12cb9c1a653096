"""PromQL that several panels share, as text: labels that identify something, selections, joins. No I/O, no state.

`selection` is always the inner part of a selector, such as CLUSTER or NODE, which select by the dashboard's variables.
"""

from collections.abc import Callable

DEVICE = "cluster, node, UUID, GPU_I_ID, GPU_CI_ID"
"""What identifies a GPU or a MIG device in every recorded series."""
GPU = "cluster, node, UUID"
"""What identifies a GPU, MIG-enabled or not."""
POD = "cluster, namespace, pod"
WORKLOAD = "cluster, namespace, workload, workload_type"

CLUSTER = 'cluster=~"$cluster"'
NODE = f'{CLUSTER}, node=~"$node"'
FIRING = f'component="gpu", alertstate="firing", {CLUSTER}'

INFO = "gpu_instance:gpugauge_device:info"
ALLOCATED_PODS = "gpu_instance:holders:count"
BUSY = "gpu_instance:busy:ratio"
TENSOR = "gpu_instance:tensor_active:ratio"
USED = "gpu_instance:memory_used:bytes"
TOTAL = "gpu_instance:memory_total:bytes"
POWER = "gpu:power:watts"
TEMPERATURE = "gpu:temperature:celsius"
ALLOCATION = "namespace_pod_gpu:gpugauge_allocation:info"
POD_DEVICE_BUSY = "namespace_pod_gpu:gpu_busy:ratio"

WINDOW = "15m"
"""Whether something is idle or below its threshold depends on its mean activity over this window, as in the alerts."""
WINDOW_TEXT = "15 minutes"
IDLE_THRESHOLD_TEXT = "the idle threshold (1 % unless another is recorded)"
ALLOCATED_BUT_IDLE = (
    "GPUs and MIG devices that are allocated and were idle: "
    f"mean activity of {WINDOW_TEXT} below {IDLE_THRESHOLD_TEXT}."
)
"""The description of a panel that shows `idle_allocated`."""

IDLE_THRESHOLD = 'on () group_left () (max(global:gpugauge_threshold:value{alert="GPUPodIdle"}) or vector(0.01))'
"""The right side of a comparison with the threshold below which a device is idle.

It is the recorded one, or the same default as in the alerts where none is recorded.
"""


def per_device(expression: str, selection: str) -> str:
    """Add `gpu`, `model` and `GPU_I_PROFILE` to the series, and drop devices that `selection` excludes."""
    names = f"max by ({DEVICE}, gpu, model, GPU_I_PROFILE) ({INFO}{{{selection}}})"
    return f"{expression} * on ({DEVICE}) group_left (gpu, model, GPU_I_PROFILE) {names}"


def per_gpu(expression: str, selection: str, labels: str = "gpu, model") -> str:
    """Add `labels` to series of which there is one per GPU, and drop GPUs that `selection` excludes."""
    return f"{expression} * on ({GPU}) group_left ({labels}) max by ({GPU}, {labels}) ({INFO}{{{selection}}})"


def gpus(selection: str) -> str:
    """One series per GPU."""
    return f"count by ({GPU}) ({INFO}{{{selection}}})"


def allocated_gpus(selection: str) -> str:
    """1 for each GPU that is allocated as a whole or in part, 0 for an unallocated one, absent where it is unknown."""
    return f"(max by ({GPU}) ({ALLOCATED_PODS}{{{selection}}}) > bool 0)"


def while_allocated(series: str, selection: str) -> str:
    """The series of allocated devices."""
    return f"({series}{{{selection}}} and on ({DEVICE}) ({ALLOCATED_PODS}{{{selection}}} > 0))"


def allocatable_devices(selection: str) -> str:
    """The devices that can be allocated: the smallest of each GPU.

    Compute instances where they share a GPU instance; other GPU instances; GPUs without instances.
    """
    compute_instances = f'{INFO}{{{selection}, GPU_CI_ID!=""}}'
    instances = f'{INFO}{{{selection}, GPU_I_ID!="", GPU_CI_ID=""}} unless on ({GPU}, GPU_I_ID) {compute_instances}'
    whole = f'{INFO}{{{selection}, GPU_I_ID=""}} unless on ({GPU}) {INFO}{{{selection}, GPU_I_ID!=""}}'
    return f"({compute_instances} or ({instances}) or ({whole}))"


def idle_allocated(selection: str) -> str:
    """1 for each allocated device that was idle over the window, 0 for any other."""
    idle = f"(avg_over_time({BUSY}{{{selection}}}[{WINDOW}]) < bool {IDLE_THRESHOLD})"
    return f"{idle} * on ({DEVICE}) ({ALLOCATED_PODS}{{{selection}}} > bool 0)"


def memory_share(reduce: Callable[[str], str], selection: str) -> str:
    """Used framebuffer as a share of what can be allocated, over the devices of which both are known.

    `reduce` adds up the series of an expression.
    """
    used, total = f"{USED}{{{selection}}}", f"{TOTAL}{{{selection}}}"
    return f"{reduce(f'({used} and on ({DEVICE}) {total})')} / {reduce(f'({total} and on ({DEVICE}) {used})')}"


def below_threshold(comparison: str) -> str:
    """The utilization of pods over the window, compared (`<` or `< bool`) with the threshold of each."""
    busy = f"avg_over_time(pod:gpu_busy:ratio{{{CLUSTER}}}[{WINDOW}])"
    return f"{busy} {comparison} on ({POD}) pod:gpu_low_utilization_threshold:ratio{{{CLUSTER}}}"


def of_pod(expression: str) -> str:
    """Add the node and the workload to series of pods."""
    return f"({expression}) * on ({POD}) group_left (node, workload, workload_type) pod:gpu_workload:info{{{CLUSTER}}}"
