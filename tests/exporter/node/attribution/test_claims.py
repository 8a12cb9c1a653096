"""Devices of ResourceClaims (DRA): which device is meant, and who shares it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.attribution.matching.attribute import DeviceAllocation, PodContainer, attribute
from exporter.node.attribution.series.state_seconds import device_state
from exporter.node.devices.series.labels import NO_CONTAINER, ExclusiveContainer
from tests.exporter.node.attribution.node_devices import (
    M1,
    M1C0,
    M1C1,
    M7,
    M8,
    U0,
    U1,
    UUID,
    M,
    allocated,
    claimed,
    gpu,
    instance,
)

P = gpu("GPU-p", 3, mig=True)
P2 = instance("GPU-p", 3, 2, mig=("MIG-p2",), profile="3g.40gb")
P9 = instance("GPU-p", 3, 9, mig=("MIG-p9",))
INVENTORY = (U0, U1, M, M7, M8, M1, M1C0, M1C1, P, P2, P9)


def pods(found):
    """How many pods each device that can be allocated is allocated to."""
    return {
        (each.uuid, each.gi, each.ci): state.pods
        for each, state in zip(found.inventory, found.states, strict=True)
        if each not in {M, M1, P}
    }


def unknown(found):
    return {key for key, number in pods(found).items() if number is None}


def test_a_gpu_of_a_claim_is_that_of_the_minor_number_in_its_name_and_has_the_labels_of_the_device_plugins_path():
    found = attribute((U0, U1), claimed("train", "gpu-1"))
    assert found.containers == (NO_CONTAINER, ExclusiveContainer("team", "train", "main"))
    container = PodContainer("team", "train", "main")
    assert found.allocations == (DeviceAllocation(1, container, "gpu_nvidia_com", "exclusive", 0),)
    assert (pods(found), found.unmatched) == ({(UUID, -1, -1): 0, ("GPU-1", -1, -1): 1}, ())


def test_the_number_in_the_name_is_never_an_index():
    moved = gpu("GPU-x", 1)
    moved = type(moved)(moved.uuid, 0, moved.pci_bus_id, 1, moved.model)
    found = attribute((moved,), claimed("train", "gpu-0"))
    assert found.unmatched == (("gpu_nvidia_com", "no_such_gpu", 1),)
    assert found.allocations == ()


@pytest.mark.parametrize(("name", "device"), [("gpu-3-mig-3g40gb-9-0", P2), ("gpu-3-mig-1g10gb-19-4", P9)])
def test_a_mig_device_is_the_only_one_of_its_gpu_with_that_profile(name, device):
    found = attribute(INVENTORY, claimed("train", name))
    assert [INVENTORY[each.device] for each in found.allocations] == [device]
    assert not unknown(found)


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("gpu-2-mig-1g10gb-19-4", {7, 8, 1}),  # several with the profile: which of them is not guessed
        ("gpu-3-mig-1g12gb-19-4", {9}),  # memory is rounded differently, but the size is the same
        ("gpu-3-mig-19-4-1", {2, 9}),  # a profile id alone tells no profile
        ("gpu-3-mig-7g80gb-0-0", {2, 9}),  # no such MIG device was read: any of this GPU's may have been replaced
    ],
)
def test_only_the_mig_devices_that_may_be_meant_become_uncertain(name, candidates):
    found = attribute(INVENTORY, claimed("train", name))
    assert not found.allocations
    gpus = {"gpu-2": "GPU-m", "gpu-3": "GPU-p"}
    assert {gi for uuid, gi, _ in unknown(found) if uuid == gpus[name[:5]]} == candidates
    assert all(uuid == gpus[name[:5]] for uuid, _, _ in unknown(found))


def test_a_gpu_without_mig_devices_may_have_been_partitioned_after_it_was_read():
    found = attribute((U0, U1), claimed("train", "gpu-1-mig-1g10gb-19-0"))
    assert found.unmatched == (("gpu_nvidia_com", "no_such_instance", 1),)
    assert unknown(found) == {("GPU-1", -1, -1)}


def test_the_mig_device_of_no_gpu_makes_none_uncertain():
    found = attribute(INVENTORY, claimed("train", "gpu-9-mig-1g10gb-19-0"))
    assert (found.unmatched, unknown(found)) == ((("gpu_nvidia_com", "no_such_gpu", 1),), set())


def test_a_gpu_that_is_passed_through_makes_whole_gpus_uncertain_while_its_address_is_not_known():
    found = attribute(INVENTORY, claimed("vm", "gpu-vfio-1"))
    assert unknown(found) == {(UUID, -1, -1), ("GPU-1", -1, -1)}
    assert found.unmatched == (("gpu_nvidia_com", "unresolved_claim", 1),)


def test_a_name_of_another_spelling_may_mean_any_device():
    found = attribute((U0, U1), claimed("train", "first"))
    assert found.unmatched == (("gpu_nvidia_com", "unresolved_claim", 1),)
    assert unknown(found) == {(UUID, -1, -1), ("GPU-1", -1, -1)}


def test_a_gpu_that_is_partitioned_now_was_not_meant_as_a_whole():
    found = attribute(INVENTORY, claimed("train", "gpu-3"))
    assert found.unmatched == (("gpu_nvidia_com", "partitioned", 1),)
    assert unknown(found) == {("GPU-p", 2, -1), ("GPU-p", 9, -1)}


def test_pods_with_one_claim_share_its_device():
    found = attribute((U0, U1), claimed("a", "gpu-0", "shared") + claimed("b", "gpu-0", "shared"))
    assert (found.states[0].sharing, found.states[0].pods, found.containers[0]) == ("dra-shared", 2, NO_CONTAINER)
    assert [(each.container.pod, each.sharing, each.replicas) for each in found.allocations] == [
        ("a", "dra-shared", 0),
        ("b", "dra-shared", 0),
    ]
    assert device_state(found.states[0], 0.5) == "shared"


def test_containers_of_one_pod_with_one_claim_have_the_device_alone():
    found = attribute((U0,), claimed("a", "gpu-0") + claimed("a", "gpu-0", container="side"))
    assert (found.states[0].sharing, found.containers[0]) == ("exclusive", ExclusiveContainer("team", "a", ""))


def test_claims_with_shares_of_a_device_share_it_and_one_alone_does_not_have_it_alone():
    both = claimed("a", "gpu-0", "one", "s1") + claimed("b", "gpu-0", "two", "s2")
    found = attribute((U0,), both)
    assert (found.states[0].sharing, found.states[0].pods, len(found.allocations)) == ("dra-shared", 2, 2)
    alone = attribute((U0,), both[:1])
    assert (alone.states[0].sharing, alone.states[0].pods, alone.containers[0]) == ("dra-shared", 1, NO_CONTAINER)


def test_two_claims_with_the_whole_of_one_device_contradict_each_other():
    found = attribute((U0,), claimed("a", "gpu-0") + claimed("b", "gpu-0"))
    assert (found.states[0].sharing, found.containers[0]) == ("unknown", NO_CONTAINER)


def test_claims_of_the_same_name_in_two_namespaces_are_two():
    found = attribute((U0,), claimed("a", "gpu-0", "gpu") + claimed("b", "gpu-0", "gpu", namespace="other"))
    assert found.states[0].sharing == "unknown"


def test_a_claim_and_the_device_plugin_contradict_each_other_on_one_device():
    found = attribute((U0,), claimed("a", "gpu-0") + allocated("b", UUID))
    assert found.states[0].sharing == "unknown"


numbers = st.integers(0, 4)
profiles = st.sampled_from(["1g10gb", "3g40gb", "19"])
names = st.one_of(
    st.builds("gpu-{}".format, numbers),
    st.builds("gpu-{}-mig-{}-{}-{}".format, numbers, profiles, st.integers(0, 20), st.integers(0, 7)),
    st.builds("gpu-vfio-{}".format, numbers),
    st.text(max_size=6),
)
of_claims = st.sampled_from(["", "x"]), st.sampled_from(["", "s"])
claims = st.builds(claimed, st.sampled_from("ab"), names, *of_claims, pool=st.text("p/", max_size=3))


@given(st.lists(claims, max_size=8), st.permutations(INVENTORY))
def test_whatever_is_claimed_no_pod_is_named_on_a_device_that_it_may_not_have(lists, inventory):
    found = attribute(tuple(inventory), tuple(each for allocations in lists for each in allocations))
    for position, state in enumerate(found.states):
        users = {each.container.pod for each in found.allocations if each.device == position}
        assert state.pods in {len(users), None} if users else state.pods in {0, None}
        if state.container != NO_CONTAINER:
            assert users == {state.container.pod} or inventory[position] == M1
    meant = {each.device_id for allocations in lists for each in allocations}
    assert sum(count for _, _, count in found.unmatched) <= len(meant)
