"""What a collection keeps of the one before: after any changes it exposes what a watcher that keeps nothing does."""

from dataclasses import replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from exporter.cluster.config import ClusterConfig, SeriesLimits
from exporter.cluster.kubernetes.converting.devices import DeviceClass
from exporter.cluster.kubernetes.objects.records import Load, Node, OtherPod, Overrides, Pod
from exporter.cluster.metrics import capacity, nodes, pods
from exporter.cluster.metrics.families import families
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.scheduling.nodes.device_claims import DeviceCount, DeviceObjects
from exporter.cluster.view import with_pending
from exporter.exposition.kept_pieces import KeptPieces
from exporter.exposition.render import render
from tests.exporter.cluster.fixture import view

NOTHING = CollectorRegistry()
KEPT = tuple(
    f"{each.name}{{".encode() for each in (*nodes.METRICS, *capacity.METRICS, pods.INFO, pods.START, pods.PHASE)
)
RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "gpu.nvidia.com")
NAMES = [f"n{number}" for number in range(6)]

loads = st.builds(Load, cpu=st.sampled_from([0, 4000]), memory=st.sampled_from([0, 2**33]))
amounts = st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 4), min_size=1, max_size=2).map(
    lambda counts: tuple(counts.items())
)
pod_parts = st.fixed_dictionaries(
    {
        "node": st.sampled_from(["", *NAMES]),
        "phase": st.sampled_from(["Pending", "Running"]),
        "started": st.sampled_from([None, 1.0, 2.0]),
        "requests": amounts,
        "load": loads,
        "priority_class": st.sampled_from(["", "high"]),
        "deleting": st.booleans(),
    }
)
node_parts = st.fixed_dictionaries(
    {
        "ready": st.booleans(),
        "cordoned": st.booleans(),
        "capacity": st.just(()) | amounts,
        "allocatable": st.just(()) | amounts,
        "room": st.builds(Load, cpu=st.just(8000), memory=st.just(2**35), pods=st.integers(0, 3)),
    }
)
events = st.one_of(
    st.tuples(st.just("pod"), st.integers(0, 11), pod_parts | st.none()),
    st.tuples(st.just("other"), st.integers(0, 3), st.none() | st.builds(OtherPod, st.sampled_from(NAMES), loads)),
    st.tuples(st.just("node"), st.integers(0, 5), node_parts | st.none()),
    st.tuples(st.just("claimable"), st.integers(0, 5), st.integers(0, 3)),
    st.tuples(st.just("class"), st.just(0), st.booleans()),
    st.tuples(st.just("namespace"), st.integers(0, 1), st.sampled_from(["", "serving"])),
    st.tuples(st.just("unknown"), st.just(0), st.sampled_from(["", "pods", "nodes", "namespaces"])),
)


class Cluster:
    """The objects of a small cluster, changed by events as a store is: an object that changes is another one."""

    def __init__(self) -> None:
        self.parts = {"pod": {}, "other": {}, "node": {}, "claimable": {}, "class": {}, "namespace": {}, "unknown": {}}

    def apply(self, kind, number, given):
        found = self.parts[kind]
        before = found.pop(number, None)
        if given is None:
            return
        if kind == "pod":
            pod = Pod(f"u{number}", f"team-{number % 2}", f"p{number}", 1.0, (), "w", "job", schedulable_since=1.0)
            given = msgspec.structs.replace(pod, **given)
        if kind == "node":
            given = Node(f"n{number}", (), (), **given)
        found[number] = before if before == given else given

    def view(self):
        unknown = self.parts["unknown"].get(0, "")
        claimable = {
            f"n{number}": (DeviceCount("gpu.nvidia.com", 4, 4, 4 - free, free),)
            for number, free in self.parts["claimable"].items()
        }
        other = "gpu.nvidia.com" if self.parts["class"].get(0) else ""
        classes = {RESOURCES[1]: DeviceClass(RESOURCES[1], True, other)}
        namespaces = {f"team-{number}": Overrides(each) for number, each in self.parts["namespace"].items()}
        return replace(
            view(),
            pods=None if unknown == "pods" else tuple(self.parts["pod"].values()),
            other_pods=() if unknown == "pods" else tuple(self.parts["other"].values()),
            nodes=None if unknown == "nodes" else tuple(self.parts["node"].values()),
            namespaces=None if unknown == "namespaces" else namespaces,
            devices=DeviceObjects(classes=classes, by_node=claimable),
        )


