"""The kubelet as a source: reads which containers have which device ids, by one List call per read.

Which devices it offers at all is another call, which not every kubelet has.

It calls the kubelet's PodResources API on a unix socket. The API is v1, which Kubernetes has served since 1.20; later
versions only add fields. Of a kubelet without v1, v1alpha1 is called: List, with the same fields. The API has no watch
and reports no pod uids. All clients of the socket share one limit on calls, so a kubelet that fails is called less
often, never more often.
"""

import stat
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import grpc
from google.protobuf.message import DecodeError

from exporter.gpu_names import GpuResources
from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.kubelet.guards import CallPauses, SocketIdentity, StartGuard
from exporter.node.attribution.kubelet.listed_allocations import offered_ids
from exporter.node.attribution.kubelet.reason import (
    ANSWER_BYTES,
    DEADLINE_SECONDS,
    OFFER_DEADLINE_SECONDS,
    KubeletReason,
    kubelet_error,
)
from exporter.node.attribution.kubelet.repeated_answer import AnswerDecoder
from exporter.node.attribution.kubelet_api.podresources_pb2 import (
    AllocatableResourcesRequest,
    AllocatableResourcesResponse,
    ListPodResourcesRequest,
    ListPodResourcesResponse,
)
from exporter.node.attribution.kubelet_api.podresources_pb2_grpc import PodResourcesListerStub
from exporter.node.attribution.offer.offer import OfferedIds
from exporter.node.attribution.offer.reader import OfferReader
from exporter.source import SourceError

_ALPHA_LIST = "/v1alpha1.PodResourcesLister/List"
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
        self._decoder = AnswerDecoder(self._gpus)
        self._deadline = deadline
        self._start_guard = StartGuard(clock)
        self._pauses = CallPauses(clock)
        self._channel = grpc.insecure_channel(f"unix:{quote(str(socket_path))}", _OPTIONS)
        self._lister = PodResourcesListerStub(self._channel)  # type: ignore[no-untyped-call]  # generated
        self._alpha_list = self._channel.unary_unary(
            _ALPHA_LIST, ListPodResourcesRequest.SerializeToString, ListPodResourcesResponse.FromString
        )
        self._without_v1: SocketIdentity | None = None

    def read(self) -> Allocations:
        """List the devices and claim allocations of every pod that are GPUs.

        Raises SourceError with a KubeletReason.
        """
        socket = self._find_socket()
        self._pauses.check(socket)
        try:
            pods, allocations = self._read(socket)
            # Another one, where the kubelet has restarted between the look for its socket and the call.
            socket = self._find_socket()
        except SourceError as error:
            self._pauses.failed(error)
            raise
        self._pauses.succeeded()
        self._start_guard.check(socket, pods, allocations)
        return allocations

    def offered(self) -> OfferedIds:
        """Ask which GPUs device plugins offer. Made now, whatever the reads do. Raises SourceError."""
        request, call = AllocatableResourcesRequest(), "GetAllocatableResources"
        deadline = min(self._deadline, OFFER_DEADLINE_SECONDS)
        try:
            answer: AllocatableResourcesResponse = self._lister.GetAllocatableResources(request, timeout=deadline)
            return offered_ids(answer, self._gpus)
        except grpc.RpcError as error:
            raise kubelet_error(error, call) from error
        except DecodeError as error:
            raise SourceError(KubeletReason.INVALID_ANSWER, f"the answer to {call} cannot be decoded") from error

    def close(self) -> None:
        self._channel.close()

    def _read(self, socket: SocketIdentity) -> tuple[int, Allocations]:
        """Make the call. Returns the number of pods, and what they are given."""
        try:
            answer = self._list(socket)
            return len(answer.pod_resources), self._decoder.decode(answer)
        except grpc.RpcError as error:
            raise kubelet_error(error) from error
        except DecodeError as error:
            # Without the one device that cannot be decoded, it would look unallocated: no part of the answer is used.
            raise SourceError(
                KubeletReason.INVALID_ANSWER, "a device in the kubelet's answer cannot be decoded"
            ) from error

    def _list(self, socket: SocketIdentity) -> ListPodResourcesResponse:
        """Call v1, or v1alpha1 of a kubelet that has no v1. A new socket can be that of a newer kubelet."""
        request = ListPodResourcesRequest()
        if socket != self._without_v1:
            try:
                answer: ListPodResourcesResponse = self._lister.List(request, timeout=self._deadline)
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                    raise
            else:
                return answer
        older: ListPodResourcesResponse = self._alpha_list(request, timeout=self._deadline)
        self._without_v1 = socket
        return older

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


def offer_reader(kubelet: Kubelet, clock: Callable[[], float] = time.monotonic) -> OfferReader:
    """What asks this kubelet once a minute which devices it offers."""
    return OfferReader(kubelet.offered, KubeletReason.ALLOCATABLE_UNREADABLE, clock)
