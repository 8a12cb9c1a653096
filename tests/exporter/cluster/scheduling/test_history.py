"""What the watcher remembers: when workloads last ran, rejected pods, lost nodes."""

from dataclasses import replace

import msgspec

from exporter.cluster.scheduling.keeping.history import ClusterHistory, LostNodes
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.cluster.view import with_pending
from simulators import objects
from tests.exporter.cluster.fixture import NOW, node, pod, view

GPU = "nvidia.com/gpu"
JOB = objects.owner("Job", "train", "team-a")
FULL = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
TRAIN = ("team-a", "train", "job")


def made(name, created):
    return objects.unschedulable(objects.pod(name, "team-a", {GPU: 8}, JOB, created), FULL, created + 1)


def since(history, now, *pods):
    return dict(with_pending(replace(view(list(pods)), now=now), history).pending_since)


def test_a_workload_is_pending_since_its_oldest_pending_pod_could_be_scheduled():
    found = since(ClusterHistory(), NOW, made("a", NOW - 100), made("b", NOW - 300))
    assert found == {TRAIN: NOW - 300}


def test_a_workload_whose_pods_are_made_anew_stays_pending_since_the_first_one():
    history = ClusterHistory()
    for number in range(10):
        now = NOW + 300 * number
        assert since(history, now + 200, made(f"p{number}", now)) == {TRAIN: NOW}
        assert since(history, now + 250) == {}


def test_a_workload_that_ran_is_pending_since_then():
    history = ClusterHistory()
    assert since(history, NOW + 100, made("a", NOW)) == {TRAIN: NOW}
    assert since(history, NOW + 200, objects.running(made("a", NOW), "n1")) == {}
    assert since(history, NOW + 400, made("b", NOW + 300)) == {TRAIN: NOW + 300}


def test_while_some_pods_run_the_oldest_pending_one_counts():
    history = ClusterHistory()
    assert since(history, NOW + 100, made("a", NOW), made("b", NOW + 50)) == {TRAIN: NOW}
    pods = [objects.running(made("a", NOW), "n1"), made("b", NOW + 50)]
    assert since(history, NOW + 200, *pods) == {TRAIN: NOW + 50}


def test_a_workload_that_is_gone_for_long_is_forgotten():
    history = ClusterHistory()
    since(history, NOW + 100, made("a", NOW))
    assert since(history, NOW + 2000) == {}
    assert since(history, NOW + 2100, made("b", NOW + 2050)) == {TRAIN: NOW + 2050}


def test_a_gated_pod_makes_no_workload_pending():
    gated = objects.gated(objects.pod("g", "team-a", {GPU: 8}, JOB, NOW - 100), "example.com/wait")
    assert since(ClusterHistory(), NOW, gated) == {}


def test_pods_without_a_controller_are_workloads_by_name():
    bare = objects.pod("p", "team-a", {GPU: 1}, created=NOW - 100)
    assert since(ClusterHistory(), NOW, bare) == {("team-a", "p", "pod"): NOW - 100}


def rejected(name, on="n1"):
    return msgspec.structs.replace(pod(objects.bound(objects.pod(name, "team-a", {GPU: 1}, JOB), on)), rejected=True)


def test_every_pod_that_a_kubelet_rejects_counts_once():
    rejections = ClusterHistory().rejections
    assert rejections.update([rejected("before")]) == {}
    assert rejections.update([rejected("before"), rejected("a")]) == {("team-a", "n1", "train"): 1}
    assert rejections.update([rejected("a"), rejected("b"), rejected("c", "n2")]) == {
        ("team-a", "n1", "train"): 2,
        ("team-a", "n2", "train"): 1,
    }
    assert rejections.update([]) == {("team-a", "n1", "train"): 2, ("team-a", "n2", "train"): 1}


def test_the_smallest_of_too_many_counts_are_dropped():
    rejections = ClusterHistory().rejections
    rejections.update([])
    for _ in range(2):
        rejections.update([])
        rejections.update([rejected("often")])
    rejections.update([rejected(f"p{number}", f"n{number}") for number in range(21_000)])
    counts = rejections.update([])
    assert len(counts) == 20_000
    assert counts["team-a", "n1", "train"] >= 2


def test_a_kind_of_node_that_is_gone_is_remembered_for_a_week():
    large = [node(objects.node(f"l{number}", {GPU: 8}, objects.gpu_labels("H100", 8))) for number in range(3)]
    small = node(objects.node("s", {GPU: 4}, objects.gpu_labels("L4", 4)))
    nodes = LostNodes()
    assert nodes.update([*large, small], NOW) == ()
    assert [each.capacity for each in nodes.update([small], NOW + 60)] == [((GPU, 8),)]
    assert [each.capacity for each in nodes.update([small], NOW + 6 * 86400)] == [((GPU, 8),)]
    assert nodes.update([small], NOW + 8 * 86400) == ()


def test_a_size_that_an_autoscaler_could_provide_again_is_not_unsatisfiable():
    history = ClusterHistory()
    pods = [made("a", NOW - 100)]
    small, large = (
        objects.node(name, {GPU: count}, objects.gpu_labels("H100", count)) for name, count in (("s", 4), ("l", 8))
    )
    with_pending(view(pods, [small, large]), history)
    assert view(pods, [small]).pending[0].reason == PendingReason.UNSATISFIABLE_SIZE
    after = with_pending(view(pods, [small]), history)
    assert after.pending[0].reason == PendingReason.INSUFFICIENT_GPU
