"""Devices of ResourceClaims where the API server's ResourceSlices or ResourceClaims are known."""

import pytest

from exporter.node.attribution.matching.attribute import attribute
from exporter.node.attribution.matching.rules import AttributionRules
from exporter.node.devices.series.labels import NO_CONTAINER, ExclusiveContainer
from exporter.node.dra.device import DraDevice
from exporter.node.dra.knowledge import DraKnowledge
from exporter.node.dra.resource_claims import ClaimedDevice, ClaimFacts
from exporter.node.dra.resource_slices import ClaimableKey
from tests.exporter.node.attribution.node_devices import M7, M8, U0, U1, UUID, M, claimed, gpu, instance

P = gpu("GPU-p", 3, mig=True)
P9 = instance("GPU-p", 3, 9, mig=("MIG-p9",))
INVENTORY = (U0, U1, M, M7, M8, P, P9)


def key(name, pool="node-1"):
    return ClaimableKey("gpu.nvidia.com", pool, name)


def slices(**devices):
    return DraKnowledge({key(name.replace("_", "-")): device for name, device in devices.items()})


def claims(**by_claim):
    found = {("team", name.replace("_", "-")): ClaimFacts(devices) for name, devices in by_claim.items()}
    return DraKnowledge(claims=found)


def users(found):
    """The pods of each device."""
    return {(INVENTORY[each.device].uuid, INVENTORY[each.device].gi): each.container.pod for each in found.allocations}


def uncertain(found):
    return {(each.uuid, each.gi) for each, state in zip(found.inventory, found.states, strict=True)
            if state.pods is None and each not in {M, P}}  # fmt: skip


def test_the_uuid_of_a_resource_slice_comes_before_the_number_in_the_name():
    known = slices(gpu_0=DraDevice("gpu", 0, uuid="GPU-1"), first=DraDevice("gpu", uuid=UUID.upper()))
    found = attribute(INVENTORY, claimed("a", "gpu-0") + claimed("b", "first"), dra=known)
    assert users(found) == {("GPU-1", -1): "a", (UUID, -1): "b"}
    assert not found.unmatched


def test_another_pools_device_of_the_same_name_is_another_device():
    known = DraKnowledge(
        {key("first"): DraDevice("gpu", uuid=UUID), key("first", "other"): DraDevice("gpu", uuid="GPU-1")}
    )
    found = attribute(INVENTORY, claimed("a", "first", pool="other"), dra=known)
    assert users(found) == {("GPU-1", -1): "a"}


def test_a_static_mig_device_is_found_by_its_uuid_in_either_spelling():
    known = slices(
        gpu_2_mig_1g10gb_19_0=DraDevice("mig", 2, "MIG-aaaa", "GPU-m", "1g10gb", 0),
        gpu_2_mig_1g10gb_19_1=DraDevice("mig", 2, "MIG-GPU-m/8/0", "GPU-m", "1g10gb", 1),
    )
    listed = claimed("a", "gpu-2-mig-1g10gb-19-0") + claimed("b", "gpu-2-mig-1g10gb-19-1")
    assert users(attribute(INVENTORY, listed, dra=known)) == {("GPU-m", 7): "a", ("GPU-m", 8): "b"}


def test_a_mig_device_that_is_made_for_its_claim_is_the_only_one_of_its_gpu_with_its_profile():
    known = slices(
        any=DraDevice("mig", -1, "", "GPU-p", "1g10gb", 4), many=DraDevice("mig", -1, "", "GPU-m", "1g10gb", 4)
    )
    found = attribute(INVENTORY, claimed("a", "any") + claimed("b", "many"), dra=known)
    assert users(found) == {("GPU-p", 9): "a"}
    assert uncertain(found) == {("GPU-m", 7), ("GPU-m", 8)}
    assert found.unmatched == (("gpu_nvidia_com", "unresolved_claim", 1),)


