"""A kubelet that only serves PodResources: a real gRPC server on a unix socket, for the demo and the tests.

It is as untidy as the real one: random order, one entry per device, pods without devices, answers that fail.
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

Holder = tuple[str, str, str, str, Iterable[str]]
"""Namespace, pod, container, resource, device ids; no ids for a container without devices. An id given twice is
listed twice, as for a device near two NUMA nodes. A resource without a slash is the driver of a resource claim,
its ids `<pool>/<device>`."""

RATE_LIMITED = "rejected by rate limit"
"""What the kubelet says with RESOURCE_EXHAUSTED when its socket is asked more than 100 times a second."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How List is answered; as it should be, unless told otherwise."""

    code: grpc.StatusCode | None = None
    """Fail with this code."""
    details: str = ""
    delay: float = 0.0
    """Seconds before the answer; infinite for one that never comes."""
    padding: int = 0
    """Bytes by which the answer is larger than it need be."""


WELL = Behaviour()


class SimulatedKubelet:
    """Serves `holders()`, asked anew for each List. A context manager; may be started again after a stop."""

    def __init__(self, socket_path: Path, holders: Callable[[], Iterable[Holder]], seed: int | None = None) -> None:
        self.behaviour = WELL
        self.calls = 0
        """Lists that were asked for, answered or not."""
        self._path = socket_path
        self._holders = holders
        self._random = random.Random(seed)  # noqa: S311  # order, not secrecy
        self._server: grpc.Server | None = None
        self._threads: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Listens; the socket is in its place, ready, when this returns.

        As the kubelet does, under another name first: whoever finds the socket finds a listener.
        """
        threads = ThreadPoolExecutor(8, "simulated-kubelet")
        server = grpc.server(threads)
        add_PodResourcesListerServicer_to_server(_Lister(self._list), server)  # type: ignore[no-untyped-call]  # generated
        hidden = self._path.with_name(f".{self._path.name}.new")
        server.add_insecure_port(f"unix:{quote(str(hidden))}")
        server.start()
        hidden.replace(self._path)
        self._server, self._threads = server, threads

    def stop(self, *, leave_socket: bool = False) -> None:
        """Stops at once, calls in progress included; a crashed kubelet leaves its socket behind."""
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

    def _list(self, context: grpc.ServicerContext) -> api.ListPodResourcesResponse:
        self.calls += 1
        behaviour = self.behaviour
        if behaviour.delay:
            _wait(behaviour.delay, context)
        if behaviour.code is not None:
            context.abort(behaviour.code, behaviour.details)
        answer = self._answer()
        if behaviour.padding:
            answer.pod_resources.add(name="x" * behaviour.padding)
        return answer

    def _answer(self) -> api.ListPodResourcesResponse:
        pods: dict[tuple[str, str], api.PodResources] = {}
        for namespace, pod, container, resource, ids in self._shuffled(self._holders()):
            listed = pods.setdefault((namespace, pod), api.PodResources(name=pod, namespace=namespace))
            entry = _container(listed, container)
            for device_id in self._shuffled(ids):
                _add_device(entry, resource, device_id)
        return api.ListPodResourcesResponse(pod_resources=self._shuffled(pods.values()))

    def _shuffled(self, things: Iterable[T]) -> list[T]:
        shuffled = list(things)
        self._random.shuffle(shuffled)
        return shuffled


class _Lister(PodResourcesListerServicer):
    """The generated service, handing each call on."""

    def __init__(self, answer: Callable[[grpc.ServicerContext], api.ListPodResourcesResponse]) -> None:
        self._answer = answer

    def List(  # noqa: N802  # the name of the call
        self, request: api.ListPodResourcesRequest, context: grpc.ServicerContext
    ) -> api.ListPodResourcesResponse:
        del request  # it has no fields
        return self._answer(context)


def _wait(seconds: float, context: grpc.ServicerContext) -> None:
    """Until the time is over, the caller has gone, or the server stops."""
    over = threading.Event()
    if context.add_callback(over.set):
        over.wait(min(seconds, threading.TIMEOUT_MAX))


def _container(pod: api.PodResources, name: str) -> api.ContainerResources:
    for container in pod.containers:
        if container.name == name:
            return container
    return pod.containers.add(name=name)


def _add_device(container: api.ContainerResources, resource: str, device_id: str) -> None:
    if "/" in resource:
        container.devices.add(resource_name=resource, device_ids=[device_id])
        return
    pool, _, device = device_id.partition("/")
    claim = container.dynamic_resources.add(claim_name=f"{container.name}-claim")
    claim.claim_resources.add(driver_name=resource, pool_name=pool, device_name=device)
