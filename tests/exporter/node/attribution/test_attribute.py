"""Attribution, for every way in which a device can be allocated."""

import random

import pytest

from exporter.gpu_names import gpu_resources
from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.matching.attribute import (
    AllocationState,
    Attribution,
    DeviceAllocation,
    PodContainer,
    attribute,
)
from exporter.node.attribution.matching.rules import AttributionRules
from exporter.node.devices.series.labels import NO_CONTAINER, ExclusiveContainer
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
    allocated,
    allocations_of,
    instance,
    state_of,
)


def test_a_whole_gpu_is_allocated_to_its_pod_and_the_other_is_unallocated():
    found = attribute((U0, U1), allocated("train", UUID))
    assert found == Attribution(
        inventory=(U0, U1),
        states=(
            AllocationState(ExclusiveContainer("team", "train", "main"), "exclusive", 1),
            AllocationState(NO_CONTAINER, None, 0),
        ),
        allocations=(DeviceAllocation(0, PodContainer("team", "train", "main"), "nvidia_com_gpu", "exclusive", 0),),
    )
    assert found.containers == (ExclusiveContainer("team", "train", "main"), NO_CONTAINER)


def test_one_pod_can_have_many_gpus():
    found = attribute((U0, U1), allocated("train", UUID, "GPU-1"))
    assert found.containers == (ExclusiveContainer("team", "train", "main"),) * 2


def test_every_state_is_unknown_while_the_allocations_are_unknown():
    assert attribute((U0, U1), None) == Attribution((U0, U1), (AllocationState(), AllocationState()))


def test_nothing_is_attributed_when_no_device_was_read():
    assert attribute((), allocated("train", UUID)) == Attribution((), ())


def test_without_allocations_every_device_is_unallocated_but_one_that_consists_of_others():
    found = attribute((U0, M, M7, M1, M1C0, M1C1), ())
    assert [state.pods for state in found.states] == [0, None, 0, None, 0, 0]
    assert set(found.containers) == {NO_CONTAINER}
    assert found.allocations == ()


def test_a_device_that_is_listed_for_two_numa_nodes_counts_once():
    found = attribute((U0,), allocated("train", UUID, UUID))
    assert state_of(U0, found) == AllocationState(ExclusiveContainer("team", "train", "main"), "exclusive", 1)
    assert len(found.allocations) == 1


def test_mig_devices_are_allocated_to_their_pods_in_both_spellings_and_the_gpu_is_not():
    found = attribute(
        (M, M7, M8), allocated("m1", "MIG-aaaa", resource=MIG) + allocated("m2", "MIG-GPU-m/8/0", resource=MIG)
    )
    assert found.containers == (
        NO_CONTAINER,
        ExclusiveContainer("team", "m1", "main"),
        ExclusiveContainer("team", "m2", "main"),
    )
    assert [state.pods for state in found.states] == [None, 1, 1]
    assert {each.resource for each in found.allocations} == {"nvidia_com_mig_1g_10gb"}
    assert {each.sharing for each in found.allocations} == {"exclusive"}


def test_the_older_mig_form_is_resolved_by_its_numbers_where_no_uuid_is_known():
    assert attribute((M, instance("GPU-m", 2, 8)), allocated("m", "MIG-GPU-m/8/0")).containers[1].pod == "m"


def test_a_gpu_is_not_allocated_even_when_one_pod_has_all_of_its_instances():
    found = attribute((M, M7, M8), allocated("m", "MIG-aaaa", "MIG-GPU-m/8/0"))
    assert state_of(M, found) == AllocationState()


def test_a_mig_device_that_cannot_be_found_is_counted_and_changes_no_other_device():
    found = attribute((U1, M, M7), allocated("f1", "GPU-1") + allocated("m1", "MIG-bbbb", resource=MIG))
    assert found.containers == (ExclusiveContainer("team", "f1", "main"), NO_CONTAINER, NO_CONTAINER)
    assert found.unmatched == (("nvidia_com_mig_1g_10gb", "no_such_instance", 1),)
    assert state_of(M7, found).pods is None


def test_devices_of_other_sizes_stay_unallocated_beside_an_unknown_id_of_a_mig_resource():
    other = instance("GPU-m", 2, 3)
    found = attribute((U1, M, M7, other), allocated("m", "strange", resource="nvidia.com/mig-2g.20gb"))
    assert [state.pods for state in found.states] == [0, None, 0, 0]
    found = attribute((U1, M, M7, other), allocated("m", "strange", resource=MIG))
    assert [state.pods for state in found.states] == [0, None, None, None]


