"""Since when a pod could be scheduled."""

from exporter.cluster.kubernetes.pods.schedulable_since import with_since
from simulators import objects
from tests.exporter.cluster.fixture import NOW, pod

CREATED = NOW - 5000
PLAIN = objects.pod("p", created=CREATED)
TRIED = objects.unschedulable(PLAIN, "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", CREATED + 1)


def test_a_pod_without_scheduling_gates_is_schedulable_since_its_creation_whenever_it_is_first_seen():
    assert pod(PLAIN).schedulable_since == CREATED
    assert pod(TRIED).schedulable_since == CREATED


def test_a_gated_pod_is_not_schedulable():
    assert pod(objects.gated(PLAIN, "example.com/wait")).schedulable_since is None


def test_a_pod_is_schedulable_since_its_last_scheduling_gate_was_seen_to_be_removed():
    before = pod(objects.gated(PLAIN, "example.com/wait"), seen=NOW - 100)
    after = with_since(pod(PLAIN), before, NOW)
    assert after.schedulable_since == NOW
    assert with_since(pod(TRIED), after, NOW + 60).schedulable_since == NOW


def test_a_pod_of_kueue_without_scheduling_gates_is_schedulable_since_it_was_first_seen():
    managed = objects.pod("p", created=CREATED, labels={"kueue.x-k8s.io/managed": "true"})
    assert pod(managed).schedulable_since == NOW


def test_a_condition_without_a_transition_time_is_a_trace_of_an_earlier_scheduling_gate():
    tried = objects.unschedulable(PLAIN, "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    tried["status"]["conditions"][0]["lastTransitionTime"] = None
    assert pod(tried).schedulable_since == NOW


def test_a_condition_of_the_time_of_creation_on_a_changed_spec_is_a_trace_of_an_earlier_scheduling_gate():
    tried = objects.unschedulable(PLAIN, "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", CREATED)

    def changed(generation):
        return {**tried, "metadata": {**tried["metadata"], "generation": generation}}

    assert pod(changed(2)).schedulable_since == NOW
    assert pod(changed(1)).schedulable_since == CREATED
    assert pod(tried).schedulable_since == CREATED
    resized = {**TRIED, "metadata": {**TRIED["metadata"], "generation": 2}}
    assert pod(resized).schedulable_since == CREATED


def test_another_pod_of_the_same_name_is_schedulable_since_its_own_creation():
    before = pod(objects.gated(PLAIN, "example.com/wait"))
    other = {**PLAIN, "metadata": {**PLAIN["metadata"], "uid": "another"}}
    assert with_since(pod(other), before, NOW).schedulable_since == CREATED
