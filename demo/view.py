"""What the demo shows: GPUs with owners and utilisation, who waits, what fires, and where to look. Text only."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from demo.prometheus import Api

DEVICE = ("node", "UUID", "GPU_I_ID", "GPU_CI_ID")


@dataclass(frozen=True, slots=True)
class GpuRow:
    """One GPU or MIG instance as people see it; `busy`, `tensor` and `memory` are ratios, None when unknown."""

    node: str
    gpu: str
    model: str
    owners: str
    divided: bool
    """Whether it consists of instances and cannot itself be given to a pod."""
    busy: float | None
    tensor: float | None
    memory: float | None


@dataclass(frozen=True, slots=True)
class AlertRow:
    """One alert that stands in Alertmanager."""

    name: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """What there is to see now."""

    gpus: tuple[GpuRow, ...]
    alerts: tuple[AlertRow, ...]


Key = tuple[str, ...]


def _key(labels: dict[str, str]) -> Key:
    return tuple(labels.get(name, "") for name in DEVICE)


def _values(api: Api, series: str) -> dict[Key, float]:
    return {_key(found["metric"]): float(found["value"][1]) for found in api.query(series)}


def _owners(api: Api) -> dict[Key, str]:
    names: dict[Key, set[str]] = {}
    for found in api.query("namespace_pod_gpu:gpugauge_allocation:info"):
        labels = found["metric"]
        owner = f"{labels['namespace']}/{labels.get('workload') or labels['pod']}"
        names.setdefault(_key(labels), set()).add(owner)
    return {key: ", ".join(sorted(owners)) for key, owners in names.items()}


def _gpu_name(labels: dict[str, str]) -> str:
    name = labels.get("gpu", "?")
    if profile := labels.get("GPU_I_PROFILE"):
        name += f" · {profile} #{labels.get('GPU_I_ID', '')}"
    if compute := labels.get("GPU_CI_ID"):
        name += f".{compute}"
    return name


def _divided(labels: dict[str, str], infos: Iterable[dict[str, str]]) -> bool:
    """Whether another device lies inside this one: instances in a board, compute instances in an instance."""
    outer = {name: labels.get(name, "") for name in DEVICE if labels.get(name)}
    return any(_key(inner) != _key(labels) and outer.items() <= inner.items() for inner in infos)


def look(prometheus: Api, alertmanager: Api) -> Picture:
    """Ask both; raises OSError while one of them does not answer."""
    owners = _owners(prometheus)
    busy = _values(prometheus, "gpu_instance:busy:ratio")
    tensor = _values(prometheus, "gpu_instance:tensor_active:ratio")
    memory = _values(prometheus, "gpu_instance:memory_used:ratio")
    infos = [found["metric"] for found in prometheus.query("gpu_instance:gpugauge_device:info")]
    rows = [
        GpuRow(
            node=labels.get("node", ""),
            gpu=_gpu_name(labels),
            model=labels.get("model", ""),
            owners=owners.get(_key(labels), ""),
            divided=_divided(labels, infos),
            busy=busy.get(_key(labels)),
            tensor=tensor.get(_key(labels)),
            memory=memory.get(_key(labels)),
        )
        for labels in infos
    ]
    return Picture(tuple(sorted(rows, key=lambda row: (row.node, row.gpu))), tuple(_alerts(alertmanager.alerts())))


def _alerts(alerts: Iterable[dict[str, Any]]) -> list[AlertRow]:
    rows = []
    for alert in alerts:
        labels, texts = alert["labels"], alert["annotations"]
        subject = labels.get("workload") or labels.get("node", "")
        where = f"{labels['namespace']}/{subject}" if "namespace" in labels else subject
        rows.append(AlertRow(labels["alertname"], where, texts.get("description", texts.get("summary", ""))))
    return sorted(rows, key=lambda row: (row.name, row.subject))


def percent(ratio: float | None) -> str:
    """A ratio for people; a dash where nothing is known."""
    return "-" if ratio is None else f"{ratio:.0%}"


def lines(picture: Picture, urls: Sequence[tuple[str, str]]) -> list[str]:
    """The picture without a terminal's help."""
    return [
        *(
            f"gpu {row.node} {row.gpu} busy={percent(row.busy)} tensor={percent(row.tensor)} "
            f"memory={percent(row.memory)} owner={row.owners or ('divided' if row.divided else 'free')}"
            for row in picture.gpus
        ),
        *(f"alert {row.name} {row.subject}: {row.text}" for row in picture.alerts),
        *(f"{name}: {url}" for name, url in urls),
    ]
