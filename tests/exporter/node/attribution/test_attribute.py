"""Who holds what, for every way a device can be given out."""

import random

from hypothesis import given
from hypothesis import strategies as st

from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.attribute import (
    Attribution,
    AttributionRules,
    Container,
    Pair,
    Use,
    attribute,
)
from exporter.node.devices.labels import NOBODY, Holder
from exporter.node.devices.readings import Device

GPU = "nvidia.com/gpu"
SLICE = "nvidia.com/mig-1g.10gb"
UUID = "GPU-6f9bdf1c-2d0a-4c1e-9d34-0a1b2c3d4e5f"


def board(uuid, index, *, mig=False):
    return Device(uuid, index, f"00000000:{index:02X}:00.0", index, "NVIDIA H100", mig_enabled=mig)


def instance(uuid, index, gi, ci=-1, mig=()):
    return Device(
        uuid, index, f"00000000:{index:02X}:00.0", index, "NVIDIA H100", gi, ci, "1g.10gb", mig, mig_enabled=True
    )


U0, U1 = board(UUID, 0), board("GPU-1", 1)
M = board("GPU-m", 2, mig=True)
M7, M8 = instance("GPU-m", 2, 7, mig=("MIG-aaaa",)), instance("GPU-m", 2, 8, mig=("MIG-GPU-m/8/0",))
M1 = instance("GPU-m", 2, 1, mig=("MIG-c0", "MIG-c1"))
M1C0, M1C1 = instance("GPU-m", 2, 1, 0, ("MIG-c0",)), instance("GPU-m", 2, 1, 1, ("MIG-c1",))


def held(pod, *ids, container="main", resource=GPU, namespace="team"):
    return tuple(Allocation(namespace, pod, container, resource, device_id) for device_id in ids)


def use_of(device, attribution):
    return attribution.uses[attribution.inventory.index(device)]


def pairs_of(device, attribution):
    position = attribution.inventory.index(device)
    return {
        (pair.container.pod, pair.container.name, pair.sharing, pair.slots)
        for pair in attribution.pairs
        if pair.device == position
    }


def test_a_whole_gpu_belongs_to_its_pod_and_the_other_is_free():
    found = attribute((U0, U1), held("train", UUID))
    assert found == Attribution(
        inventory=(U0, U1),
        uses=(Use(Holder("team", "train", "main"), "exclusive", 1), Use(NOBODY, None, 0)),
        pairs=(Pair(0, Container("team", "train", "main"), "nvidia_com_gpu", "exclusive", 0),),
    )
    assert found.holders == (Holder("team", "train", "main"), NOBODY)


def test_one_pod_can_hold_many_gpus():
    found = attribute((U0, U1), held("train", UUID, "GPU-1"))
    assert found.holders == (Holder("team", "train", "main"),) * 2


def test_nothing_is_claimed_while_the_kubelet_is_unknown():
    assert attribute((U0, U1), None) == Attribution((U0, U1), (Use(), Use()))


def test_nothing_is_claimed_when_no_device_was_read():
    assert attribute((), held("train", UUID)) == Attribution((), ())


def test_without_allocations_every_device_is_free_but_one_that_consists_of_others():
    found = attribute((U0, M, M7, M1, M1C0, M1C1), ())
    assert [use.pods for use in found.uses] == [0, None, 0, None, 0, 0]
    assert set(found.holders) == {NOBODY}
    assert found.pairs == ()


def test_two_numa_entries_for_one_device_count_once():
    found = attribute((U0,), held("train", UUID, UUID))
    assert use_of(U0, found) == Use(Holder("team", "train", "main"), "exclusive", 1)
    assert len(found.pairs) == 1


def test_mig_instances_belong_to_their_pods_in_both_spellings_and_the_gpu_to_nobody():
    found = attribute((M, M7, M8), held("m1", "MIG-aaaa", resource=SLICE) + held("m2", "MIG-GPU-m/8/0", resource=SLICE))
    assert found.holders == (NOBODY, Holder("team", "m1", "main"), Holder("team", "m2", "main"))
    assert [use.pods for use in found.uses] == [None, 1, 1]
    assert {pair.resource for pair in found.pairs} == {"nvidia_com_mig_1g_10gb"}
    assert {pair.sharing for pair in found.pairs} == {"exclusive"}


def test_the_older_mig_form_is_resolved_by_its_numbers_where_no_uuid_is_known():
    assert attribute((M, instance("GPU-m", 2, 8)), held("m", "MIG-GPU-m/8/0")).holders[1].pod == "m"


def test_a_gpu_is_not_held_even_when_one_pod_has_all_of_its_instances():
    found = attribute((M, M7, M8), held("m", "MIG-aaaa", "MIG-GPU-m/8/0"))
    assert use_of(M, found) == Use()


def test_a_mig_instance_that_cannot_be_found_harms_no_other_and_is_counted():
    found = attribute((U1, M, M7), held("f1", "GPU-1") + held("m1", "MIG-bbbb", resource=SLICE))
    assert found.holders == (Holder("team", "f1", "main"), NOBODY, NOBODY)
    assert found.unmatched == (("nvidia_com_mig_1g_10gb", "no_such_instance", 1),)
    assert use_of(M7, found).pods is None


