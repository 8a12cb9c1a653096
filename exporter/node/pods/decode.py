"""Decodes a pod's JSON to the `NodePod` that is kept of it. No I/O.

A pod's author writes most of what is decoded here, and its values become labels: sizes are limited.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

from exporter.api_objects.timestamps import timestamp
from exporter.api_objects.wire import ObjectMeta, ResourceRequirements
from exporter.api_objects.workload import workload_of
from exporter.gpu_names import GpuResources
from exporter.node.pods import scheduler_names, wire
from exporter.node.pods.exposed_labels import MAX_VALUE
from exporter.node.pods.options import PodOptions
from exporter.node.pods.pod import ContainerKind, NodeContainer, NodePod

MAX_DEVICES = 4096
"""Of one container: as many device ids as are kept, and the largest number that it can ask for."""
_CONTAINER_ID = re.compile(r"[a-z0-9.+-]+://([0-9a-f]{64})", re.ASCII)
_CONFIG_HASH = re.compile(r"[0-9a-f]{32}", re.ASCII)
_HASH_ANNOTATION = "kubernetes.io/config.hash"
_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
MAX_ANNOTATION = 16_384
"""The longest annotation of a scheduler that is read, in characters: 16 GPUs of 20 containers make 12,000."""

MAX_KEPT = 256
"""How many labels of a pod are kept, and how many annotations; an object has room for more."""

_Statuses = Mapping[str, wire.WireNodeContainerStatus]


class PodDecoder:
    """Makes a `NodePod` of a pod's JSON. May be called from any thread."""

    def __init__(self, options: PodOptions, gpus: GpuResources) -> None:
        self._options, self._gpus = options, gpus
        self._decoder = msgspec.json.Decoder(wire.WireNodePod)

    def __call__(self, text: msgspec.Raw) -> NodePod:
        """Raises msgspec.DecodeError where the pod cannot be read."""
        decoded = self._decoder.decode(text)
        meta, spec, status = decoded.metadata, decoded.spec, decoded.status
        labels, annotations = dict(_texts(meta.labels)), dict(_texts(meta.annotations))
        created = timestamp(meta.creation_timestamp) or 0.0
        workload, workload_type = workload_of(meta.name, labels, meta.owner_references, created)
        return NodePod(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            cgroup_uid=_config_hash(meta, annotations) or meta.uid,
            phase=(status.phase or "") if status else "",
            labels=_first({key: value for key, value in labels.items() if self._keeps_label(key)}),
            annotations=_first(dict(self._annotations(annotations))),
            workload=workload,
            workload_type=workload_type,
            containers=tuple(self._containers(spec or wire.WireNodePodSpec(), status or wire.WireNodePodStatus())),
        )

    def _keeps_label(self, key: str) -> bool:
        return key in self._options.labels or scheduler_names.is_group(key)

    def _annotations(self, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Those with a meaning, as a whole or not at all, and those that become labels, up to a length."""
        for key, value in given.items():
            if key in scheduler_names.ANNOTATIONS or key in self._options.noted_annotations:
                if len(value) <= MAX_ANNOTATION:
                    yield key, value
            elif key in self._options.annotations:
                yield key, value[: MAX_VALUE + 1]

    def _containers(self, spec: wire.WireNodePodSpec, status: wire.WireNodePodStatus) -> Iterator[NodeContainer]:
        ordinary, init = _by_name(status.container_statuses), _by_name(status.init_container_statuses)
        for container in spec.init_containers or ():
            kind = ContainerKind.SIDECAR if container.restart_policy == "Always" else ContainerKind.INIT
            yield self._container(container, kind, init)
        for container in spec.containers or ():
            yield self._container(container, ContainerKind.ORDINARY, ordinary)
        for container in spec.ephemeral_containers or ():
            yield self._container(container, ContainerKind.EPHEMERAL, _by_name(status.ephemeral_container_statuses))

    def _container(self, given: wire.WireNodeContainer, kind: ContainerKind, statuses: _Statuses) -> NodeContainer:
        status = statuses.get(given.name) or wire.WireNodeContainerStatus()
        id_ = _CONTAINER_ID.fullmatch(status.container_id or "")
        return NodeContainer(
            name=given.name,
            kind=kind,
            id=id_[1] if id_ else "",
            running=status.state is not None and status.state.running is not None,
            requests=self._requests(given.resources),
            device_ids=self._device_ids(status),
        )

    def _requests(self, resources: ResourceRequirements | None) -> Mapping[str, int]:
        """How many GPUs of each resource a container asks for; of extended resources limits and requests are equal."""
        if resources is None:
            return {}
        given = {**(resources.limits or {}), **(resources.requests or {})}
        counts = {name: _count(value) for name, value in given.items() if name in self._gpus}
        return {name: count for name, count in counts.items() if count}

    def _device_ids(self, status: wire.WireNodeContainerStatus) -> tuple[tuple[str, str], ...]:
        found = {
            (resource.name, device.resource_id)
            for resource in status.allocated_resources_status or ()
            if resource.name in self._gpus
            for device in resource.resources or ()
        }
        return tuple(sorted(found)[:MAX_DEVICES])


def _first(texts: Mapping[str, str]) -> Mapping[str, str]:
    """The first of them in the order of their names."""
    return texts if len(texts) <= MAX_KEPT else {key: texts[key] for key in sorted(texts)[:MAX_KEPT]}


def _texts(given: dict[str, str | None] | None) -> Iterator[tuple[str, str]]:
    return ((key, value) for key, value in (given or {}).items() if value is not None)


def _by_name(statuses: list[wire.WireNodeContainerStatus] | None) -> _Statuses:
    return {status.name: status for status in statuses or ()}


def _count(value: str | float) -> int:
    """A number of devices; 0 where it is none, or more than a node can have."""
    text = str(value)
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_DEVICES)) else 0
    return number if number <= MAX_DEVICES else 0


def _config_hash(meta: ObjectMeta, annotations: Mapping[str, str]) -> str:
    """By which the kubelet names the control groups of a static pod; empty on any other pod.

    The API's object of a static pod, its mirror, belongs to the node and states the hash twice.
    """
    found = annotations.get(_HASH_ANNOTATION, "")
    mirrored = annotations.get(_MIRROR_ANNOTATION) == found and _CONFIG_HASH.fullmatch(found) is not None
    of_node = any(owner.kind == "Node" and owner.controller for owner in meta.owner_references or ())
    return found if mirrored and of_node else ""