def test_compute_instances_that_share_a_gpu_instance_are_attributed_one_by_one():
    found = attribute((M, M1, M1C0, M1C1), allocated("a", "MIG-c0") + allocated("b", "MIG-c1"))
    assert state_of(M1C0, found) == AllocationState(ExclusiveContainer("team", "a", "main"), "exclusive", 1)
    assert state_of(M1C1, found) == AllocationState(ExclusiveContainer("team", "b", "main"), "exclusive", 1)
    assert state_of(M1, found) == AllocationState()
    assert {found.inventory[each.device].ci for each in found.allocations} == {0, 1}


def test_a_gpu_instance_carries_the_pod_that_has_all_of_its_compute_instances():
    found = attribute((M, M1, M1C0, M1C1), allocated("a", "MIG-c0") + allocated("a", "MIG-c1", container="second"))
    assert state_of(M1, found) == AllocationState(ExclusiveContainer("team", "a", ""))


def test_a_gpu_instance_carries_the_pod_of_its_only_allocated_compute_instance():
    found = attribute((M, M1, M1C0, M1C1), allocated("a", "MIG-c0"))
    assert state_of(M1, found) == AllocationState(ExclusiveContainer("team", "a", "main"))
    assert state_of(M1C1, found) == AllocationState(pods=0)


def test_time_slicing_gives_every_pod_an_allocation_and_none_the_labels_of_the_device():
    allocations = [allocation for n in range(4) for allocation in allocated(f"p{n}", f"{UUID}::{n}")]
    answers = set()
    for seed in range(20):
        random.Random(seed).shuffle(allocations)
        answers.add(attribute((U0, U1), tuple(allocations)))
    (found,) = answers
    assert state_of(U0, found) == AllocationState(NO_CONTAINER, "time-slicing", 4)
    assert allocations_of(U0, found) == {(f"p{n}", "main", "time-slicing", 1) for n in range(4)}


def test_a_replica_gives_no_labels_even_while_it_is_the_only_one_allocated():
    # The next pod may come at any time: labels that appear and vanish would cut every series of the device.
    found = attribute((U0,), allocated("only", f"{UUID}::2"))
    assert state_of(U0, found) == AllocationState(NO_CONTAINER, "time-slicing", 1)


def test_replicas_are_shared_by_mps_when_it_is_configured():
    found = attribute((U0,), allocated("p", f"{UUID}::0"), AttributionRules(replicas="mps"))
    assert state_of(U0, found).sharing == "mps"
    assert allocations_of(U0, found) == {("p", "main", "mps", 1)}


def test_replicas_of_a_mig_device_share_that_device():
    found = attribute((M, M7), allocated("a", "MIG-aaaa::0") + allocated("b", "MIG-aaaa::1"))
    assert state_of(M7, found) == AllocationState(NO_CONTAINER, "time-slicing", 2)


def test_replicas_are_counted_per_container_and_pods_once():
    allocations = allocated("p", f"{UUID}::5", f"{UUID}::19", container="c") + allocated(
        "p", f"{UUID}::7", container="d"
    )
    found = attribute((U0,), allocations)
    assert allocations_of(U0, found) == {("p", "c", "time-slicing", 2), ("p", "d", "time-slicing", 1)}
    assert state_of(U0, found).pods == 1


def test_two_containers_of_one_pod_on_one_device_leave_the_container_empty():
    found = attribute((U0,), allocated("p", UUID, container="c") + allocated("p", UUID, container="d"))
    assert state_of(U0, found) == AllocationState(ExclusiveContainer("team", "p", ""), "exclusive", 1)
    assert allocations_of(U0, found) == {("p", "c", "exclusive", 0), ("p", "d", "exclusive", 0)}


def test_two_pods_on_one_exclusive_device_give_no_labels_and_unknown_sharing():
    found = attribute((U0,), allocated("job-1", UUID) + allocated("svc-1", UUID))
    assert state_of(U0, found) == AllocationState(NO_CONTAINER, "unknown", 2)
    assert allocations_of(U0, found) == {("job-1", "main", "unknown", 0), ("svc-1", "main", "unknown", 0)}


def test_pods_of_one_name_in_two_namespaces_are_two():
    found = attribute((U0,), allocated("p", UUID, namespace="a") + allocated("p", UUID, namespace="b"))
    assert state_of(U0, found).pods == 2


def test_a_recreated_pod_of_the_same_name_is_another_where_uids_are_known():
    old = Allocation("team", "db-0", "main", GPU, UUID, pod_uid="1")
    assert state_of(U0, attribute((U0,), (old, old._replace(pod_uid="2")))).pods == 2


