"""Allocations that the statuses of pods name, while the kubelet's list is unknown."""

from exporter.node.attribution.matching.attribute import attribute
from exporter.node.attribution.pods.joined_allocations import joined
from exporter.node.attribution.pods.status_allocations import status_allocations
from exporter.node.pods.pod import NodeContainer, NodePod
from tests.exporter.node.attribution.node_devices import GPU, U0, U1


def pod(name, *ids, **more):
    containers = (NodeContainer("main", device_ids=tuple((GPU, id_) for id_ in ids)),)
    return NodePod("team", name, f"uid-of-{name}", containers=containers, **more)


def test_devices_are_those_of_pods_that_have_not_finished_and_no_other_is_called_unallocated():
    pods = (pod("a", U0.uuid), pod("done", U1.uuid, phase="Succeeded"), pod("web"))
    found = attribute((U0, U1), joined(status_allocations(pods), pods))
    assert [state.pods for state in found.states] == [1, None]
    assert found.states[0].container == ("team", "a", "main")
    assert [each.container.pod_uid for each in found.allocations] == ["uid-of-a"]
    assert found.unmatched == (("nvidia_com_gpu", "kubelet_unknown", 1),)


def test_replicas_are_replicas():
    pods = (pod("a", f"{U0.uuid}::0"), pod("b", f"{U0.uuid}::1"))
    found = attribute((U0,), joined(status_allocations(pods), pods))
    assert {(each.container.pod, each.sharing) for each in found.allocations} == {
        ("a", "time-slicing"),
        ("b", "time-slicing"),
    }


def test_statuses_that_name_nothing_say_nothing():
    assert status_allocations((pod("a"), pod("done", U0.uuid, phase="Failed"))) is None
