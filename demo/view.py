"""What the demo shows, read from Prometheus and Alertmanager: devices with workloads and utilization, and alerts.

Plain data and plain lines of text; `screen.py` draws the same on a terminal.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from alerts.rules.keys import DEVICE
from demo.prometheus import PrometheusApi

IDENTITY = DEVICE
"""The labels that identify a device."""


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One GPU or MIG device; `busy`, `tensor` and `memory` are ratios, None when unknown."""

    node: str
    name: str
    model: str
    workloads: str
    """The workloads that it is allocated to, or empty."""
    partitioned: bool
    """Whether it consists of smaller devices, so that it cannot itself be allocated."""
    busy: float | None
    tensor: float | None
    memory: float | None

    @property
    def workloads_or_state(self) -> str:
        """The workloads, or why there are none."""
        return self.workloads or ("partitioned" if self.partitioned else "unallocated")


@dataclass(frozen=True, slots=True)
class AlertRow:
    """One alert in Alertmanager; `subject` is the workload or node that it is about."""

    name: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class DemoView:
    """Everything that is shown at one time."""

    devices: tuple[DeviceRow, ...]
    alerts: tuple[AlertRow, ...]


DeviceKey = tuple[str, ...]
"""The values of the labels IDENTITY."""


def _key(labels: dict[str, str]) -> DeviceKey:
    return tuple(labels.get(name, "") for name in IDENTITY)


def _values(api: PrometheusApi, series: str) -> dict[DeviceKey, float]:
    return {_key(found["metric"]): float(found["value"][1]) for found in api.query(series)}


def _workloads(api: PrometheusApi) -> dict[DeviceKey, str]:
    of_pods = [found["metric"] for found in api.query("pod:gpu_workload:info")]
    workloads = {(labels["namespace"], labels["pod"]): labels["workload"] for labels in of_pods}
    names: dict[DeviceKey, set[str]] = {}
    for found in api.query("gpugauge_allocation_info"):
        labels = found["metric"]
        namespace, pod = labels["gpu_namespace"], labels["gpu_pod"]
        names.setdefault(_key(labels), set()).add(f"{namespace}/{workloads.get((namespace, pod), pod)}")
    return {key: ", ".join(sorted(workloads)) for key, workloads in names.items()}


def _device_name(labels: dict[str, str]) -> str:
    name = labels.get("gpu", "?")
    if profile := labels.get("GPU_I_PROFILE"):
        name += f" · {profile} #{labels.get('GPU_I_ID', '')}"
    if compute := labels.get("GPU_CI_ID"):
        name += f".{compute}"
    return name


def _partitioned(labels: dict[str, str], infos: Iterable[dict[str, str]]) -> bool:
    """Whether another device is part of this one: a GPU instance of a GPU, a compute instance of a GPU instance."""
    whole = {name: labels.get(name, "") for name in IDENTITY if labels.get(name)}
    return any(_key(part) != _key(labels) and whole.items() <= part.items() for part in infos)


def read_view(prometheus: PrometheusApi, alertmanager: PrometheusApi) -> DemoView:
    """Query both for the present view. Raises OSError while one of them does not answer."""
    workloads = _workloads(prometheus)
    busy = _values(prometheus, "gpugauge_device_busy_ratio")
    tensor = _values(prometheus, "gpugauge_device_tensor_active_ratio")
    memory = _values(prometheus, "gpugauge_device_memory_used_bytes / gpugauge_device_memory_total_bytes")
    infos = [found["metric"] for found in prometheus.query("gpugauge_device_info")]
    rows = [
        DeviceRow(
            node=labels.get("node", ""),
            name=_device_name(labels),
            model=labels.get("model", ""),
            workloads=workloads.get(_key(labels), ""),
            partitioned=_partitioned(labels, infos),
            busy=busy.get(_key(labels)),
            tensor=tensor.get(_key(labels)),
            memory=memory.get(_key(labels)),
        )
        for labels in infos
    ]
    rows.sort(key=lambda row: (row.node, row.name))
    return DemoView(tuple(rows), tuple(_alerts(alertmanager.alerts())))


def _alerts(alerts: Iterable[dict[str, Any]]) -> list[AlertRow]:
    rows = []
    for alert in alerts:
        labels, texts = alert["labels"], alert["annotations"]
        if labels.get("severity") == "none":  # the watchdog, which says that all is well
            continue
        name = labels.get("workload") or labels.get("node", "")
        subject = f"{labels['namespace']}/{name}" if "namespace" in labels else name
        rows.append(AlertRow(labels["alertname"], subject, texts.get("description", texts.get("summary", ""))))
    return sorted(rows, key=lambda row: (row.name, row.subject))


def percent(ratio: float | None) -> str:
    """Write a ratio as a percentage; a dash when it is unknown."""
    return "-" if ratio is None else f"{ratio:.0%}"


def lines(view: DemoView, urls: Sequence[tuple[str, str]]) -> list[str]:
    """Write the view as plain lines."""
    return [
        *(
            f"gpu {row.node} {row.name} busy={percent(row.busy)} tensor={percent(row.tensor)} "
            f"memory={percent(row.memory)} workload={row.workloads_or_state}"
            for row in view.devices
        ),
        *(f"alert {row.name} {row.subject}: {row.text}" for row in view.alerts),
        *(f"{name}: {url}" for name, url in urls),
    ]
