"""The pods of this node as the API server knows them: those that it confirmed last, kept current in the background."""

from exporter.gpu_names import GpuResources
from exporter.node.pods.decode import PodDecoder
from exporter.node.pods.known_pods import KnownPods
from exporter.node.pods.options import PodOptions
from exporter.node.pods.pod import NodePod, NodePods
from exporter.node.service_account.account import ServiceAccount
from exporter.node.service_account.reasons import KEEP_SECONDS, SOURCE, ApiReason
from exporter.node.service_account.reflector import NodeReflector
from exporter.node.service_account.watched_kind import ReflectorView, WatchedKind
from exporter.source import SourceError


class ApiPods:
    """The pods that the API server says are bound to this node."""

    name = SOURCE

    def __init__(self, account: ServiceAccount, node: str, options: PodOptions, gpus: GpuResources) -> None:
        """`node` is the name of this node in Kubernetes. The first list begins now."""
        query = {"fieldSelector": f"spec.nodeName={node}"}
        kind = WatchedKind("pods", ("/api/v1/pods",), PodDecoder(options, gpus), query)
        self._reflector = NodeReflector(kind, account)
        self.kept_seconds = KEEP_SECONDS
        """How long pods are known while the API server does not confirm them."""
        self._reflector.start()

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
        return self._reflector.view(self.kept_seconds)

    def close(self) -> None:
        """End the thread; bounded in time."""
        self._reflector.close()


def pods_of_node(options: PodOptions, account: ServiceAccount, node: str, gpus: GpuResources) -> KnownPods:
    """The source that the options name, which must not be off."""
    return ApiPods(account, node, options, gpus)
