"""PromQL that several panels share: keys, the selection of the variables, and the joins that give names to devices."""

DEVICE = "cluster, node, UUID, GPU_I_ID, GPU_CI_ID"
"""What identifies a GPU or an instance on every recorded series."""
CARD = "cluster, node, UUID"
"""What identifies a card, however it is partitioned."""
POD = "cluster, namespace, pod"
WORKLOAD = "cluster, namespace, workload, workload_type"

CLUSTER = 'cluster=~"$cluster"'
NODE = f'{CLUSTER}, node=~"$node"'
FIRING = f'component="gpu", alertstate="firing", {CLUSTER}'

INFO = "gpu_instance:gpugauge_device:info"
HOLDERS = "gpu_instance:holders:count"
BUSY = "gpu_instance:busy:ratio"
TENSOR = "gpu_instance:tensor_active:ratio"
USED = "gpu_instance:memory_used:bytes"
TOTAL = "gpu_instance:memory_total:bytes"
POWER = "gpu:power:watts"
TEMPERATURE = "gpu:temperature:celsius"
ALLOCATION = "namespace_pod_gpu:gpugauge_allocation:info"
HELD_BUSY = "namespace_pod_gpu:gpu_busy:ratio"

IDLE = "0.01"
"""Mean activity under which a GPU is idle; zero would miss the noise floor of some systems."""


def per_device(expression: str, selection: str) -> str:
    """The expression's series with `gpu`, `model` and `GPU_I_PROFILE`; what `selection` leaves out is left out."""
    names = f"max by ({DEVICE}, gpu, model, GPU_I_PROFILE) ({INFO}{{{selection}}})"
    return f"{expression} * on ({DEVICE}) group_left (gpu, model, GPU_I_PROFILE) {names}"


def per_card(expression: str, selection: str, labels: str = "gpu, model") -> str:
    """The same for what a card has once."""
    return f"{expression} * on ({CARD}) group_left ({labels}) max by ({CARD}, {labels}) ({INFO}{{{selection}}})"


def cards(selection: str) -> str:
    """One series per card."""
    return f"count by ({CARD}) ({INFO}{{{selection}}})"


def held_cards(selection: str) -> str:
    """1 for each card of which anything is held, 0 for a free one, nothing where holders are unknown."""
    return f"(max by ({CARD}) ({HOLDERS}{{{selection}}}) > bool 0)"


def while_held(series: str, selection: str) -> str:
    """The series of the devices that somebody holds."""
    return f"({series}{{{selection}}} and on ({DEVICE}) ({HOLDERS}{{{selection}}} > 0))"


def leaves(selection: str) -> str:
    """What can be held: compute instances that share an instance, MIG instances without such, cards without any."""
    shares = f'{INFO}{{{selection}, GPU_CI_ID!=""}}'
    instances = f'{INFO}{{{selection}, GPU_I_ID!="", GPU_CI_ID=""}} unless on ({CARD}, GPU_I_ID) {shares}'
    whole = f'{INFO}{{{selection}, GPU_I_ID=""}} unless on ({CARD}) {INFO}{{{selection}, GPU_I_ID!=""}}'
    return f"({shares} or ({instances}) or ({whole}))"


def idle_held(selection: str) -> str:
    """1 for each held device whose mean activity of 15 minutes is nothing, 0 for any other."""
    idle = f"(avg_over_time({BUSY}{{{selection}}}[15m]) < bool {IDLE})"
    return f"{idle} * on ({DEVICE}) ({HOLDERS}{{{selection}}} > bool 0)"


def of_pod(expression: str) -> str:
    """The series of pods with the node they run on and the workload they belong to."""
    return f"({expression}) * on ({POD}) group_left (node, workload, workload_type) pod:gpu_workload:info{{{CLUSTER}}}"
