"""What the last hour shows of a running pod: its devices, its CPU, its restarts."""

from dataclasses import dataclass
from typing import NamedTuple

from exporter.commands.explain.past import queries
from exporter.commands.prometheus.answer import PrometheusSample
from exporter.commands.prometheus.client import PrometheusClient
from exporter.commands.prometheus.expression import cluster_pattern, clusters_of, exactly, filled
from exporter.config import ConfigError


class _AllocatedDevice(NamedTuple):
    uuid: str
    gi: str
    ci: str

    @classmethod
    def of(cls, sample: PrometheusSample) -> "_AllocatedDevice":
        return cls(sample["UUID"], sample["GPU_I_ID"], sample["GPU_CI_ID"])


@dataclass(frozen=True, slots=True)
class DeviceActivity:
    """One device of the pod; None for what is not known."""

    node: str
    device: str
    """The UUID, with the ids of a MIG device."""
    sharing: str
    pods: int | None = None
    """How many pods the device is allocated to."""
    busy: float | None = None
    """Mean share of the hour."""
    busiest: float | None = None
    """The largest value of one collection."""
    tensor: float | None = None
    pcie: float | None = None
    """Bytes per second, both ways, of the whole GPU."""
    throttled: tuple[tuple[str, float], ...] = ()
    """Reasons with the share of the hour in which they kept the clocks of the GPU down."""


@dataclass(frozen=True, slots=True)
class PodActivity:
    """The pod; None for what is not known."""

    devices: tuple[DeviceActivity, ...]
    cpu_throttled: float | None = None
    """Share of the periods in which a container wanted more CPU than its limit."""
    io_waiting: float | None = None
    """Share of the hour in which some of its processes waited for input or output."""
    restarts: float | None = None
    not_seen: tuple[str, ...] = ()
    """What is missing, with who would have it."""


def pod_activity(client: PrometheusClient, at: float, cluster: str, name: tuple[str, str]) -> PodActivity:
    """Ask for the last hour of a pod, by (namespace, name). Raises ConfigError, also where several clusters have it."""
    asked = _PodQueries(client, at, {"cluster": cluster_pattern(cluster), "namespace": name[0], "pod": name[1]})
    allocations = asked.samples(queries.ALLOCATIONS)
    clusters = clusters_of(each.labels for each in allocations)
    if len(clusters) > 1:
        raise ConfigError(f"{'/'.join(name)} is in the clusters {', '.join(clusters)}: name one with --cluster")
    devices = _devices(asked, allocations) if allocations else ()
    cpu = asked.value(queries.CPU_THROTTLED)
    if cpu is None and asked.value(queries.CPU_SEEN) is not None:
        cpu = 0.0  # without a limit there are no periods
    io, restarts = asked.value(queries.IO_WAITING), asked.value(queries.RESTARTS)
    return PodActivity(devices, cpu, io, restarts, _not_seen(devices, cpu, io, restarts))


class _PodQueries:
    """Queries about one pod."""

    def __init__(self, client: PrometheusClient, at: float, values: dict[str, str]) -> None:
        self._client, self._at, self._values = client, at, values

    def samples(self, expression: str, **more: str) -> list[PrometheusSample]:
        return self._client.query(filled(expression, **self._values, **more), self._at).samples

    def value(self, expression: str) -> float | None:
        found = self.samples(expression)
        return found[0].value if found else None

    def by_device(self, expression: str, **more: str) -> dict[_AllocatedDevice, float]:
        return {_AllocatedDevice.of(each): each.value for each in self.samples(expression, **more)}


def _devices(asked: _PodQueries, allocations: list[PrometheusSample]) -> tuple[DeviceActivity, ...]:
    uuids = exactly(*sorted({each["UUID"] for each in allocations}))
    pods = asked.by_device(queries.ALLOCATED_PODS, uuids=uuids)
    busy, busiest = asked.by_device(queries.BUSY_MEAN), asked.by_device(queries.BUSY_MAX)
    tensor = asked.by_device(queries.TENSOR, uuids=uuids)
    pcie = {each["UUID"]: each.value for each in asked.samples(queries.PCIE, uuids=uuids)}
    events = asked.samples(queries.CLOCK_EVENTS, uuids=uuids)
    found = []
    for each in sorted(allocations, key=lambda sample: (sample["node"], _AllocatedDevice.of(sample))):
        key = _AllocatedDevice.of(each)
        found.append(
            DeviceActivity(
                each["node"],
                _text(key),
                each["sharing"],
                int(pods[key]) if key in pods else None,
                busy.get(key),
                busiest.get(key),
                tensor.get(key),
                pcie.get(key.uuid),
                tuple((event["reason"], event.value) for event in events if event["UUID"] == key.uuid and event.value),
            )
        )
    return tuple(found)


def _text(device: _AllocatedDevice) -> str:
    ids = (f"{name} {number}" for name, number in (("GI", device.gi), ("CI", device.ci)) if number)
    return " ".join((device.uuid, *ids))


def _not_seen(
    devices: tuple[DeviceActivity, ...], cpu: float | None, io: float | None, restarts: float | None
) -> tuple[str, ...]:
    alone = [each for each in devices if each.sharing == "exclusive"]
    missing = {
        "which devices it has (gpugauge_allocation_info)": not devices,
        "how busy its devices are (gpugauge_allocation_busy_ratio)": any(each.busy is None for each in alone),
        "tensor activity (a profiling field)": any(each.tensor is None for each in alone),
        "PCIe traffic (profiling fields)": any(each.pcie is None for each in devices),
        "CPU throttling (container_cpu_cfs_periods_total of the kubelet's cAdvisor)": cpu is None,
        "waiting for input and output (container_pressure_io_waiting_seconds_total of cAdvisor)": io is None,
        "restarts (kube_pod_container_status_restarts_total of kube-state-metrics)": restarts is None,
    }
    return tuple(text for text, absent in missing.items() if absent)
