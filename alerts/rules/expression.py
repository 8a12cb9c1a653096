"""PromQL that several groups share: functions from expression to expression, as text. No I/O, no state.

DEVICE, GPU, POD and WORKLOAD are the labels that identify each of them in every recorded series; the functions set
these labels on exposed series, aggregate by them, and write joins.
"""

DEVICE = "cluster, node, UUID, GPU_I_ID, GPU_CI_ID"
"""What identifies a GPU or a MIG device in every recorded series."""

GPU = "cluster, node, UUID"
"""What identifies a GPU: for quantities that exist once per GPU, MIG-enabled or not."""

POD = "cluster, namespace, pod"
WORKLOAD = "cluster, namespace, workload, workload_type"


def relabel(expression: str, *steps: tuple[str, str], pattern: str = "(.+)") -> str:
    """Set labels of the series: the first label of each step gets the value of the second where the pattern matches it.

    A later step overwrites an earlier one.
    """
    opening = "label_replace(" * len(steps)
    closing = ",\n".join(f'  "{label}", "$1", "{source}", "{pattern}")' for label, source in steps)
    return f"{opening}\n  {indent(expression)},\n{closing}"


def with_device_labels(expression: str) -> str:
    """Set `node` and `UUID` on the series of any exporter and generation.

    dcgm-exporter calls the host `Hostname` up to 4.8.2 and `hostname` since, and the UUID `uuid` with its old namespace
    option. Series without a host label keep the `node` of their scrape target.
    """
    return relabel(expression, ("node", "Hostname"), ("node", "hostname"), ("UUID", "uuid"))


def with_pod_labels(expression: str, *labels: str) -> str:
    """Set `namespace`, and these labels of a pod, on series that gpugauge exposes about pods or namespaces.

    They are copied from the `gpu_…` labels, which no label of the scrape target replaces, whatever `honor_labels` is.
    `uid` is copied from `gpu_pod_uid`.
    """
    steps = [(label, "gpu_pod_uid" if label == "uid" else f"gpu_{label}") for label in ("namespace", *labels)]
    return relabel(expression, *steps, pattern="(.*)")


def by(keys: str, expression: str, reduce: str = "max") -> str:
    """Reduce to one value per combination of the keys: two exporters of one node, or two watchers, count once."""
    return f"{reduce} by ({keys}) (\n  {indent(expression)}\n)"


def one_by(keys: str, expression: str) -> str:
    """Select one series per combination of the keys, with all its labels, as the right side of a join requires."""
    return f"topk by ({keys}) (1,\n  {indent(expression)}\n)"


def parenthesized(expression: str) -> str:
    """Put the expression into parentheses that stand on lines of their own."""
    return f"(\n  {indent(expression)}\n)"


def indent(expression: str) -> str:
    """Indent every line but the first by two columns."""
    return expression.replace("\n", "\n  ")


def threshold(alert: str, default: float) -> str:
    """The recorded threshold of an alert, or the default where none is recorded. Recorded twice, the larger one."""
    return f'(max(global:gpugauge_threshold:value{{alert="{alert}"}}) or vector({default:g}))'
