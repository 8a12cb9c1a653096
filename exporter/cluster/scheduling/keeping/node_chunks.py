"""Divides the nodes with GPUs into chunks, and finds what each node has left for pods: only in chunks that changed.

Of ten thousand nodes few change between two collections, and what is made of the others need not be made again, as with
the chunks of pods. No I/O.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from exporter.cluster.kubernetes.objects.records import Amounts, Node
from exporter.cluster.scheduling.keeping.node_sums import TakenOnNodes
from exporter.cluster.scheduling.keeping.pod_chunks import parts
from exporter.cluster.scheduling.nodes.capacity import Capacity, capacities
from exporter.cluster.scheduling.nodes.device_claims import DeviceCount, DeviceObjects
from exporter.cluster.scheduling.nodes.free_capacity import NodeDevices, devices_of, free_on, with_claimable
from exporter.cluster.scheduling.nodes.stranded import StrandedGpus, stranded

Claimable = tuple[DeviceCount, ...]


@dataclass(frozen=True, slots=True, eq=False)
class NodeUse:
    """What the pods on one node request, and what is left."""

    requested: Amounts
    free: Amounts
    stranded: tuple[StrandedGpus, ...]
    devices: NodeDevices


@dataclass(frozen=True, slots=True, eq=False)
class NodeChunk:
    """Some nodes that follow each other by name, and what the pods on them take."""

    nodes: tuple[Node, ...]
    claimable: tuple[Claimable, ...]
    """The devices of DRA, by position in `nodes`."""
    stamp: object
    """The same object as before while neither nodes nor claimable devices changed."""
    uses: tuple[NodeUse, ...] | None = None
    """By position in `nodes`; None where that is not known. The same object as before while nothing changed."""
    capacities: tuple[Capacity, ...] = ()


@dataclass(slots=True)
class NodeChunks:
    """The chunks of the last collection."""

    _chunks: tuple[NodeChunk, ...] = ()
    _objects: DeviceObjects = field(default_factory=DeviceObjects)
    _taken: object = None
    """The stamp of the sums that the chunks were made with."""

    def update(self, nodes: Sequence[Node], objects: DeviceObjects, taken: TakenOnNodes) -> tuple[NodeChunk, ...]:
        """Return the chunks of these nodes, sorted by name."""
        same_classes = self._objects.classes == objects.classes
        known = {chunk.nodes[0].name: chunk for chunk in self._chunks} if same_classes else {}
        if taken.after is not self._taken:  # of a collection in between the nodes were not known, or it failed
            known = {name: replace(chunk, uses=None) for name, chunk in known.items()}
        self._chunks = tuple(chunks_of_nodes(nodes, objects, taken, known))
        self._objects, self._taken = objects, taken.stamp
        return self._chunks


def chunks_of_nodes(
    nodes: Sequence[Node],
    objects: DeviceObjects,
    taken: TakenOnNodes | None,
    known: Mapping[str, NodeChunk] | None = None,
) -> Iterator[NodeChunk]:
    """Divide nodes that are sorted by name. Chunks of `known`, by the name of the first node, are kept where equal."""
    for part in parts(nodes, lambda node: node.name):
        yield _chunk(part, objects, taken, (known or {}).get(part[0].name))


def _chunk(
    nodes: tuple[Node, ...], objects: DeviceObjects, taken: TakenOnNodes | None, known: NodeChunk | None
) -> NodeChunk:
    claimable = tuple(objects.by_node.get(node.name, ()) for node in nodes)
    kept = known if known is not None and known.nodes == nodes and known.claimable == claimable else None
    if taken is None:
        return NodeChunk(nodes, claimable, object() if kept is None else kept.stamp)
    before = None if kept is None else kept.uses
    if kept is not None and before is not None and not any(node.name in taken.changed for node in nodes):
        return kept
    uses = tuple(
        _use(node, counts, objects, taken) if before is None or node.name in taken.changed else before[position]
        for position, (node, counts) in enumerate(zip(nodes, claimable, strict=True))
    )
    found = capacities(nodes, taken.requests, objects.by_node)
    return NodeChunk(nodes, claimable, object() if kept is None else kept.stamp, uses, tuple(found))


def _use(node: Node, claimable: Claimable, objects: DeviceObjects, taken: TakenOnNodes) -> NodeUse:
    free = with_claimable(free_on(node, taken.requests), tuple((each.name, each.free) for each in claimable))
    return NodeUse(
        _requested_on(node, claimable, objects, taken),
        free,
        tuple(stranded(node, free, taken.loads)),
        devices_of(node, taken.requests, claimable, objects),
    )


def _requested_on(node: Node, claimable: Claimable, objects: DeviceObjects, taken: TakenOnNodes) -> Amounts:
    """What pods on the node request; of the devices of DRA those that claims were given, also shared ones.

    Also of resources that the node does not list: DRA, or a device plugin that has gone.
    """
    claimed = {each.name: each.requested for each in claimable}
    through_dra = {name for each in claimed for name in objects.names_of(each)}
    listed = {name for name, _ in (*node.capacity, *node.allocatable)}
    names = listed | (taken.names.get(node.name, frozenset()) - listed - through_dra)
    amounts = tuple((name, taken.requests.get((node.name, name), 0)) for name in sorted(names))
    return amounts + tuple((name, count) for name, count in claimed.items() if name not in listed)
