"""What an explanation reads of one pod beyond its record: containers, images, environment and the kubelet's messages.

The watcher keeps none of this. Types are as lax as those of `wire.py`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from exporter.api_objects.wire import ObjectMeta, Quantities
from exporter.cluster.kubernetes.objects.wire import PodCondition


class Variable(msgspec.Struct, gc=False):
    """An environment variable; without a value it comes from another object."""

    name: str = ""
    value: str | None = None


class DetailedResources(msgspec.Struct, gc=False):
    requests: Quantities = None
    limits: Quantities = None
    claims: list[Any] | None = None


class DetailedContainer(msgspec.Struct, gc=False):
    name: str = ""
    image: str | None = None
    env: list[Variable] | None = None
    resources: DetailedResources | None = None

    def amounts(self) -> dict[str, str | int | float]:
        """What it asks for by resource name, by limits or by requests."""
        resources = self.resources or DetailedResources()
        return {**(resources.limits or {}), **(resources.requests or {})}


class _ObjectName(msgspec.Struct, gc=False):
    name: str = ""


class _PodSpecDetail(msgspec.Struct, gc=False, rename="camel"):
    containers: list[DetailedContainer] | None = None
    init_containers: list[DetailedContainer] | None = None
    runtime_class_name: str | None = None
    image_pull_secrets: list[_ObjectName] | None = None


class StateDetail(msgspec.Struct, gc=False, rename="camel"):
    """Why a container waits, or how it ended."""

    reason: str | None = None
    message: str | None = None
    exit_code: int | None = None


class ContainerStates(msgspec.Struct, gc=False):
    waiting: StateDetail | None = None
    terminated: StateDetail | None = None


class ContainerReport(msgspec.Struct, gc=False, rename="camel"):
    """What the kubelet says of a container."""

    name: str = ""
    image: str | None = None
    ready: bool | None = None
    state: ContainerStates | None = None
    last_state: ContainerStates | None = None

    def now(self) -> ContainerStates:
        """Its state now; empty while it runs."""
        return self.state or ContainerStates()

    def ended(self) -> StateDetail | None:
        """How it ended last."""
        return self.now().terminated or (self.last_state or ContainerStates()).terminated


class _PodStatus(msgspec.Struct, gc=False, rename="camel"):
    phase: str | None = None
    message: str | None = None
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerReport] | None = None
    init_container_statuses: list[ContainerReport] | None = None


class PodDetail(msgspec.Struct, gc=False):
    """One pod."""

    metadata: ObjectMeta
    spec: _PodSpecDetail = msgspec.field(default_factory=_PodSpecDetail)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)

    def reports(self) -> Iterator[ContainerReport]:
        """What the kubelet says of all its containers, in the order in which they start."""
        yield from self.status.init_container_statuses or ()
        yield from self.status.container_statuses or ()

    def containers(self) -> Iterator[DetailedContainer]:
        """All its containers, also those that initialize it."""
        yield from self.spec.init_containers or ()
        yield from self.spec.containers or ()


def detail(given: dict[str, Any]) -> PodDetail | None:
    """Decode a pod; return None for one that cannot be read."""
    try:
        return msgspec.convert(given, PodDetail)
    except msgspec.ValidationError:
        return None
