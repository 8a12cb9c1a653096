"""The kubelet as a source: reads which containers have which device ids, by one List call per read.

It calls the kubelet's PodResources API on a unix socket. The API is v1, which Kubernetes has served since 1.20; later
versions only add fields. It has no watch and reports no pod uids. All clients of the socket share one limit on calls,
so a kubelet that fails is called less often, never more often.
"""

import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import grpc
from google.protobuf.message import DecodeError

from exporter.backoff import FIRST_PAUSE, LONGEST_PAUSE, Backoff
from exporter.gpu_names import GpuResources
from exporter.node.attribution.allocation import KEEP_SECONDS, Allocation, Allocations
from exporter.node.attribution.device_id import names_gpu
from exporter.node.attribution.kubelet_api.podresources_pb2 import (
    ContainerDevices,
    ContainerResources,
    DynamicResource,
    ListPodResourcesRequest,
    ListPodResourcesResponse,
)
from exporter.node.attribution.kubelet_api.podresources_pb2_grpc import PodResourcesListerStub
from exporter.reason import Reason
from exporter.source import SourceError

DEADLINE_SECONDS = 5.0
ANSWER_BYTES = 16 * 2**20
"""A thousand pods with 48 devices each make 3.4 MB; gRPC's own limit of 4 MiB has been too small in practice."""
MAX_ALLOCATIONS = 65_536
"""The most allocations of GPU devices that are used, because each takes memory: 16 MiB can have 400,000 of them.

16 GPUs with 7 MIG devices each, all given to containers through 500 replicas, make 56,000.
"""
EMPTY_LIST_SECONDS = 60.0
"""How long an empty list is rejected after the last one with pods."""


class KubeletReason(Reason):
    """Why the kubelet could not be read: label `reason` of `gpugauge_source_problem{source="kubelet"}`."""

    SOCKET_MISSING = (
        "socket_missing",
        "The kubelet's PodResources socket is not there, or is not a socket.",
        "Mount the host's /var/lib/kubelet/pod-resources folder, not the socket file; check that the kubelet runs.",
    )
    NO_PERMISSION = (
        "no_permission",
        "The kubelet's socket may not be opened by this user.",
        "Run as user 0, as the manifest does, or relax the security policy for this mount.",
    )
    UNAVAILABLE = (
        "unavailable",
        "The kubelet does not accept the connection, or closed it.",
        f"Check whether the kubelet runs; a restart takes seconds. The last allocations stay for {KEEP_SECONDS:.0f} s.",
    )
    STARTING = (
        "starting",
        "The kubelet lists no pod at all after it listed some, as it does right after its start.",
        f"None needed for {EMPTY_LIST_SECONDS:.0f} s after the last list with pods; then the empty list is accepted.",
    )
    TIMEOUT = (
        "timeout",
        f"The kubelet did not answer within {DEADLINE_SECONDS:.0f} s.",
        "Check the load of the node and the kubelet's log.",
    )
    RATE_LIMITED = (
        "rate_limited",
        "The kubelet rejected the call because its socket gets more than 100 calls a second.",
        "Find the other client of the PodResources socket that calls it in a loop.",
    )
    TOO_LARGE = (
        "too_large",
        f"The kubelet's answer is larger than {ANSWER_BYTES // 2**20} MiB.",
        "Report it with the number of pods and devices of the node.",
    )
    TOO_MANY_ALLOCATIONS = (
        "too_many_allocations",
        f"The kubelet lists more than {MAX_ALLOCATIONS} allocations of GPU devices; none is used.",
        "Check the number of replicas that the device plugin makes, and which names --nvidia-resource-names adds.",
    )
    UNIMPLEMENTED = (
        "unimplemented",
        "The kubelet does not offer the PodResources API v1.",
        "Update to Kubernetes 1.20 or newer, or enable the KubeletPodResources feature gate.",
    )
    INVALID_ANSWER = (
        "invalid_answer",
        "The kubelet's answer could not be decoded, or the kubelet reported an internal error.",
        "Check the kubelet's log.",
    )


