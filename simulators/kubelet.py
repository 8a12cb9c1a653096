"""A kubelet that serves only the PodResources API: a real gRPC server on a unix socket, for the demo and for tests.

Like the real one it lists in random order, one entry per device, and also pods without devices, through v1 and
v1alpha1. Tests can make its calls fail.
"""

import random
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

import grpc

from exporter.node.attribution.kubelet_api import podresources_pb2 as api
from exporter.node.attribution.kubelet_api.podresources_pb2_grpc import (
    PodResourcesListerServicer,
    add_PodResourcesListerServicer_to_server,
)

T = TypeVar("T")

KubeletAllocation = tuple[str, str, str, str, Iterable[str]]
"""Namespace, pod, container, resource, device ids; no ids for a container without devices.

An id given twice is listed twice, as for a device near two NUMA nodes. A resource without a slash is the driver of a
ResourceClaim, its ids are `<pool>/<device>`; after that, `@<claim>` names the claim and `#<share id>` its share.
"""

OfferedDevices = tuple[str, Iterable[str]]
"""A resource, and the ids of its healthy devices."""

RATE_LIMITED = "rejected by rate limit"
"""The kubelet's message with RESOURCE_EXHAUSTED when its socket gets more than 100 calls a second."""


@dataclass(frozen=True, slots=True)
class ListBehavior:
    """How List responds; the defaults are a kubelet without faults."""

    code: grpc.StatusCode | None = None
    """Fail with this code."""
    details: str = ""
    """The message of that failure."""
    delay: float = 0.0
    """Seconds before the response; infinite for one that never comes."""
    padding: int = 0
    """Bytes by which the response is larger than necessary."""
    response: api.ListPodResourcesResponse | None = None
    """Sent in place of the allocations."""


NORMAL = ListBehavior()


