"""An allocation that has not ended: what it is, and what has added up for it so far. No I/O."""

from dataclasses import dataclass, field
from typing import Any

from exporter.node.audit.lines import AllocationUsage, MeasuredValue, device_keys, moment
from exporter.node.audit.observation import AllocationKey, SeenAllocation
from exporter.node.pods.pod import NodePod


@dataclass(slots=True)
class RunningMeasure:
    """Mean and maximum of a quantity over the time in which it was measured."""

    weighted: float = 0.0
    """The sum of values times their seconds."""
    seconds: float = 0.0
    max: float = 0.0

    @classmethod
    def resumed(cls, measured: MeasuredValue | None) -> "RunningMeasure":
        """Go on from what was written."""
        if measured is None:
            return cls()
        return cls(measured.mean * measured.observed_seconds, measured.observed_seconds, measured.max)

    def add(self, value: float, seconds: float) -> None:
        """Count a value that is the mean of so many seconds."""
        self.weighted += value * seconds
        self.max = max(self.max, value) if self.seconds else value
        self.seconds += seconds

    def measured(self, digits: int | None) -> MeasuredValue | None:
        """What there is so far, rounded; None before the first value."""
        if not self.seconds:
            return None
        mean, most = round(self.weighted / self.seconds, digits), round(self.max, digits)
        return MeasuredValue(mean, most, round(self.seconds, 3))


@dataclass(frozen=True, slots=True)
class PodDetails:
    """What the kubelet does not list of a pod."""

    uid: str = ""
    workload: str = ""
    workload_type: str = ""
    requested_by: dict[str, str] = field(default_factory=dict)


MAX_ANNOTATION = 256
"""How many characters of an annotation are written: its author may write 256 KiB."""


def pod_details(seen: SeenAllocation, pod: NodePod | None, annotations: tuple[str, ...]) -> PodDetails:
    """Take what is known of the pod beside its names; `annotations` are the ones that may be written."""
    if pod is None:
        return PodDetails(seen.uid)
    own = {key: pod.annotations[key][:MAX_ANNOTATION] for key in annotations if pod.annotations.get(key)}
    return PodDetails(pod.uid or seen.uid, pod.workload, pod.workload_type, own)


@dataclass(slots=True)
class OpenAllocation:
    """An allocation that has not ended. Times are Unix seconds."""

    id: int
    key: AllocationKey
    model: str
    sharing: str
    replicas: int
    details: PodDetails
    from_metadata: bool
    started: float
    not_before: float | None
    last_seen: float
    share: float = 1.0
    observed: float = 0.0
    gpu_seconds: float = 0.0
    utilization: RunningMeasure = field(default_factory=RunningMeasure)
    memory: RunningMeasure = field(default_factory=RunningMeasure)
    checkpoint_at: float = 0.0
    """When its sums were written last."""

    def is_of(self, seen: SeenAllocation, details: PodDetails) -> bool:
        """Whether what is seen is this allocation: a pod of the same name with another uid is another pod."""
        mine, theirs = self.details.uid, details.uid
        return self.key == seen.key and (not mine or not theirs or mine == theirs)

    def refresh(self, seen: SeenAllocation, details: PodDetails, *, listed: bool) -> None:
        """Take over what may become known later, or change; `listed` is whether the kubelet itself lists it."""
        self.from_metadata = not listed
        self.sharing, self.replicas, self.share = seen.sharing, seen.replicas, seen.share
        if details.uid or details.workload:
            self.details = details

    def count(self, seconds: float) -> None:
        """Count time in which it was allocated, with its share before."""
        self.observed += seconds
        self.gpu_seconds += seconds * self.share

    def measure(self, busy: float | None, memory: float | None, seconds: float) -> None:
        """Count the values of the device over so many seconds before now."""
        if busy is not None:
            self.utilization.add(busy, seconds)
        if memory is not None:
            self.memory.add(memory, seconds)

    def keys(self) -> dict[str, Any]:
        """The keys that every line about it has."""
        key, details = self.key, self.details
        return {
            "allocation": self.id,
            **device_keys(key.device),
            "model": self.model,
            "resource": key.resource,
            "namespace": key.namespace,
            "pod": key.pod,
            "pod_uid": details.uid,
            "container": key.container,
            "workload": details.workload,
            "workload_type": details.workload_type,
            "requested_by": details.requested_by,
            "sharing": self.sharing,
            "replicas": self.replicas,
            "from_metadata": self.from_metadata,
        }

    def times(self) -> dict[str, Any]:
        """When it began, as far as that is known."""
        not_before = None if self.not_before is None else moment(self.not_before)
        return {"started": moment(self.started), "not_before": not_before}

    def sums(self) -> dict[str, Any]:
        """What has added up."""
        return {
            "observed_seconds": round(self.observed, 3),
            "gpu_seconds": round(self.gpu_seconds, 3),
            "utilization": self.utilization.measured(4),
            "memory_bytes": self.memory.measured(None),
        }

    def usage(self) -> AllocationUsage:
        """What has added up, to be written while it goes on."""
        return AllocationUsage(allocation=self.id, **self.sums())
