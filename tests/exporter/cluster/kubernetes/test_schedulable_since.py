"""Since when a pod could be scheduled."""

import msgspec

from exporter.cluster.kubernetes import conversion, wire
from exporter.cluster.kubernetes.schedulable_since import with_since
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, pod

CREATED = NOW - 5000
PLAIN = objects.pod("p", created=CREATED)
TRIED = objects.unschedulable(PLAIN, "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", CREATED + 1)


def test_an_ordinary_pod_has_waited_since_its_creation_whenever_it_is_first_seen():
    assert pod(PLAIN).schedulable_since == CREATED
    assert pod(TRIED).schedulable_since == CREATED


def test_a_gated_pod_cannot_be_scheduled_yet():
    assert pod(objects.gated(PLAIN, "example.com/wait")).schedulable_since is None


def test_a_pod_waits_from_the_moment_its_last_gate_is_seen_to_go():
    before = pod(objects.gated(PLAIN, "example.com/wait"), seen=NOW - 100)
    after = with_since(pod(PLAIN), before, NOW)
    assert after.schedulable_since == NOW
    assert with_since(pod(TRIED), after, NOW + 60).schedulable_since == NOW


def test_a_pod_that_kueue_held_counts_from_first_sight_when_its_gate_was_not_seen_to_go():
    managed = objects.pod("p", created=CREATED, labels={"kueue.x-k8s.io/managed": "true"})
    assert pod(managed).schedulable_since == NOW


def test_a_condition_without_transition_time_tells_of_an_earlier_gate():
    tried = objects.unschedulable(PLAIN, "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    tried["status"]["conditions"][0]["lastTransitionTime"] = None
    assert pod(tried).schedulable_since == NOW


def test_another_pod_of_the_same_name_starts_afresh():
    before = pod(objects.gated(PLAIN, "example.com/wait"))
    other = {**PLAIN, "metadata": {**PLAIN["metadata"], "uid": "another"}}
    assert with_since(pod(other), before, NOW).schedulable_since == CREATED


def test_finished_pods_and_pods_without_gpus_are_not_kept():
    for phase in ("Succeeded", "Failed"):
        done = objects.running(PLAIN, "n1")
        done["status"]["phase"] = phase
        assert conversion.pod(wire_pod(done), GPUS) is None
    assert conversion.pod(wire_pod(objects.pod("cpu", requests={})), GPUS) is None


def wire_pod(given):
    return msgspec.convert(given, wire.Pod)
