"""The kubelet's allocations with what is known of the pods."""

from exporter.node.attribution.joined_allocations import joined
from exporter.node.pods.pod import NodePod
from tests.exporter.node.attribution.node_devices import allocated

LISTED = tuple(sorted(each for name in ("job-1", "svc-1") for each in allocated(name, "GPU-0")))
PODS = (NodePod("team", "job-1", "u1", phase="Succeeded"), NodePod("team", "svc-1", "u2", phase="Running"))


def test_a_pod_that_has_finished_has_no_device_and_others_have_their_uid():
    assert [(each.pod, each.pod_uid) for each in joined(LISTED, PODS)] == [("svc-1", "u2")]


def test_while_phases_are_not_known_no_allocation_is_left_out():
    found = joined(LISTED, PODS, phases=False)
    assert [(each.pod, each.pod_uid) for each in found] == [("job-1", "u1"), ("svc-1", "u2")]


def test_a_pod_of_which_nothing_is_known_and_one_of_another_namespace_change_nothing():
    assert joined(LISTED, (NodePod("other", "job-1", "u1", phase="Failed"),)) == LISTED
