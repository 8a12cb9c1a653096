"""The audit log as the collection loop sees it: each collection is noted, and costs no more than that."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from exporter.metric import Family
from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.matching.attribute import Attribution
from exporter.node.audit.metrics import audit_families
from exporter.node.audit.observation import AuditObservation, NodeAllocations, node_allocations
from exporter.node.audit.reasons import GapReason
from exporter.node.devices.computed.normalized import DeviceValues
from exporter.node.pods.pod import NodePods
from exporter.snapshot import SourceHealth, SourceProblem

_KUBELET = "kubelet"
"""The source of allocations."""


class ObservationWriter(Protocol):
    """What takes the observations: an AuditWriter."""

    failures: int
    wrote_at: float | None

    def put(self, observation: AuditObservation) -> None: ...

    def problems(self) -> Sequence[SourceProblem]: ...

    def close(self) -> None: ...


class KnownOfPods(NamedTuple):
    """What there is where pod metadata is on."""

    listed: Allocations
    """The allocations that the kubelet itself has listed."""
    pods: NodePods | None
    """None while nothing is known of them."""


class AuditLog:
    """Notes what each collection found. For the collection loop's thread."""

    def __init__(self, writer: ObservationWriter | None, node: str) -> None:
        """`node` is its name. Without a writer there is no log, and nothing is noted."""
        self._writer, self._node = writer, node
        self._attribution: Attribution | None = None
        self._allocations: NodeAllocations | None = None

    def note(
        self,
        health: Sequence[SourceHealth],
        at: float,
        attribution: Attribution,
        values: DeviceValues,
        known: KnownOfPods | None = None,
    ) -> None:
        """Note a collection that began at `at` (Unix seconds); `known` is None where pod metadata is off.

        `health` says whether the kubelet answered in it: an attribution may also rest on an earlier answer.
        """
        if self._writer is None:
            return
        if not any(each.source == _KUBELET and each.up for each in health):
            self._writer.put(AuditObservation(at, GapReason.KUBELET))
        elif not attribution.inventory:
            self._writer.put(AuditObservation(at, GapReason.DEVICES))
        else:
            self._writer.put(self._observation(at, attribution, values, known))

    def families(self) -> tuple[Family, ...]:
        """The metric families of the log."""
        writer = self._writer
        return () if writer is None else audit_families(writer.wrote_at, writer.failures, self._node)

    def problems(self) -> Sequence[SourceProblem]:
        """What is wrong with the log now."""
        return () if self._writer is None else self._writer.problems()

    def close(self) -> None:
        """Write what is left; bounded in time."""
        if self._writer is not None:
            self._writer.close()

    def _observation(
        self, at: float, attribution: Attribution, values: DeviceValues, known: KnownOfPods | None
    ) -> AuditObservation:
        if self._allocations is None or attribution is not self._attribution:
            self._attribution, self._allocations = attribution, node_allocations(attribution)
        observation = AuditObservation(at, self._allocations, values.busy_ratio, values.memory_used_bytes)
        if known is None:
            return observation
        listed = frozenset((each.namespace, each.pod, each.container) for each in known.listed)
        pods = {(pod.namespace, pod.name): pod for pod in known.pods or ()}
        return replace(observation, pods=pods, listed=listed, pods_known=known.pods is not None)


NO_AUDIT_LOG = AuditLog(None, "")
"""Where none is configured."""