def test_compute_instances_that_share_an_instance_are_told_apart():
    found = attribute((M, M1, M1C0, M1C1), held("a", "MIG-c0") + held("b", "MIG-c1"))
    assert use_of(M1C0, found) == Use(Holder("team", "a", "main"), "exclusive", 1)
    assert use_of(M1C1, found) == Use(Holder("team", "b", "main"), "exclusive", 1)
    assert use_of(M1, found) == Use()
    assert {found.inventory[pair.device].ci for pair in found.pairs} == {0, 1}


def test_an_instance_whose_parts_one_pod_holds_is_that_pods():
    found = attribute((M, M1, M1C0, M1C1), held("a", "MIG-c0") + held("a", "MIG-c1", container="second"))
    assert use_of(M1, found) == Use(Holder("team", "a", ""))


def test_time_slicing_pods_are_all_mapped_and_none_is_the_owner():
    allocations = [allocation for n in range(4) for allocation in held(f"p{n}", f"{UUID}::{n}")]
    answers = set()
    for seed in range(20):
        random.Random(seed).shuffle(allocations)
        answers.add(attribute((U0, U1), tuple(allocations)))
    (found,) = answers
    assert use_of(U0, found) == Use(NOBODY, "time-slicing", 4)
    assert pairs_of(U0, found) == {(f"p{n}", "main", "time-slicing", 1) for n in range(4)}


def test_a_replica_makes_no_owner_even_while_it_is_the_only_one_held():
    # The next pod may come at any time: labels that appear and vanish would cut every series of the device.
    found = attribute((U0,), held("only", f"{UUID}::2"))
    assert use_of(U0, found) == Use(NOBODY, "time-slicing", 1)


def test_replicas_are_mps_when_told_so():
    found = attribute((U0,), held("p", f"{UUID}::0"), AttributionRules(replicas="mps"))
    assert use_of(U0, found).sharing == "mps"
    assert pairs_of(U0, found) == {("p", "main", "mps", 1)}


def test_replicas_of_a_mig_instance_share_that_instance():
    found = attribute((M, M7), held("a", "MIG-aaaa::0") + held("b", "MIG-aaaa::1"))
    assert use_of(M7, found) == Use(NOBODY, "time-slicing", 2)


def test_slots_are_counted_per_container_and_pods_once():
    allocations = held("p", f"{UUID}::5", f"{UUID}::19", container="c") + held("p", f"{UUID}::7", container="d")
    found = attribute((U0,), allocations)
    assert pairs_of(U0, found) == {("p", "c", "time-slicing", 2), ("p", "d", "time-slicing", 1)}
    assert use_of(U0, found).pods == 1


def test_containers_of_one_pod_on_one_device_leave_the_container_open():
    found = attribute((U0,), held("p", UUID, container="c") + held("p", UUID, container="d"))
    assert use_of(U0, found) == Use(Holder("team", "p", ""), "exclusive", 1)
    assert pairs_of(U0, found) == {("p", "c", "exclusive", 0), ("p", "d", "exclusive", 0)}


def test_two_pods_on_an_exclusive_device_leave_no_owner_and_say_that_sharing_is_unknown():
    found = attribute((U0,), held("job-1", UUID) + held("svc-1", UUID))
    assert use_of(U0, found) == Use(NOBODY, "unknown", 2)
    assert pairs_of(U0, found) == {("job-1", "main", "unknown", 0), ("svc-1", "main", "unknown", 0)}


def test_pods_of_one_name_in_two_namespaces_are_two():
    found = attribute((U0,), held("p", UUID, namespace="a") + held("p", UUID, namespace="b"))
    assert use_of(U0, found).pods == 2


def test_a_recreated_pod_of_the_same_name_is_another_where_uids_are_known():
    old = Allocation("team", "db-0", "main", GPU, UUID, pod_uid="1")
    assert use_of(U0, attribute((U0,), (old, old._replace(pod_uid="2")))).pods == 2


def test_one_device_as_a_whole_and_in_slots_is_shared_in_an_unknown_way():
    found = attribute((U0,), held("a", UUID) + held("b", f"{UUID}::0"))
    assert use_of(U0, found) == Use(NOBODY, "unknown", 2)


def test_gkes_names_find_gpus_instances_and_slots():
    found = attribute(
        (U0, U1, M, M7),
        held("a", "nvidia0") + held("b", "nvidia1/vgpu0") + held("c", "nvidia1/vgpu1") + held("d", "nvidia2/gi7"),
    )
    assert found.holders == (Holder("team", "a", "main"), NOBODY, NOBODY, Holder("team", "d", "main"))
    assert use_of(U1, found) == Use(NOBODY, "time-slicing", 2)


