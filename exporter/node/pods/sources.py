"""The pods of this node, as the API server or the kubelet knows them, kept current in the background."""

from typing import Protocol

from exporter.gpu_names import GpuResources
from exporter.node.pods.decode import PodDecoder
from exporter.node.pods.options import PodOptions
from exporter.node.pods.pod import NodePod, NodePods
from exporter.node.service_account.account import ServiceAccount
from exporter.node.service_account.poller import Poller
from exporter.node.service_account.reasons import KEEP_SECONDS, SOURCE, ApiReason
from exporter.node.service_account.reflector import NodeReflector
from exporter.node.service_account.watched_kind import ReflectorView, WatchedKind
from exporter.source import SourceError


class PodReader(Protocol):
    """What keeps pods current in a thread of its own."""

    def start(self) -> None: ...

    def view(self, keep_seconds: float) -> ReflectorView[NodePod]: ...

    def close(self) -> None: ...


class PodSource:
    """The pods that a reader knows."""

    name = SOURCE

    def __init__(self, reader: PodReader, kept_seconds: float = KEEP_SECONDS) -> None:
        """The first list begins now; pods are known for `kept_seconds` after they were confirmed."""
        self._reader = reader
        self.kept_seconds = kept_seconds
        reader.start()

    def read(self) -> NodePods:
        """The pods. Raises SourceError while the last attempt to bring them up to date has failed."""
        view = self.state
        if view.objects is None or (view.problem and view.problem[0] is not ApiReason.TOO_MANY_OBJECTS):
            raise SourceError(*(view.problem or (ApiReason.CONNECTING, "the pods are not confirmed yet")))
        return view.objects

    @property
    def kept(self) -> NodePods | None:
        """The pods as they were known last, also after a failure; None when that is too long ago."""
        return self.state.objects

    @property
    def state(self) -> ReflectorView[NodePod]:
        """What is known now."""
        return self._reader.view(self.kept_seconds)

    def close(self) -> None:
        """End the thread; bounded in time."""
        self._reader.close()


def pods_of_node(options: PodOptions, account: ServiceAccount, node: str, gpus: GpuResources) -> PodSource:
    """The source that the options name, which must not be off. `node` is the name of this node in Kubernetes."""
    decode = PodDecoder(options, gpus)
    if options.source == "kubelet":
        return PodSource(Poller(WatchedKind("pods", ("/pods",), decode), options.kubelet))
    query = {"fieldSelector": f"spec.nodeName={node}"}
    return PodSource(NodeReflector(WatchedKind("pods", ("/api/v1/pods",), decode, query), account))
