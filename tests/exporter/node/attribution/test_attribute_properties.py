"""Attribution keeps these promises, whatever the kubelet lists."""

from hypothesis import given
from hypothesis import strategies as st

from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.matching.attribute import (
    attribute,
)
from exporter.node.devices.series.labels import NO_CONTAINER
from tests.exporter.node.attribution.node_devices import (
    GPU,
    M1,
    M1C0,
    M1C1,
    M7,
    M8,
    MIG,
    U0,
    U1,
    UUID,
    M,
)

RESERVED = "runai-reservation"
INVENTORY = (U0, U1, M, M7, M8, M1, M1C0, M1C1)
IDS = [
    UUID, f"{UUID}::0", f"{UUID}::1", f"{UUID}-3", "GPU-1", "nvidia1/vgpu1", "0", "MIG-aaaa", "MIG-aaaa::1", "MIG-c0",
    "MIG-c1", "MIG-GPU-m/8/0", "MIG-zzzz", "GPU-m", "GPU-x", "all", "",
]  # fmt: skip
some_allocations = st.lists(
    st.builds(
        Allocation,
        st.sampled_from(["a", "b", RESERVED]),
        st.sampled_from(["p", "q", "r"]),
        st.sampled_from(["c", "d"]),
        st.sampled_from([GPU, "nvidia.com/gpu.shared", MIG, "gpu.nvidia.com", "example.com/nic"]),
        st.sampled_from(IDS) | st.text(max_size=8),
        st.sampled_from(["", "u"]),
    ),
    max_size=12,
)


@given(some_allocations, st.randoms(use_true_random=False))
def test_the_order_of_allocations_makes_no_difference(allocations, shuffler):
    expected = attribute(INVENTORY, tuple(allocations))
    shuffler.shuffle(allocations)
    assert attribute(INVENTORY, tuple(allocations * 2)) == expected


@given(some_allocations)
def test_states_and_allocations_never_contradict_each_other(allocations):
    found = attribute(INVENTORY, tuple(allocations))
    assert len(found.states) == len(INVENTORY)
    for position, state in enumerate(found.states):
        pods = {each.container._replace(name="") for each in found.allocations if each.device == position}
        partitioned = INVENTORY[position] in {M, M1}
        if partitioned:
            assert not pods
            assert state.pods is None
            continue
        if state.pods is not None:
            assert len(pods) == state.pods
        assert not any(pod[0] == RESERVED for pod in pods)
        if state.container != NO_CONTAINER:
            assert {pod[:2] for pod in pods} == {state.container[:2]}
            assert state.sharing in {"exclusive", "passthrough"}
    assert len(found.allocations) == len({(each.device, each.container, each.resource) for each in found.allocations})


@given(some_allocations)
def test_every_gpu_allocation_is_either_attributed_or_counted_as_unmatched(allocations):
    gpus = {a for a in allocations if a.resource != "example.com/nic"}
    found = attribute(INVENTORY, tuple(allocations))
    containers = {(a.namespace, a.pod, a.container) for a in gpus if a.namespace != RESERVED}
    attributed = {each.container[:3] for each in found.allocations}
    assert attributed <= containers
    if attributed != containers:
        assert found.unmatched
