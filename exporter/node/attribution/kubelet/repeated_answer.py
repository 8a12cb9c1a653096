"""Decodes the kubelet's answers to List, and of an answer that lists what the one before did, nothing. No I/O.

In most collections no pod has come or gone. The kubelet lists pods, entries and ids in random order, so that answers
are compared as sets: of 250 pods with 80 replicas each, that takes a tenth of the time of decoding them.
"""

from exporter.gpu_names import GpuResources
from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.kubelet.listed_allocations import listed_allocations
from exporter.node.attribution.kubelet.reason import MAX_ALLOCATIONS
from exporter.node.attribution.kubelet_api.podresources_pb2 import ListPodResourcesResponse

_Container = tuple[str, str, str, frozenset[bytes], frozenset[bytes]]
"""Namespace, pod, name, and what is listed of its devices and its claims, not decoded."""


class AnswerDecoder:
    """Decodes one answer after another; not thread-safe."""

    def __init__(self, gpus: GpuResources) -> None:
        self._gpus = gpus
        self._listed: frozenset[_Container] | None = None
        self._allocations: Allocations = ()

    def decode(self, answer: ListPodResourcesResponse) -> Allocations:
        """Return the allocations of GPUs: the same object as long as the same is listed.

        Raises SourceError where there are too many, and google.protobuf.message.DecodeError.
        """
        listed = _listed(answer)
        if listed is None or listed != self._listed:
            self._listed = None  # so that an answer that cannot be decoded is not taken for the one before it
            self._allocations = listed_allocations(answer, self._gpus)
            self._listed = listed
        return self._allocations


def _listed(answer: ListPodResourcesResponse) -> frozenset[_Container] | None:
    """What the answer lists, whatever its order; None where that would take too much memory until the next answer."""
    containers = [(pod, container) for pod in answer.pod_resources for container in pod.containers]
    if sum(len(each.devices) + len(each.dynamic_resources) for _, each in containers) > MAX_ALLOCATIONS:
        return None
    return frozenset(
        (pod.namespace, pod.name, each.name, frozenset(each.devices), frozenset(each.dynamic_resources))
        for pod, each in containers
        if each.devices or each.dynamic_resources
    )