@pytest.mark.parametrize(
    ("device", "reason", "candidates"),
    [
        (DraDevice("mig", 3, "MIG-gone", "GPU-p", "1g10gb", 4), "no_such_instance", {("GPU-p", 9)}),
        (DraDevice("mig", 3, "MIG-gone", "GPU-x", "1g10gb", 4), "no_such_gpu", set()),
        (DraDevice("gpu", 0, uuid="GPU-x"), "no_such_gpu", set()),
        (DraDevice("gpu"), "unresolved_claim", {(UUID, -1), ("GPU-1", -1), ("GPU-m", 7), ("GPU-m", 8), ("GPU-p", 9)}),
        (DraDevice("mig", 3, "MIG-gone"), "no_such_instance", {("GPU-p", 9)}),
    ],
)
def test_what_no_device_is_makes_only_those_uncertain_that_it_may_be(device, reason, candidates):
    found = attribute(INVENTORY, claimed("a", "first"), dra=slices(first=device))
    assert (found.unmatched, uncertain(found)) == ((("gpu_nvidia_com", reason, 1),), candidates)


def test_a_gpu_of_a_virtual_machine_is_found_by_its_address():
    known = slices(gpu_vfio_1=DraDevice("vfio", pci_address="0000:01:00.0"))
    found = attribute(INVENTORY, claimed("vm", "gpu-vfio-1"), dra=known)
    assert (found.states[1].sharing, found.containers[1]) == ("passthrough", ExclusiveContainer("team", "vm", "main"))
    elsewhere = slices(gpu_vfio_1=DraDevice("vfio", pci_address="0000:99:00.0"))
    found = attribute(INVENTORY, claimed("vm", "gpu-vfio-1"), dra=elsewhere)
    assert (found.unmatched, uncertain(found)) == ((("gpu_nvidia_com", "no_such_gpu", 1),), set())


def test_a_device_of_which_claims_get_shares_is_never_one_pods_alone():
    known = slices(gpu_0=DraDevice("gpu", 0, uuid=UUID, shares=True))
    found = attribute(INVENTORY, claimed("a", "gpu-0"), dra=known)
    assert (found.states[0].sharing, found.states[0].pods, found.containers[0]) == ("dra-shared", 1, NO_CONTAINER)


def test_a_claim_for_monitoring_is_no_use():
    known = claims(
        watch={key(f"gpu-{n}"): ClaimedDevice("gpu.nvidia.com", monitoring=True) for n in (0, 1)},
        train_gpu={key("gpu-1"): ClaimedDevice("gpu.nvidia.com")},
    )
    watching = tuple(each for n in (0, 1) for each in claimed("exporter", f"gpu-{n}", "watch"))
    found = attribute((U0, U1), watching + claimed("train", "gpu-1"), dra=known)
    assert [(state.sharing, state.pods) for state in found.states] == [(None, 0), ("exclusive", 1)]
    assert found.containers[1] == ExclusiveContainer("team", "train", "main")
    assert not found.unmatched


def test_the_resource_of_a_claim_is_its_class():
    known = claims(train_gpu={key("gpu-0"): ClaimedDevice("team-gpus.example.com")})
    found = attribute((U0,), claimed("train", "gpu-0"), dra=known)
    assert [each.resource for each in found.allocations] == ["team_gpus_example_com"]


def test_a_claim_that_was_not_read_yet_makes_only_its_device_uncertain():
    found = attribute((U0, U1), claimed("train", "gpu-0"), dra=DraKnowledge(claims={}))
    assert found.unmatched == (("gpu_nvidia_com", "claim_unread", 1),)
    assert [state.pods for state in found.states] == [None, 0]
    assert not found.allocations


def test_where_claims_are_not_read_those_of_certain_namespaces_are_for_monitoring():
    listed = claimed("exporter", "gpu-0", namespace="gpu-operator") + claimed("train", "gpu-0")
    assert attribute((U0,), listed).containers == (ExclusiveContainer("team", "train", "main"),)
    rules = AttributionRules(monitoring_namespaces=frozenset({"team"}))
    assert attribute((U0,), listed, rules).containers == (ExclusiveContainer("gpu-operator", "exporter", "main"),)
    # A claim that was read decides, whatever the namespace is.
    known = DraKnowledge(claims={("gpu-operator", "exporter-gpu"): ClaimFacts({key("gpu-0"): ClaimedDevice("c")})})
    only = claimed("exporter", "gpu-0", namespace="gpu-operator")
    assert attribute((U0,), only, dra=known).states[0].pods == 1