def lines(given, history, kept, limits):
    made = with_pending(given, history)
    found = render(families(made, ClusterConfig(limits=limits), []), NOTHING, None, kept)
    return [line for line in found.text.splitlines() if line.startswith(KEPT)], made.pending


@given(st.lists(st.lists(events, max_size=8), min_size=1, max_size=8), st.sampled_from([2, 1000]))
def test_after_any_changes_the_lines_are_those_of_a_watcher_that_keeps_nothing(steps, most):
    cluster, history, kept = Cluster(), ClusterHistory(), KeptPieces()
    limits = SeriesLimits(nodes=most)
    for step in steps:
        for event in step:
            cluster.apply(*event)
        given = cluster.view()
        found, pending = lines(given, history, kept, limits)
        fresh = ClusterHistory()
        fresh.lost_nodes = history.lost_nodes  # what is gone is remembered on purpose
        expected, reasons = lines(given, fresh, KeptPieces(), limits)
        assert found == expected
        assert pending == reasons


def test_a_collection_that_fails_between_two_others_costs_them_nothing():
    cluster, history = Cluster(), ClusterHistory()
    cluster.apply("node", 0, {"ready": True, "cordoned": False, "capacity": (), "allocatable": ((RESOURCES[0], 4),)})
    with_pending(cluster.view(), history)
    cluster.apply("pod", 0, {"node": "n0", "requests": ((RESOURCES[0], 1),)})
    seen = cluster.view()
    history.node_sums.update(seen.pods, seen.other_pods)  # and what follows it raises
    (use,) = with_pending(seen, history).node_chunks[0].uses
    assert (use.requested, use.free) == (((RESOURCES[0], 1),), ((RESOURCES[0], 3),))


def test_what_pods_without_gpus_take_is_summed_with_them():
    cluster, history, room = Cluster(), ClusterHistory(), Load(8000, 2**35, 2)
    cluster.apply("node", 0, {"ready": True, "cordoned": False, "capacity": (), "allocatable": ((RESOURCES[0], 4),)})
    cluster.parts["node"][0] = msgspec.structs.replace(cluster.parts["node"][0], room=room)
    for count in (4, 3, 2, 3):
        cluster.apply("other", 0, None if count == 4 else OtherPod("n0", Load(2000 * (4 - count), 0)))
        (use,) = with_pending(cluster.view(), history).node_chunks[0].uses
        assert sum(each.devices for each in use.stranded) == {4: 2, 3: 3, 2: 3}[count]


def test_what_did_not_change_is_not_made_again():
    cluster, history = Cluster(), ClusterHistory()
    running = {"node": "n0", "phase": "Running", "requests": ((RESOURCES[0], 1),), "started": 1.0}
    for number in range(2):
        cluster.apply("node", number, {"ready": True, "cordoned": False, "capacity": (), "allocatable": ()})
    cluster.apply("pod", 0, running)
    first = with_pending(cluster.view(), history)
    cluster.apply("pod", 0, running | {"started": 2.0})
    later = with_pending(cluster.view(), history)
    assert all(one is other for one, other in zip(first.node_chunks, later.node_chunks, strict=True))
    (before,), (after,) = first.pod_chunks, later.pod_chunks
    assert (before.stamps.info, before.stamps.phase) == (after.stamps.info, after.stamps.phase)
    assert before.stamps.start is not after.stamps.start
    cluster.apply("pod", 0, running | {"started": 2.0, "node": "n1"})
    moved = with_pending(cluster.view(), history)
    assert moved.pod_chunks[0].stamps.info is not after.stamps.info
    assert moved.pod_chunks[0].stamps.start is after.stamps.start
    assert [chunk.stamp for chunk in moved.node_chunks] == [chunk.stamp for chunk in later.node_chunks]
