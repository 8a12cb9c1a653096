"""Which GPUs a pod has where a scheduler chooses them: by annotation and label, within what the kubelet gave."""

import pytest

from exporter.gpu_names import VOLCANO
from exporter.node.attribution.matching.attribute import attribute
from exporter.node.attribution.pods.joined_allocations import joined
from exporter.node.pods.pod import ContainerKind, NodeContainer, NodePod
from tests.exporter.node.attribution.node_devices import allocated, gpu

UUIDS = [f"GPU-{number:08x}-2d0a-4c1e-9d34-0a1b2c3d4e5f" for number in range(3)]
G0, G1, G2 = UUIDS
GPUS = tuple(gpu(uuid, index) for index, uuid in enumerate(UUIDS))
MAIN = (NodeContainer("main"),)
HAMI, VOLCANO_NOTE = "hami.io/vgpu-devices-allocated", "volcano.sh/vgpu-ids-new"
RESERVED = "kai-resource-reservation"


def pod(name, annotations=None, containers=MAIN, namespace="team", labels=None, **more):
    return NodePod(namespace, name, f"uid-of-{name}", annotations=annotations or {}, containers=containers,
                   labels=labels or {}, **more)  # fmt: skip


def found(allocations, *pods):
    """Per GPU: how many pods it is allocated to, and by whom it is used."""
    attribution = attribute(GPUS, joined(allocations, pods, {RESERVED}))
    users = [set() for _ in GPUS]
    for each in attribution.allocations:
        users[each.device].add((each.container.pod, each.container.name, each.sharing, each.replicas))
    return [state.pods for state in attribution.states], users


@pytest.mark.parametrize(
    ("resource", "note"), [("nvidia.com/gpu", HAMI), (VOLCANO, VOLCANO_NOTE)]
)  # fmt: skip
def test_the_annotation_names_the_gpu_and_then_others_are_known_to_be_unallocated(resource, note):
    listed = allocated("train", f"{G0}-3", resource=resource)
    annotated = pod("train", {note: f"{G1},NVIDIA,3000,30:;"})
    assert found(listed, annotated) == ([0, 1, 0], [set(), {("train", "main", "fraction", 1)}, set()])


@pytest.mark.parametrize(
    "note",
    [
        "",
        f"{G1},NVIDIA,3000,30:{G2},NVIDIA,3000,30:;",  # more than the kubelet gave
        f"{G1},NVIDIA,3000,30:;{G1},NVIDIA,3000,30:;{G1},NVIDIA,1,1:;",  # more containers than there are
        "MIG-aaaa,NVIDIA,3000,30:;",
        "GPU-1,NVIDIA,3000,30:;",
        ";;;",
        "nonsense",
    ],
)
def test_an_annotation_that_does_not_fit_what_the_kubelet_gave_counts_for_nothing(note):
    pods, users = found(allocated("train", f"{G0}-3"), pod("train", {HAMI: note}))
    assert pods == [1, None, None]  # none of the others is called unallocated
    assert users == [{("train", "main", "fraction", 1)}, set(), set()]


def test_one_pod_without_annotation_makes_the_others_of_the_node_uncertain():
    listed = (*allocated("train", f"{G0}-3"), *allocated("other", f"{G0}-1"))
    pods, _ = found(listed, pod("train", {HAMI: f"{G1},NVIDIA,3000,30:;"}))
    assert pods == [1, 1, None]


def test_the_entries_are_those_of_the_containers_in_their_order():
    containers = (NodeContainer("load", ContainerKind.INIT), NodeContainer("a"), NodeContainer("b"), NodeContainer("c"))
    listed = (*allocated("p", f"{G0}-1", f"{G0}-2", container="a"), *allocated("p", f"{G0}-3", container="c"))
    hami = pod("p", {HAMI: f";{G1},N,1,1:{G2},N,1,1:;;{G2},N,1,1:;"}, containers)
    _, users = found(listed, hami)
    assert users == [set(), {("p", "a", "fraction", 1)}, {("p", "a", "fraction", 1), ("p", "c", "fraction", 1)}]
    volcano = pod("p", {HAMI: f"{G1},N,1,1:{G2},N,1,1:;;{G2},N,1,1:"}, containers)
    assert found(listed, volcano)[1] == users


def test_no_annotation_moves_a_pod_to_a_gpu_that_another_pod_has_as_a_whole():
    listed = (*allocated("victim", G1), *allocated("train", f"{G0}-3"))
    hostile = pod("train", {HAMI: f"{G1},NVIDIA,3000,30:;"})
    pods, users = found(listed, hostile, pod("victim"))
    assert users[1] == {("victim", "main", "exclusive", 0)}
    assert pods == [1, 1, None]


def test_no_annotation_of_a_pod_without_fractions_counts():
    pods, users = found(allocated("p", G0), pod("p", {HAMI: f"{G1},N,1,1:;", VOLCANO_NOTE: f"{G1},N,1,1:;"}))
    assert (pods, users[0]) == ([1, 0, 0], {("p", "main", "exclusive", 0)})


def reservation(group, number=0):
    return pod(f"gpu-reservation-{number}", namespace=RESERVED, labels={"runai-gpu-group": group})


def test_the_users_of_a_gpu_that_a_reservation_pod_occupies_are_named_by_their_group():
    listed = (
        *allocated("gpu-reservation-0", G0, namespace=RESERVED),
        *allocated("gpu-reservation-1", G1, namespace=RESERVED),
    )
    half = {"gpu-fraction": "0.5"}
    two = (NodeContainer("proxy"), NodeContainer("worker"))
    pods, users = found(
        listed,
        reservation("g0"),
        reservation("g1", 1),
        pod("a", half, labels={"runai-gpu-group": "g0"}),
        pod("b", half | {"gpu-fraction-container-name": "worker"}, two,
            labels={"runai-gpu-group": "g0", "runai-gpu-group/g1": "g1"}),
        pod("done", half, labels={"runai-gpu-group": "g0"}, phase="Succeeded"),
        pod("label-alone", labels={"runai-gpu-group": "g0"}),
        pod("elsewhere", half, labels={"runai-gpu-group": "g7"}),
    )  # fmt: skip
    b = ("b", "worker", "fraction", 0)
    assert users == [{("a", "main", "fraction", 0), b}, {b}, set()]
    assert pods == [2, 1, 0]


def test_where_nobody_is_in_its_group_the_users_of_a_reserved_gpu_are_unknown():
    listed = allocated("gpu-reservation-0", G0, namespace=RESERVED)
    assert found(listed, reservation("g0"))[0] == [None, 0, 0]
    assert found(listed)[0] == [None, 0, 0]
