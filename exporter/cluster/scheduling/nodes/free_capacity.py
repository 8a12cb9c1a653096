"""Computes the free GPUs of nodes, and groups nodes that are equal for every pending pod except for their GPUs.

Ten thousand nodes differ in a few ways that matter to the pending pods. Comparing each pod with groups instead of
nodes makes a collection short.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from exporter.cluster.kubernetes.nodes.node_description import MIG_CONFIG, MIG_STATE, REPARTITIONING, labeled_devices
from exporter.cluster.kubernetes.objects.records import Amounts, Node, Pod, Taint
from exporter.cluster.scheduling.nodes.device_claims import DeviceCount, DeviceObjects
from exporter.cluster.scheduling.nodes.node_selection import by_name, keys_of
from exporter.gpu_names import WHOLE_GPU, is_gpu_class

Requested = Mapping[tuple[str, str], int]
"""Devices that pods request, by (node, resource name)."""
_MIG_PREFIX = "nvidia.com/mig-"
_MIG_STRATEGY = "nvidia.com/mig.strategy"
_WHOLE = (WHOLE_GPU, f"{WHOLE_GPU}.shared")


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of one node by resource, as far as pods ask for them."""

    capacity: Amounts
    allocatable: Amounts
    free: Amounts
    bare: bool = False
    """Whether the node has GPUs by its labels and offers none: no device plugin, or no DRA driver."""
    labeled: int | None = None
    """How many devices a bare node should offer by its labels; None where these give no number."""
    mig: bool = False
    """Whether its device plugin is to offer MIG devices each by its profile."""
    layout: str | None = None
    """The MIG layout that the node is being given; None while it is not changed."""

    def should_offer(self, name: str, count: int) -> bool:
        """Whether the node should offer so many devices of this resource although it offers none."""
        if name.startswith(_MIG_PREFIX):
            profile = name.removeprefix(_MIG_PREFIX)
            changing = self.layout is not None and (profile in self.layout or (name, 0) in self.capacity)
            return changing or (self.bare and self.mig)
        meant = self.bare and (name in _WHOLE or is_gpu_class(name))
        return meant and (self.labeled is None or self.labeled >= count)


_NO_DEVICES: Mapping[str, NodeDevices] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are equal for all pending pods except for their devices."""

    name: str
    """The node's name where a pending pod selects nodes by name; else empty."""
    labels: Mapping[str, str]
    """Only those whose keys a pending pod selects nodes by."""
    taints: tuple[Taint, ...]
    ready: bool
    cordoned: bool
    devices: Mapping[NodeDevices, int]
    """How many nodes have these devices."""


def requested(pods: Iterable[Pod]) -> Requested:
    """Sum the devices that pods on each node request. A pod being deleted counts until it is gone."""
    requests: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        if pod.node:
            for name, count in pod.requests:
                requests[pod.node, name] += count
    return requests


def free_on(node: Node, requests: Requested) -> Amounts:
    """Return allocatable minus requested devices; 0 where unhealthy devices leave fewer than are requested."""
    return tuple((name, max(0, count - requests.get((node.name, name), 0))) for name, count in node.allocatable)


def node_groups(
    nodes: Sequence[Node],
    requests: Requested,
    pending: Iterable[Pod],
    objects: DeviceObjects,
    known: Mapping[str, NodeDevices] = _NO_DEVICES,
) -> tuple[NodeGroup, ...]:
    """Group the nodes with GPUs by everything that the scheduling constraints of these pending pods distinguish.

    `known` has the devices of nodes, by name, for which they are already found.
    """
    constraints = {pod.constraints for pod in pending}
    keys = frozenset[str]().union(*(keys_of(each) for each in constraints))
    named = any(by_name(each) for each in constraints)
    groups: dict[tuple[object, ...], Counter[NodeDevices]] = {}
    first: dict[tuple[object, ...], tuple[Node, dict[str, str]]] = {}
    for node in nodes:
        claimable = objects.by_node.get(node.name, ())
        if not node.has_gpus and not claimable:
            continue
        labels = _with_keys(node, keys)
        group = (node.name if named else "", tuple(labels.items()), node.taints, node.ready, node.cordoned)
        first.setdefault(group, (node, labels))
        devices = known.get(node.name) or devices_of(node, requests, claimable, objects)
        groups.setdefault(group, Counter())[devices] += 1
    return tuple(
        NodeGroup(node.name if named else "", labels, node.taints, node.ready, node.cordoned, groups[group])
        for group, (node, labels) in first.items()
    )


def schedulable(node: Node) -> bool:
    """Whether the node is ready and not cordoned."""
    return node.ready and not node.cordoned


def with_claimable(amounts: Amounts, counts: Amounts) -> Amounts:
    """Add devices of DRA; where a device plugin offers the same resource, pods get the plugin's devices."""
    return amounts + tuple(pair for pair in counts if not dict(amounts).get(pair[0]))


def devices_of(
    node: Node, requests: Requested, claimable: tuple[DeviceCount, ...], objects: DeviceObjects
) -> NodeDevices:
    """Describe the devices of one node; `claimable` are those of DRA."""
    labels = dict(zip(node.labels[::2], node.labels[1::2], strict=True))
    layout = labels.get(MIG_CONFIG, "") if labels.get(MIG_STATE) in REPARTITIONING else None
    counted = _under_all_names(claimable, objects)
    bare = node.has_gpus and not claimable and not any(count for _, count in node.capacity)
    return NodeDevices(
        with_claimable(node.capacity, tuple((each.name, each.capacity) for each in counted)),
        with_claimable(node.allocatable, tuple((each.name, each.allocatable) for each in counted)),
        with_claimable(free_on(node, requests), tuple((each.name, each.free) for each in counted)),
        bare=bare,
        labeled=labeled_devices(labels) if bare else None,
        mig=labels.get(_MIG_STRATEGY) == "mixed",
        layout=layout,
    )


def _under_all_names(claimable: tuple[DeviceCount, ...], objects: DeviceObjects) -> tuple[DeviceCount, ...]:
    return tuple(each._replace(name=name) for each in claimable for name in objects.names_of(each.name))


def _with_keys(node: Node, keys: frozenset[str]) -> dict[str, str]:
    """The node's labels that have one of these keys, sorted."""
    if not keys:
        return {}
    pairs = zip(node.labels[::2], node.labels[1::2], strict=True)
    return dict(sorted((key, value) for key, value in pairs if key in keys))
