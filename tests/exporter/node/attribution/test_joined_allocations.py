"""The kubelet's allocations with what is known of the pods."""

from exporter.node.attribution.pods.joined_allocations import concerning, joined
from exporter.node.pods.pod import NodeContainer, NodePod
from tests.exporter.node.attribution.node_devices import GPU, allocated

LISTED = tuple(sorted(each for name in ("job-1", "svc-1") for each in allocated(name, "GPU-0")))
PODS = (NodePod("team", "job-1", "u1", phase="Succeeded"), NodePod("team", "svc-1", "u2", phase="Running"))


def test_a_pod_that_has_finished_has_no_device_and_others_have_their_uid():
    assert [(each.pod, each.pod_uid) for each in joined(LISTED, PODS)] == [("svc-1", "u2")]


def test_while_phases_are_not_known_no_allocation_is_left_out():
    found = joined(LISTED, PODS, phases=False)
    assert [(each.pod, each.pod_uid) for each in found] == [("job-1", "u1"), ("svc-1", "u2")]


def test_a_pod_of_which_nothing_is_known_and_one_of_another_namespace_change_nothing():
    assert joined(LISTED, (NodePod("other", "job-1", "u1", phase="Failed"),)) == LISTED


def test_pods_that_have_nothing_to_do_with_gpus_are_left_aside():
    wants = NodePod("team", "wants", "u3", containers=(NodeContainer("main", requests={GPU: 1}),))
    part = NodePod("team", "part", "u4", labels={"runai-gpu-group/g": "g"})
    web = NodePod("team", "web", "u5", labels={"app": "web"}, containers=(NodeContainer("main", running=True),))
    other = NodePod("other", "job-1", "u6")
    assert concerning(LISTED, (*PODS, wants, part, web, other)) == (*PODS, wants, part)
