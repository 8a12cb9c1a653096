"""The few fields of a pod that are decoded from JSON. These objects are not kept: each becomes a `NodePod` at once."""

from typing import Any

import msgspec

from exporter.api_objects.wire import ObjectMeta, ResourceRequirements


class WireNodeContainer(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None


class WireNodePodSpec(msgspec.Struct, gc=False, rename="camel"):
    containers: list[WireNodeContainer] | None = None
    init_containers: list[WireNodeContainer] | None = None
    ephemeral_containers: list[WireNodeContainer] | None = None


class WireAllocatedDevice(msgspec.Struct, gc=False):
    resource_id: str = msgspec.field(default="", name="resourceID")


class WireAllocatedResource(msgspec.Struct, gc=False):
    name: str = ""
    resources: list[WireAllocatedDevice] | None = None


class WireRunningState(msgspec.Struct, gc=False):
    running: dict[str, Any] | None = None


class WireNodeContainerStatus(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    container_id: str | None = msgspec.field(default=None, name="containerID")
    state: WireRunningState | None = None
    allocated_resources_status: list[WireAllocatedResource] | None = None


class WireNodePodStatus(msgspec.Struct, gc=False, rename="camel"):
    phase: str | None = None
    container_statuses: list[WireNodeContainerStatus] | None = None
    init_container_statuses: list[WireNodeContainerStatus] | None = None
    ephemeral_container_statuses: list[WireNodeContainerStatus] | None = None


class WireNodePod(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: WireNodePodSpec | None = None
    status: WireNodePodStatus | None = None