def test_hamis_slots_are_fractions():
    found = attribute((U0, U1), held("a", f"{UUID}-0", f"{UUID}-1") + held("b", f"{UUID}-4"))
    assert use_of(U0, found) == Use(NOBODY, "fraction", 2)
    assert pairs_of(U0, found) == {("a", "main", "fraction", 2), ("b", "main", "fraction", 1)}


def test_a_gpu_passed_through_to_a_virtual_machine_is_its_pods():
    rules = AttributionRules(extra_resources=frozenset({"nvidia.com/GH100"}))
    found = attribute((U0,), held("vm", "0000:00:00.0", resource="nvidia.com/GH100"), rules)
    assert use_of(U0, found) == Use(Holder("team", "vm", "main"), "passthrough", 1)


def test_a_whole_gpus_id_matches_nothing_while_the_gpu_is_divided():
    found = attribute((M, M7, U1), held("p", "GPU-m"))
    assert found.unmatched == (("nvidia_com_gpu", "partitioned", 1),)
    assert set(found.holders) == {NOBODY}
    # Somebody holds something of that GPU: none of its instances is free for certain. The other GPU is.
    assert [use.pods for use in found.uses] == [None, None, 0]


def test_an_id_of_no_such_gpu_is_counted_and_leaves_all_others_as_they_are():
    found = attribute((U0,), held("train", f"{UUID}::0") + held("infer", f"{UUID}::1") + held("odd", "GPU-9::0"))
    assert found.unmatched == (("nvidia_com_gpu", "no_such_gpu", 1),)
    assert use_of(U0, found).pods == 2


def test_an_unmatched_id_that_two_pods_hold_is_one_id():
    found = attribute((U0,), held("a", "GPU-9") + held("b", "GPU-9", "GPU-8"))
    assert found.unmatched == (("nvidia_com_gpu", "no_such_gpu", 2),)


def test_no_device_is_called_free_while_an_id_is_not_understood():
    found = attribute((U0, U1), held("a", UUID) + held("b", "tegra"))
    assert [use.pods for use in found.uses] == [1, None]
    assert found.unmatched == (("nvidia_com_gpu", "unknown_form", 1),)


def test_claims_are_counted_as_unresolved_and_no_device_is_called_free():
    found = attribute((U0, U1), held("d", "node-1/gpu-0", resource="gpu.nvidia.com"))
    assert found.unmatched == (("gpu_nvidia_com", "unresolved_claim", 1),)
    assert [use.pods for use in found.uses] == [None, None]


def test_other_resources_are_ignored():
    found = attribute(
        (U0,), held("nic", "nic0", resource="example.com/nic") + held("a", "GPU-0", resource="amd.com/gpu")
    )
    assert found == attribute((U0,), ())


def test_one_device_through_two_resources_is_two_pairs_of_one_pod():
    found = attribute((U0,), held("p", f"{UUID}::0") + held("p", f"{UUID}::1", resource="nvidia.com/gpu.shared"))
    assert {pair.resource for pair in found.pairs} == {"nvidia_com_gpu", "nvidia_com_gpu_shared"}
    assert use_of(U0, found).pods == 1


INVENTORY = (U0, U1, M, M7, M8, M1, M1C0, M1C1)
IDS = [
    UUID, f"{UUID}::0", f"{UUID}::1", f"{UUID}-3", "GPU-1", "nvidia1/vgpu1", "0", "MIG-aaaa", "MIG-aaaa::1", "MIG-c0",
    "MIG-c1", "MIG-GPU-m/8/0", "MIG-zzzz", "GPU-m", "GPU-x", "all", "",
]  # fmt: skip
some_allocations = st.lists(
    st.builds(
        Allocation,
        st.sampled_from(["a", "b"]),
        st.sampled_from(["p", "q", "r"]),
        st.sampled_from(["c", "d"]),
        st.sampled_from([GPU, "nvidia.com/gpu.shared", SLICE, "gpu.nvidia.com", "other/thing"]),
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
def test_holders_and_pairs_never_contradict_each_other(allocations):
    found = attribute(INVENTORY, tuple(allocations))
    assert len(found.uses) == len(INVENTORY)
    for position, use in enumerate(found.uses):
        pods = {p.container._replace(name="") for p in found.pairs if p.device == position}
        divided = INVENTORY[position] in {M, M1}
        if divided:
            assert not pods
            assert use.pods is None
            continue
        assert len(pods) == (use.pods or 0)
        if use.holder != NOBODY:
            assert {pod[:2] for pod in pods} == {use.holder[:2]}
            assert use.sharing in {"exclusive", "passthrough"}
    assert len(found.pairs) == len({(p.device, p.container, p.resource) for p in found.pairs})


@given(some_allocations)
def test_every_gpu_allocation_is_either_a_pair_or_counted_as_unmatched(allocations):
    gpus = {a for a in allocations if a.resource != "other/thing"}
    found = attribute(INVENTORY, tuple(allocations))
    containers = {(a.namespace, a.pod, a.container) for a in gpus}
    paired = {pair.container[:3] for pair in found.pairs}
    assert paired <= containers
    if paired != containers:
        assert found.unmatched