def test_a_device_allocated_both_as_a_whole_and_as_a_replica_has_unknown_sharing():
    found = attribute((U0,), allocated("a", UUID) + allocated("b", f"{UUID}::0"))
    assert state_of(U0, found) == AllocationState(NO_CONTAINER, "unknown", 2)


def test_gkes_names_find_gpus_instances_and_replicas():
    found = attribute(
        (U0, U1, M, M7),
        allocated("a", "nvidia0")
        + allocated("b", "nvidia1/vgpu0")
        + allocated("c", "nvidia1/vgpu1")
        + allocated("d", "nvidia2/gi7"),
    )
    assert found.containers == (
        ExclusiveContainer("team", "a", "main"),
        NO_CONTAINER,
        NO_CONTAINER,
        ExclusiveContainer("team", "d", "main"),
    )
    assert state_of(U1, found) == AllocationState(NO_CONTAINER, "time-slicing", 2)


def test_hamis_numbered_shares_are_fractions():
    found = attribute((U0, U1), allocated("a", f"{UUID}-0", f"{UUID}-1") + allocated("b", f"{UUID}-4"))
    assert state_of(U0, found) == AllocationState(NO_CONTAINER, "fraction", 2)
    assert allocations_of(U0, found) == {("a", "main", "fraction", 2), ("b", "main", "fraction", 1)}


def test_a_gpu_passed_through_to_a_virtual_machine_is_allocated_to_its_pod():
    rules = AttributionRules(gpus=gpu_resources(("nvidia.com/GH100",)))
    found = attribute((U0,), allocated("vm", "0000:00:00.0", resource="nvidia.com/GH100"), rules)
    assert state_of(U0, found) == AllocationState(ExclusiveContainer("team", "vm", "main"), "passthrough", 1)


def test_a_resource_named_by_a_configured_prefix_is_attributed():
    rules = AttributionRules(gpus=gpu_resources(("amd.com/*",)))
    found = attribute((U0,), allocated("p", UUID, resource="amd.com/gpu"), rules)
    assert state_of(U0, found) == AllocationState(ExclusiveContainer("team", "p", "main"), "exclusive", 1)
    assert {each.resource for each in found.allocations} == {"amd_com_gpu"}


def test_the_id_of_a_whole_gpu_matches_nothing_while_the_gpu_is_partitioned():
    found = attribute((M, M7, U1), allocated("p", "GPU-m"))
    assert found.unmatched == (("nvidia_com_gpu", "partitioned", 1),)
    assert set(found.containers) == {NO_CONTAINER}
    # Something of that GPU is allocated: none of its MIG devices is certainly unallocated. The other GPU is.
    assert [state.pods for state in found.states] == [None, None, 0]


def test_an_id_of_no_such_gpu_is_counted_and_changes_no_device():
    found = attribute(
        (U0,), allocated("train", f"{UUID}::0") + allocated("infer", f"{UUID}::1") + allocated("odd", "GPU-9::0")
    )
    assert found.unmatched == (("nvidia_com_gpu", "no_such_gpu", 1),)
    assert state_of(U0, found).pods == 2


def test_an_unmatched_id_that_two_pods_have_counts_once():
    found = attribute((U0,), allocated("a", "GPU-9") + allocated("b", "GPU-9", "GPU-8"))
    assert found.unmatched == (("nvidia_com_gpu", "no_such_gpu", 2),)


def test_no_device_is_unallocated_while_an_id_has_an_unknown_form():
    found = attribute((U0, U1), allocated("a", UUID) + allocated("b", "tegra"))
    assert [state.pods for state in found.states] == [1, None]
    assert found.unmatched == (("nvidia_com_gpu", "unknown_form", 1),)


@pytest.mark.parametrize("empty", ["", " ", "::", "::0"])
def test_an_empty_id_is_counted_and_makes_no_gpu_uncertain(empty):
    found = attribute((U0, U1), allocated("a", empty) + allocated("b", UUID))
    assert [state.pods for state in found.states] == [1, 0]
    assert found.unmatched == (("nvidia_com_gpu", "empty", 1),)


def test_other_resources_are_ignored():
    found = attribute(
        (U0,), allocated("nic", "nic0", resource="example.com/nic") + allocated("a", "GPU-0", resource="amd.com/gpu")
    )
    assert found == attribute((U0,), ())


def test_one_device_through_two_resources_is_two_allocations_of_one_pod():
    found = attribute(
        (U0,), allocated("p", f"{UUID}::0") + allocated("p", f"{UUID}::1", resource="nvidia.com/gpu.shared")
    )
    assert {each.resource for each in found.allocations} == {"nvidia_com_gpu", "nvidia_com_gpu_shared"}
    assert state_of(U0, found).pods == 1