_OPTIONS = (
    ("grpc.max_receive_message_length", ANSWER_BYTES),
    # By default gRPC tries to reconnect to a kubelet that is absent for long only every two minutes.
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # Otherwise channels to the same address share a connection and its back-off: a reload makes a new channel before
    # it closes the old one.
    ("grpc.use_local_subchannel_pool", 1),
    # A proxy configured in the environment is not for a local socket.
    ("grpc.enable_http_proxy", 0),
)

_BY_CODE = {
    grpc.StatusCode.DEADLINE_EXCEEDED: KubeletReason.TIMEOUT,
    grpc.StatusCode.UNIMPLEMENTED: KubeletReason.UNIMPLEMENTED,
    grpc.StatusCode.PERMISSION_DENIED: KubeletReason.NO_PERMISSION,
    grpc.StatusCode.INTERNAL: KubeletReason.INVALID_ANSWER,
}


SocketIdentity = tuple[int, int]
"""Inode and modification time of a socket file: others when the kubelet has made it again."""


class Kubelet:
    """The kubelet of this node as a source of allocations.

    The channel is made once and reconnects to a restarted kubelet by itself, as long as the folder of the socket is
    mounted and not the socket file: the kubelet replaces the file. It connects with the first read. After a failed
    call, reads raise the same error without a call until a pause is over, which doubles with every failure, or until
    the kubelet has made a new socket. Reads come from one thread.
    """

    name = "kubelet"

    def __init__(
        self,
        socket_path: Path,
        gpus: GpuResources | None = None,
        clock: Callable[[], float] = time.monotonic,
        deadline: float = DEADLINE_SECONDS,
    ) -> None:
        """`gpus` are the resources to read; `deadline` is in seconds, for one read; `clock` must never jump."""
        self._path = socket_path
        self._gpus = gpus or GpuResources()
        self._deadline = deadline
        self._empty_list_guard = _EmptyListGuard(clock)
        self._pauses = _CallPauses(clock)
        self._channel = grpc.insecure_channel(f"unix:{quote(str(socket_path))}", _OPTIONS)
        self._lister = PodResourcesListerStub(self._channel)  # type: ignore[no-untyped-call]  # generated

    def read(self) -> Allocations:
        """List the devices and claim allocations of every pod that are GPUs.

        Raises SourceError with a KubeletReason.
        """
        self._pauses.check(self._find_socket())
        try:
            pods, allocations = self._list()
        except SourceError as error:
            self._pauses.failed(error)
            raise
        self._pauses.succeeded()
        self._empty_list_guard.check(pods)
        return allocations

    def close(self) -> None:
        self._channel.close()

    def _list(self) -> tuple[int, Allocations]:
        """Make the call. Returns the number of pods, and what they are given."""
        try:
            answer: ListPodResourcesResponse = self._lister.List(ListPodResourcesRequest(), timeout=self._deadline)
            return len(answer.pod_resources), _distinct(_allocations(answer, self._gpus))
        except grpc.RpcError as error:
            raise _source_error(error) from error
        except DecodeError as error:
            # Without the one device that cannot be decoded, it would look unallocated: no part of the answer is used.
            raise SourceError(
                KubeletReason.INVALID_ANSWER, "a device in the kubelet's answer cannot be decoded"
            ) from error

    def _find_socket(self) -> SocketIdentity:
        """Raise SourceError when the socket is missing or forbidden: gRPC has one status (UNAVAILABLE) for both."""
        try:
            found = self._path.stat()
        except PermissionError as error:
            raise SourceError(
                KubeletReason.NO_PERMISSION, "the kubelet's socket cannot be reached: permission denied"
            ) from error
        except OSError as error:
            raise SourceError(
                KubeletReason.SOCKET_MISSING, f"the kubelet's socket is not there ({error.strerror})"
            ) from error
        if not stat.S_ISSOCK(found.st_mode):
            raise SourceError(KubeletReason.SOCKET_MISSING, "what should be the kubelet's socket is not a socket")
        return found.st_ino, found.st_mtime_ns


