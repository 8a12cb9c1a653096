"""A device plugin for a real kubelet: it offers the ids that a test gives it, and does nothing to allocate one."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import grpc

messages, services = grpc.protos_and_services("tests/e2e/real_kubelet/deviceplugin.proto")
HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"


class FakeDevicePlugin:
    """One resource, in the kubelet's folder of device plugins. A context manager."""

    def __init__(self, folder: Path, resource: str, devices: Mapping[str, Iterable[int]]) -> None:
        """`devices` are the ids with the NUMA nodes that they are near."""
        self.resource = resource
        self._folder, self._endpoint = folder, f"{resource.replace('/', '_')}.sock"
        self._devices = devices
        self._unhealthy: set[str] = set()
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._stop: list[Callable[[], object]] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Serve, and announce that to the kubelet, which removes the sockets of all plugins when it starts."""
        self.stop()
        self._over.clear()
        threads = ThreadPoolExecutor(8)
        server = grpc.server(threads)
        services.add_DevicePluginServicer_to_server(self, server)
        server.add_insecure_port(f"unix:{self._folder / self._endpoint}")
        server.start()
        self._stop = [self._over.set, self._wake, lambda: server.stop(None).wait(), threads.shutdown]
        request = messages.RegisterRequest(version="v1beta1", endpoint=self._endpoint, resource_name=self.resource)
        with grpc.insecure_channel(f"unix:{self._folder / 'kubelet.sock'}") as channel:
            services.RegistrationStub(channel).Register(request, timeout=30, wait_for_ready=True)

    def stop(self) -> None:
        """Serve no more, if it does."""
        for step in self._stop:
            step()
        self._stop = []

    def call_unhealthy(self, *ids: str) -> None:
        """Report these devices, and no others, as unhealthy."""
        self._unhealthy = set(ids)
        self._wake()

    def GetDevicePluginOptions(self, request, context):  # noqa: N802 - the name of the call
        return messages.DevicePluginOptions()

    def ListAndWatch(self, request, context) -> Iterator[object]:  # noqa: N802 - the name of the call
        while not self._over.is_set() and context.is_active():
            yield messages.ListAndWatchResponse(devices=list(map(self._device, self._devices)))
            with self._changed:
                self._changed.wait(1)

    def Allocate(self, request, context):  # noqa: N802 - the name of the call
        responses = [messages.ContainerAllocateResponse() for _ in request.container_requests]
        return messages.AllocateResponse(container_responses=responses)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _device(self, device_id: str) -> object:
        health = UNHEALTHY if device_id in self._unhealthy else HEALTHY
        nodes = [messages.NUMANode(ID=node) for node in self._devices[device_id]]
        return messages.Device(ID=device_id, health=health, topology=messages.TopologyInfo(nodes=nodes))