class SimulatedKubelet:
    """Serves what `allocations()` returns at each List. A context manager; can be started again after a stop."""

    def __init__(
        self,
        socket_path: Path,
        allocations: Callable[[], Iterable[KubeletAllocation]],
        seed: int | None = None,
        *,
        v1: bool = True,
    ) -> None:
        """`seed` makes the random order reproducible; without `v1` it is a kubelet before Kubernetes 1.20.

        Until `offered` is set, it is one before 1.21, which does not say what it offers.
        """
        self.behavior = NORMAL
        self.v1 = v1
        self.offered: Iterable[OfferedDevices] | None = None
        """What GetAllocatableResources answers; None where there is no such call."""
        self.offer_behavior = NORMAL
        """How that call responds."""
        self.methods: list[str] = []
        """What was called since the start, in order, whether it exists or not."""
        self.calls = 0
        """How many Lists were requested, successful or not."""
        self._path = socket_path
        self._allocations = allocations
        self._random = random.Random(seed)  # noqa: S311  # order, not secrecy
        self._server: grpc.Server | None = None
        self._threads: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Listen; the socket accepts connections when this returns.

        As the kubelet does, it listens under another name first and then renames the socket: a client that finds the
        socket finds a listener.
        """
        threads = ThreadPoolExecutor(8, "simulated-kubelet")
        self.methods = []
        server = grpc.server(threads, interceptors=[_Recorder(self.methods)])
        lister = _Lister(self._list, self._offer)
        server.add_generic_rpc_handlers([_alpha_service(lister)])
        if self.v1:
            add_PodResourcesListerServicer_to_server(lister, server)  # type: ignore[no-untyped-call]  # generated
        hidden = self._path.with_name(f".{self._path.name}.new")
        server.add_insecure_port(f"unix:{quote(str(hidden))}")
        server.start()
        hidden.replace(self._path)
        self._server, self._threads = server, threads

    def stop(self, *, leave_socket: bool = False) -> None:
        """Stop at once, calls in progress included. `leave_socket` leaves the socket, as a crashed kubelet does."""
        if self._server is None or self._threads is None:
            return
        self._server.stop(grace=None).wait()
        self._threads.shutdown()
        self._server = self._threads = None
        if not leave_socket:
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _offer(self, context: grpc.ServicerContext) -> api.AllocatableResourcesResponse:
        _behave(self.offer_behavior, context)
        if self.offered is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown method GetAllocatableResources")
        each = [(resource, one) for resource, ids in self.offered for one in ids]
        entries = (api.ContainerDevices(resource_name=name, device_ids=[one]) for name, one in self._shuffled(each))
        return api.AllocatableResourcesResponse(devices=[entry.SerializeToString() for entry in entries])

    def _list(self, context: grpc.ServicerContext) -> api.ListPodResourcesResponse:
        self.calls += 1
        behavior = self.behavior
        _behave(behavior, context)
        response = behavior.response or self._response()
        if behavior.padding:
            response.pod_resources.add(name="x" * behavior.padding)
        return response

    def _response(self) -> api.ListPodResourcesResponse:
        pods: dict[tuple[str, str], api.PodResources] = {}
        for namespace, pod, container, resource, ids in self._shuffled(self._allocations()):
            listed = pods.setdefault((namespace, pod), api.PodResources(name=pod, namespace=namespace))
            entry = _container(listed, container)
            for device_id in self._shuffled(ids):
                if "/" in resource:
                    device = api.ContainerDevices(resource_name=resource, device_ids=[device_id])
                    entry.devices.append(device.SerializeToString())
                else:
                    claim = _claim(listed, container, resource, device_id)
                    entry.dynamic_resources.append(claim.SerializeToString())
        return api.ListPodResourcesResponse(pod_resources=self._shuffled(pods.values()))

    def _shuffled(self, items: Iterable[T]) -> list[T]:
        shuffled = list(items)
        self._random.shuffle(shuffled)
        return shuffled


class _Lister(PodResourcesListerServicer):
    """The generated service; it hands each call on."""

    def __init__(
        self,
        respond: Callable[[grpc.ServicerContext], api.ListPodResourcesResponse],
        offer: Callable[[grpc.ServicerContext], api.AllocatableResourcesResponse],
    ) -> None:
        self._respond, self._offer = respond, offer

    def List(  # noqa: N802  # the name of the call
        self, request: api.ListPodResourcesRequest, context: grpc.ServicerContext
    ) -> api.ListPodResourcesResponse:
        del request  # it has no fields
        return self._respond(context)

    def GetAllocatableResources(  # noqa: N802  # the name of the call
        self, request: api.AllocatableResourcesRequest, context: grpc.ServicerContext
    ) -> api.AllocatableResourcesResponse:
        del request  # it has no fields
        return self._offer(context)


class _Recorder(grpc.ServerInterceptor):
    """Writes down every call before it is known whether there is such a method."""

    def __init__(self, methods: list[str]) -> None:
        self._methods = methods

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], T],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> T:
        self._methods.append(handler_call_details.method)
        return continuation(handler_call_details)


def _alpha_service(lister: _Lister) -> grpc.GenericRpcHandler:
    """The same List as v1alpha1, which has the same fields."""
    handler = grpc.unary_unary_rpc_method_handler(
        lister.List, api.ListPodResourcesRequest.FromString, api.ListPodResourcesResponse.SerializeToString
    )
    return grpc.method_handlers_generic_handler("v1alpha1.PodResourcesLister", {"List": handler})


def _behave(behavior: ListBehavior, context: grpc.ServicerContext) -> None:
    """Wait and fail, as far as that is set. Failing raises."""
    if behavior.delay:
        _wait(behavior.delay, context)
    if behavior.code is not None:
        context.abort(behavior.code, behavior.details)


def _wait(seconds: float, context: grpc.ServicerContext) -> None:
    """Wait until the time is over, the client is gone or the server stops."""
    over = threading.Event()
    if context.add_callback(over.set):
        over.wait(min(seconds, threading.TIMEOUT_MAX))


def _container(pod: api.PodResources, name: str) -> api.ContainerResources:
    for container in pod.containers:
        if container.name == name:
            return container
    return pod.containers.add(name=name)


def _claim(pod: api.PodResources, container: str, driver: str, device_id: str) -> api.DynamicResource:
    """A claim with one device; its name is that of the pod and the container where none is given."""
    device_id, _, share = device_id.partition("#")
    device_id, _, name = device_id.partition("@")
    pool, _, device = device_id.partition("/")
    claim = api.DynamicResource(claim_name=name or f"{pod.name}-{container}", claim_namespace=pod.namespace)
    claim.claim_resources.add(driver_name=driver, pool_name=pool, device_name=device, share_id=share)
    return claim
