"""Devices of init containers, which the kubelet does not list."""

import pytest

from exporter.node.attribution.matching.attribute import attribute
from exporter.node.attribution.pods.joined_allocations import joined
from exporter.node.pods.pod import ContainerKind, NodeContainer, NodePod
from tests.exporter.node.attribution.node_devices import GPU, M7, U0, U1, M, allocated


def init(number=1, name="load", resource=GPU, **more):
    return NodeContainer(name, ContainerKind.INIT, requests={resource: number}, **more)


def ordinary(number=0, kind=ContainerKind.ORDINARY):
    return NodeContainer("main", kind, requests={GPU: number} if number else {})


def pods_of(inventory, allocations, *containers, phase="Running"):
    pod = NodePod("team", "p", "u", phase=phase, containers=containers)
    attribution = attribute(inventory, joined(allocations, (pod,)))
    return [state.pods for state in attribution.states], attribution.unmatched


def test_a_device_that_only_an_init_container_has_may_be_any_that_nobody_else_has():
    allocations = allocated("other", U0.uuid)
    pods, unmatched = pods_of((U0, U1), allocations, init(running=True), ordinary())
    assert pods == [1, None]
    assert unmatched == (("nvidia_com_gpu", "init_container", 1),)


@pytest.mark.parametrize(
    "containers", [(init(1), ordinary(1)), (init(2), ordinary(2)), (init(1), ordinary(1, ContainerKind.SIDECAR))]
)
def test_ordinary_containers_have_the_devices_of_init_containers(containers):
    assert pods_of((U0, U1), allocated("p", U0.uuid), *containers)[0] == [1, 0]
    assert pods_of((U0, U1), (), *containers)[0] == [0, 0]


def test_of_several_init_containers_the_largest_counts_and_only_what_is_not_listed():
    pods, unmatched = pods_of((U0, U1), allocated("p", U0.uuid), init(1), init(3, "more"), ordinary(1))
    assert pods == [1, None]
    assert unmatched == (("nvidia_com_gpu", "init_container", 2),)


def test_where_the_status_has_the_id_the_device_is_known():
    known = init(running=True, device_ids=((GPU, U1.uuid),))
    allocations = joined((), (NodePod("team", "p", "u", containers=(known, ordinary())),))
    attribution = attribute((U0, U1), allocations)
    assert [state.pods for state in attribution.states] == [0, 1]
    assert attribution.states[1].container == ("team", "p", "load")
    assert attribution.unmatched == ()


def test_a_resource_of_mig_devices_rules_out_whole_gpus():
    pods, _ = pods_of((U0, M, M7), (), init(resource="nvidia.com/mig-1g.10gb"), ordinary())
    assert pods == [0, None, None]


def test_a_pod_that_has_finished_has_no_device():
    assert pods_of((U0, U1), (), init(), ordinary(), phase="Failed") == ([0, 0], ())