class _CallPauses:
    """Keeps reads from calling a kubelet that failed, for a pause that doubles with every failure."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, clock)
        self._failure: SourceError | None = None
        self._socket: SocketIdentity | None = None

    def check(self, socket: SocketIdentity) -> None:
        """Raise the last failure again while its pause lasts. A new socket is a kubelet that was not called yet."""
        if socket != self._socket:
            self._socket, self._failure = socket, None
        if self._failure is not None and not self._backoff.due:
            wait = self._backoff.remaining
            raise SourceError(self._failure.reason, f"{self._failure}; the next call is in {wait:.0f} s")

    def failed(self, failure: SourceError) -> None:
        self._failure = failure
        self._backoff.failed()

    def succeeded(self) -> None:
        self._failure = None
        self._backoff.reset()


class _EmptyListGuard:
    """Rejects an empty list within a minute of the last list with pods.

    After the kubelet restarts, until its pod sources are ready, it may answer with an empty list (seen with Kubernetes
    1.37): without this every device would look unallocated for one collection.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last_pods_at: float | None = None

    def check(self, pods: int) -> None:
        """Raise SourceError when this number of pods is not accepted."""
        now = self._clock()
        if pods:
            self._last_pods_at = now
        elif self._last_pods_at is not None and now - self._last_pods_at <= EMPTY_LIST_SECONDS:
            raise SourceError(
                KubeletReason.STARTING, "the kubelet lists no pod at all, as it may for a while after its start"
            )


def _source_error(error: grpc.RpcError) -> SourceError:
    code, details = error.code(), error.details() or ""
    return SourceError(_reason(code, details.lower()), f"the kubelet's List failed: {code.name}: {details}")


def _reason(code: grpc.StatusCode, details: str) -> KubeletReason:
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        # gRPC has one code for two causes: the kubelet's limit on calls (shared by all clients) and our limit on bytes.
        return KubeletReason.TOO_LARGE if "larger than max" in details else KubeletReason.RATE_LIMITED
    if code is grpc.StatusCode.UNAVAILABLE and "permission denied" in details:
        return KubeletReason.NO_PERMISSION
    return _BY_CODE.get(code, KubeletReason.UNAVAILABLE)


def _distinct(found: Iterator[Allocation]) -> Allocations:
    """Sort the allocations and leave out repetitions. Raises SourceError where there are too many.

    A part of them is no answer: the devices of the others would look unallocated.
    """
    distinct: set[Allocation] = set()
    for allocation in found:
        distinct.add(allocation)
        if len(distinct) > MAX_ALLOCATIONS:
            raise SourceError(
                KubeletReason.TOO_MANY_ALLOCATIONS,
                f"the kubelet lists more than {MAX_ALLOCATIONS} allocations of GPU devices",
            )
    return tuple(sorted(distinct))


def _allocations(answer: ListPodResourcesResponse, gpus: GpuResources) -> Iterator[Allocation]:
    """Every allocation, as listed. Allocations have names in common: each access to a field makes a new text."""
    resources: dict[str, str] = {}
    for pod in answer.pod_resources:
        namespace, name = pod.namespace, pod.name
        for container in pod.containers:
            container_name = container.name
            for resource, device_id in _devices(container, gpus):
                yield Allocation(namespace, name, container_name, resources.setdefault(resource, resource), device_id)


def _devices(container: ContainerResources, gpus: GpuResources) -> Iterator[tuple[str, str]]:
    """Decode one entry after another, so that no more than one of other resources is in memory. Raises DecodeError."""
    for entry in map(ContainerDevices.FromString, container.devices):
        resource = entry.resource_name
        if names_gpu(resource, gpus):
            for device_id in entry.device_ids:
                yield resource, device_id
    for claim in map(DynamicResource.FromString, container.dynamic_resources):
        for device in claim.claim_resources:
            driver = device.driver_name
            if names_gpu(driver, gpus):
                yield driver, f"{device.pool_name}/{device.device_name}"
