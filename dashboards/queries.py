"""PromQL that several panels share: label sets, selections by variable, and the joins that add names to devices."""

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
BUSY_OF_POD_DEVICE = "namespace_pod_gpu:gpu_busy:ratio"

IDLE_THRESHOLD = 'on () group_left () max(global:gpugauge_threshold:value{alert="GPUPodIdle"})'
"""The right side of a comparison with the recorded threshold below which a device is idle.

Where no threshold is recorded the comparison has no result, so that the panel shows no data.
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
    shares = f'{INFO}{{{selection}, GPU_CI_ID!=""}}'
    instances = f'{INFO}{{{selection}, GPU_I_ID!="", GPU_CI_ID=""}} unless on ({GPU}, GPU_I_ID) {shares}'
    whole = f'{INFO}{{{selection}, GPU_I_ID=""}} unless on ({GPU}) {INFO}{{{selection}, GPU_I_ID!=""}}'
    return f"({shares} or ({instances}) or ({whole}))"


def idle_allocated(selection: str) -> str:
    """1 for each allocated device that was idle over 15 minutes, 0 for any other."""
    idle = f"(avg_over_time({BUSY}{{{selection}}}[15m]) < bool {IDLE_THRESHOLD})"
    return f"{idle} * on ({DEVICE}) ({ALLOCATED_PODS}{{{selection}}} > bool 0)"


def of_pod(expression: str) -> str:
    """Add the node and the workload to series of pods."""
    return f"({expression}) * on ({POD}) group_left (node, workload, workload_type) pod:gpu_workload:info{{{CLUSTER}}}"
