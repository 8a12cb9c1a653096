"""PromQL that several groups share: the keys of a device and of a pod, and how a page's labels become them."""

DEVICE = "cluster, node, UUID, GPU_I_ID, GPU_CI_ID"
"""What identifies a GPU or an instance on every recorded series."""

BOARD = "cluster, node, UUID"
"""What identifies a card: for quantities that a card has once, however it is partitioned."""

POD = "cluster, namespace, pod"
WORKLOAD = "cluster, namespace, workload, workload_type"


def relabel(expression: str, *steps: tuple[str, str], pattern: str = "(.+)") -> str:
    """The series with each step's first label taken from its second one, where that matches the pattern.

    A later step wins over an earlier one.
    """
    opening = "label_replace(" * len(steps)
    closing = ",\n".join(f'  "{label}", "$1", "{source}", "{pattern}")' for label, source in steps)
    return f"{opening}\n  {indent(expression)},\n{closing}"


def located(expression: str) -> str:
    """The series with `node` and `UUID`, whichever way the page spells them.

    dcgm-exporter says `Hostname` up to 4.8.2 and `hostname` since, and `uuid` with its old namespace option. A page
    without a host label keeps the target's own `node`.
    """
    return relabel(expression, ("node", "Hostname"), ("node", "hostname"), ("UUID", "uuid"))


def ours(expression: str) -> str:
    """The series of a page of our own, which always says `hostname`, with `node`."""
    return relabel(expression, ("node", "hostname"))


def named(expression: str, *labels: str) -> str:
    """The series of one of our pages with `namespace` and more labels of the pod it speaks of.

    They come from the `gpu_…` labels, which no target label replaces whatever `honor_labels` says. `uid` is the
    plain name of `gpu_pod_uid`.
    """
    steps = [(label, "gpu_pod_uid" if label == "uid" else f"gpu_{label}") for label in ("namespace", *labels)]
    return relabel(expression, *steps, pattern="(.*)")


def by(keys: str, expression: str, reduce: str = "max") -> str:
    """One value per combination of the keys: two exporters on one node, or two watchers, count once."""
    return f"{reduce} by ({keys}) (\n  {indent(expression)}\n)"


def one_by(keys: str, expression: str) -> str:
    """One series per combination of the keys, with all its labels: the right side of a join."""
    return f"topk by ({keys}) (1,\n  {indent(expression)}\n)"


def inside(expression: str) -> str:
    """The expression in parentheses of its own lines."""
    return f"(\n  {indent(expression)}\n)"


def indent(expression: str) -> str:
    """The expression two columns further in, its first line excepted."""
    return expression.replace("\n", "\n  ")


def threshold(alert: str, default: float) -> str:
    """The recorded constant, or the default when it is not loaded; seen twice it counts once."""
    return f'(max(global:gpugauge_threshold:value{{alert="{alert}"}}) or vector({default:g}))'
