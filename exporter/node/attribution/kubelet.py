"""The kubelet as a source: its PodResources API on a unix socket, one List per read, no other call.

The API is the same on every supported kubelet (v1, since Kubernetes 1.20), knows no watch, and no pod uid.
"""

import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import grpc

from exporter.node.attribution.allocation import Allocation, Allocations
from exporter.node.attribution.kubelet_api.podresources_pb2 import (
    ContainerResources,
    ListPodResourcesRequest,
    ListPodResourcesResponse,
)
from exporter.node.attribution.kubelet_api.podresources_pb2_grpc import PodResourcesListerStub
from exporter.source import SourceError

REASONS = (
    "socket_missing",
    "no_permission",
    "unavailable",
    "starting",
    "timeout",
    "rate_limited",
    "too_large",
    "unimplemented",
    "invalid_answer",
)
DEADLINE_SECONDS = 5.0
ANSWER_BYTES = 16 * 2**20
"""A thousand pods with 48 devices each are 3.4 MB; gRPC's own limit of 4 MiB has been too small in the field."""
STARTING_SECONDS = 60.0

_OPTIONS = (
    ("grpc.max_receive_message_length", ANSWER_BYTES),
    # Without these a kubelet that was away for long is asked again only every two minutes.
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
)

_BY_CODE = {
    grpc.StatusCode.DEADLINE_EXCEEDED: "timeout",
    grpc.StatusCode.UNIMPLEMENTED: "unimplemented",
    grpc.StatusCode.PERMISSION_DENIED: "no_permission",
    grpc.StatusCode.INTERNAL: "invalid_answer",
}


class Kubelet:
    """Which container holds which device, from the kubelet of this node.

    The channel is made once and finds a restarted kubelet by itself, as long as the folder of the socket is
    mounted and not the socket: the kubelet puts a new file in its place. Nothing is connected before the first
    read. Reads come from one thread.
    """

    name = "kubelet"

    def __init__(
        self,
        socket_path: Path,
        clock: Callable[[], float] = time.monotonic,
        deadline: float = DEADLINE_SECONDS,
    ) -> None:
        self._path = socket_path
        self._deadline = deadline
        self._restart = _RestartWatch(clock)
        self._channel = grpc.insecure_channel(f"unix:{quote(str(socket_path))}", _OPTIONS)
        self._lister = PodResourcesListerStub(self._channel)  # type: ignore[no-untyped-call]  # generated

    def read(self) -> Allocations:
        """Every allocation of every pod, whatever the resource. Raises SourceError with one of `REASONS`."""
        self._find_socket()
        try:
            answer: ListPodResourcesResponse = self._lister.List(ListPodResourcesRequest(), timeout=self._deadline)
        except grpc.RpcError as error:
            raise _source_error(error) from error
        self._restart.judge(pods=len(answer.pod_resources))
        return tuple(sorted(set(_allocations(answer))))

    def close(self) -> None:
        self._channel.close()

    def _find_socket(self) -> None:
        """Tells the two commonest mistakes of an installation apart, which gRPC both calls unavailable."""
        try:
            mode = self._path.stat().st_mode
        except PermissionError as error:
            raise SourceError("no_permission", "the kubelet's socket cannot be reached: permission denied") from error
        except OSError as error:
            raise SourceError("socket_missing", f"the kubelet's socket is not there ({error.strerror})") from error
        if not stat.S_ISSOCK(mode):
            raise SourceError("socket_missing", "what should be the kubelet's socket is not a socket")


class _RestartWatch:
    """Disbelieves a kubelet that suddenly lists no pod at all.

    Until its pod sources are ready after a restart the kubelet may answer with an empty list, which would free
    every device for one pass. A node that has really lost its last pod is believed after a minute.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last_pods: float | None = None

    def judge(self, pods: int) -> None:
        now = self._clock()
        if pods:
            self._last_pods = now
        elif self._last_pods is not None and now - self._last_pods <= STARTING_SECONDS:
            raise SourceError("starting", "the kubelet lists no pod at all, as it may for a while after its start")


def _source_error(error: grpc.RpcError) -> SourceError:
    code, details = error.code(), error.details() or ""
    return SourceError(_reason(code, details.lower()), f"the kubelet's List failed: {code.name}: {details}")


def _reason(code: grpc.StatusCode, details: str) -> str:
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        # One code for two causes: the kubelet's limit on calls, shared by all clients, and our limit on bytes.
        return "too_large" if "larger than max" in details else "rate_limited"
    if code is grpc.StatusCode.UNAVAILABLE and "permission denied" in details:
        return "no_permission"
    return _BY_CODE.get(code, "unavailable")


def _allocations(answer: ListPodResourcesResponse) -> Iterator[Allocation]:
    for pod in answer.pod_resources:
        for container in pod.containers:
            for resource, device_id in _devices(container):
                yield Allocation(pod.namespace, pod.name, container.name, resource, device_id)


def _devices(container: ContainerResources) -> Iterator[tuple[str, str]]:
    for entry in container.devices:
        for device_id in entry.device_ids:
            yield entry.resource_name, device_id
    for claim in container.dynamic_resources:
        for device in claim.claim_resources:
            yield device.driver_name, f"{device.pool_name}/{device.device_name}"
