"""What the processes of each container add up to on each device, and what cannot be known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.matching.attribute import PodContainer, attribute
from exporter.node.attribution.matching.rules import AttributionRules
from exporter.node.devices.entities.device import Device
from exporter.node.devices.readings.processes import GpuProcess, GpuProcesses, ProcessReadings
from exporter.node.pods.pod import ContainerKind, NodeContainer, NodePod
from exporter.node.processes.cgroup import ContainerPlace, plain_uid
from exporter.node.processes.known_containers import KnownContainers
from exporter.node.processes.proc_folder import NoContainer
from exporter.node.processes.use import ProcessPlaces, device_uses
from tests.exporter.node.processes.node_files import container_id, uid

UUID = "GPU-0f9bdf1c-2d0a-4c1e-9d34-0a1b2c3d4e5f"
OTHER = "GPU-1f9bdf1c-2d0a-4c1e-9d34-0a1b2c3d4e5f"
GPU, GIB = "nvidia.com/gpu", 1 << 30
INVENTORY = tuple(Device(u, n, f"00000000:0{n}:00.0", n, "NVIDIA A10") for n, u in enumerate((UUID, OTHER)))
MIG = (
    Device(UUID, 0, "00000000:00:00.0", 0, "NVIDIA A100", mig_enabled=True),
    Device(UUID, 0, "00000000:00:00.0", 0, "NVIDIA A100", gi=1, profile="2g.10gb", mig_uuids=("MIG-a", "MIG-b")),
    Device(UUID, 0, "00000000:00:00.0", 0, "NVIDIA A100", gi=1, ci=0, profile="1c.2g.10gb", mig_uuids=("MIG-a",)),
    Device(UUID, 0, "00000000:00:00.0", 0, "NVIDIA A100", gi=1, ci=1, profile="1c.2g.10gb", mig_uuids=("MIG-b",)),
    Device(UUID, 0, "00000000:00:00.0", 0, "NVIDIA A100", gi=5, profile="1g.5gb", mig_uuids=("MIG-c",)),
)
PODS = tuple(
    NodePod("team", name, uid(n), containers=(NodeContainer("main", id=container_id(n)),))
    for n, name in enumerate(("a", "b", "c", "d"))
)
KNOWN = KnownContainers.of_pods(PODS)


def at(pod, container=None):
    return ContainerPlace(plain_uid(uid(pod)), container_id(pod if container is None else container))


def container(pod, name="main"):
    return PodContainer("team", "abcd"[pod], name, uid(pod))


def given_to(*pairs, resource=GPU, name="main"):
    return tuple(Allocation("team", pod, name, resource, device) for pod, device in pairs)


SHARED = given_to(("a", f"{UUID}::0"), ("b", f"{UUID}::1"))


def uses(*processes, places, allocations=SHARED, inventory=INVENTORY, known=KNOWN, complete=True, **more):
    rules = AttributionRules(replicas=more.pop("replicas", "time-slicing"))
    gpus = (GpuProcesses(UUID, processes, **({"sm_known": True} | more)), GpuProcesses(OTHER, sm_known=True))
    attribution = attribute(inventory, allocations, rules)
    return device_uses(ProcessReadings(gpus), ProcessPlaces(places, known, complete), attribution)


def numbers(found):
    return {(use.device, use.container.pod, use.container.name): (use.memory, use.sm) for use in found.pods}


def test_processes_are_added_up_per_container_and_those_of_the_host_apart():
    found = uses(
        GpuProcess(1, memory=2 * GIB, sm=0.25),
        GpuProcess(2, memory=GIB, sm=0.5),
        GpuProcess(3, memory=GIB, sm=0.125),
        GpuProcess(4, memory=7, sm=0.0),
        GpuProcess(5, memory=GIB, sm=0.0),
        places={1: at(0), 2: at(0), 3: at(1), 4: NoContainer.HOST, 5: NoContainer.ENDED},
    )
    assert numbers(found) == {(0, "a", "main"): (3 * GIB, 0.75), (0, "b", "main"): (GIB, 0.125)}
    assert found.unattributed == {0: 7}
    assert found.problems == ()
    assert {use.container.pod_uid for use in found.pods} == {uid(0), uid(1)}


def test_memory_that_is_not_known_of_one_process_is_not_known_of_its_container():
    found = uses(GpuProcess(1, memory=None, sm=0.5), GpuProcess(2, memory=5, sm=0.0), places={1: at(0), 2: at(0)})
    assert numbers(found)[0, "a", "main"] == (None, 0.5)


def test_a_container_without_a_process_uses_nothing_only_where_every_process_is_listed():
    assert numbers(uses(places={})) == {(0, "a", "main"): (0, 0.0), (0, "b", "main"): (0, 0.0)}
    assert numbers(uses(places={}, complete=False)) == {}
    assert numbers(uses(places={}, sm_known=False)) == {(0, "a", "main"): (0, None), (0, "b", "main"): (0, None)}
    assert numbers(uses(places={}, known=KnownContainers.of_pods(PODS[:1]))) == {(0, "a", "main"): (0, 0.0)}


def test_a_container_of_a_pod_with_a_process_of_unknown_container_is_not_said_to_use_nothing():
    found = uses(GpuProcess(1, memory=5, sm=0.0), places={1: at(0, container=99)})
    assert numbers(found) == {(0, "a", ""): (5, 0.0), (0, "b", "main"): (0, 0.0)}


def test_a_process_that_cannot_be_read_could_be_of_any_pod():
    found = uses(GpuProcess(1, memory=5, sm=0.0), GpuProcess(2, memory=5), places={1: at(0), 2: NoContainer.UNREADABLE})
    assert found.pods == ()
    assert found.unattributed == {}
    assert [reason for reason, _ in found.problems] == ["process_unreadable"]


def test_a_process_of_an_unknown_pod_is_in_no_sum():
    found = uses(GpuProcess(1, memory=5, sm=0.0), places={1: at(9)})
    assert numbers(found) == {(0, "a", "main"): (0, 0.0), (0, "b", "main"): (0, 0.0)}
    assert [reason for reason, _ in found.problems] == ["pod_unknown"]


def test_a_gpu_whose_processes_are_not_known_costs_itself():
    gpus = (
        GpuProcesses(UUID, problem=("failed", "return code 999")),
        GpuProcesses(OTHER, (GpuProcess(1, memory=5),)),
    )
    allocations = (*SHARED, *given_to(("c", OTHER)))
    found = device_uses(
        ProcessReadings(gpus), ProcessPlaces({1: at(2)}, KNOWN), attribute(INVENTORY, allocations, AttributionRules())
    )
    assert numbers(found) == {(1, "c", "main"): (5, None)}
    assert found.problems == (("failed", "return code 999"),)


def unallocated(found):
    return {(use.device, use.container.pod) for use in found.pods if use.unallocated}


def test_a_process_on_a_device_of_other_pods_is_an_unallocated_use():
    processes, places = (GpuProcess(1, memory=5), GpuProcess(3, memory=5)), {1: at(0), 3: at(2)}
    assert unallocated(uses(*processes, places=places)) == {(0, "c")}
    assert unallocated(uses(*processes, places=places, allocations=())) == {(0, "a"), (0, "c")}


@pytest.mark.parametrize(
    "allocations",
    [None, given_to(("a", f"{UUID}-3")), given_to(("a", "what-is-this")), (*SHARED, *given_to(("c", "what-is-this")))],
    ids=["unknown", "hami", "id that may mean it", "id that may mean it too"],
)
def test_where_the_allocation_is_not_known_no_use_is_called_unallocated(allocations):
    assert unallocated(uses(GpuProcess(3, memory=5), places={3: at(2)}, allocations=allocations)) == set()


def test_on_a_gpu_of_a_reservation_pod_no_use_is_called_unallocated():
    reserved = (Allocation("kai-resource-reservation", "r", "main", GPU, UUID),)
    assert unallocated(uses(GpuProcess(3, memory=5), places={3: at(2)}, allocations=reserved)) == set()


def test_an_init_container_is_not_listed_by_the_kubelet_and_never_unallocated():
    init = NodePod("team", "c", uid(2), containers=(NodeContainer("init", ContainerKind.INIT, container_id(2)),))
    found = uses(GpuProcess(3, memory=5), places={3: at(2)}, known=KnownContainers.of_pods((*PODS[:2], init)))
    assert numbers(found)[0, "c", "init"] == (5, 0.0)
    assert unallocated(found) == set()


def test_a_static_pod_is_found_by_the_uid_of_its_control_groups():
    static = NodePod(
        "kube-system", "s", uid(2), cgroup_uid="c" * 32, containers=(NodeContainer("m", id=container_id(2)),)
    )
    place = ContainerPlace("c" * 32, container_id(2))
    found = uses(GpuProcess(3, memory=5), places={3: place}, known=KnownContainers.of_pods((static,)))
    assert found.pods[0].container == PodContainer("kube-system", "s", "m", uid(2))


def test_a_container_without_a_process_has_the_uid_of_its_pod_unless_two_pods_had_its_name():
    static = NodePod("team", "a", uid(0), cgroup_uid="c" * 32, containers=(NodeContainer("main"),))
    found = uses(places={}, known=KnownContainers.of_pods((static,)))
    assert [use.container.pod_uid for use in found.pods] == [uid(0)]
    again = NodePod("team", "a", uid(7), containers=(NodeContainer("main"),))
    found = uses(places={}, known=KnownContainers.of_pods((static, again)))
    assert [use.container.pod_uid for use in found.pods] == [""]


def test_under_mig_each_process_belongs_to_its_instance():
    allocations = given_to(("a", "MIG-a"), ("b", "MIG-b"), ("c", "MIG-c"), resource="nvidia.com/mig-1g.5gb")
    found = uses(
        GpuProcess(1, 1, 0, 10),
        GpuProcess(2, 1, 1, 20),
        GpuProcess(3, 5, 0, 30),
        GpuProcess(4, 9, 0, 40),
        places={1: at(0), 2: at(1), 3: at(2), 4: at(3)},
        allocations=allocations,
        inventory=MIG,
        sm_known=False,
    )
    expected = {(2, "a", "main"): (10, None), (3, "b", "main"): (20, None), (4, "c", "main"): (30, None)}
    assert numbers(found) == expected
    assert unallocated(found) == set()
    moved = uses(GpuProcess(3, 1, 0, 30), places={3: at(2)}, allocations=allocations, inventory=MIG, sm_known=False)
    assert unallocated(moved) == {(2, "c")}


def test_under_mps_there_is_no_utilization_and_nobody_is_said_to_use_nothing():
    process = GpuProcess(1, memory=5, sm=0.5)
    assert numbers(uses(process, places={1: at(0)}, replicas="mps")) == {(0, "a", "main"): (5, None)}
    client = GpuProcess(1, memory=5, sm=0.5, mps=True)
    assert numbers(uses(client, places={1: at(0)})) == {(0, "a", "main"): (5, None)}


PLACES = st.sampled_from([at(0), at(1), at(2), at(3), at(9), at(0, 77), NoContainer.HOST, NoContainer.ENDED])
MEMORY = st.one_of(st.none(), st.integers(0, GIB))
SHARES = st.floats(0, 1)


@given(st.lists(st.tuples(PLACES, MEMORY, SHARES), max_size=12))
def test_no_byte_is_counted_twice_and_each_container_once(rows):
    processes = [GpuProcess(pid, memory=memory, sm=sm) for pid, (_, memory, sm) in enumerate(rows)]
    found = uses(*processes, places={pid: place for pid, (place, _, _) in enumerate(rows)})
    keys = [(use.device, use.container) for use in found.pods]
    assert len(keys) == len(set(keys))
    counted = sum(use.memory or 0 for use in found.pods) + sum(found.unattributed.values())
    assert counted <= sum(memory or 0 for _, memory, _ in rows)
    assert all(0 <= use.sm <= 1 for use in found.pods if use.sm is not None)


def test_what_another_pod_says_of_its_control_groups_or_containers_changes_nothing():
    victim, bad = (
        PODS[0],
        NodePod("evil", "x", uid(3), plain_uid(uid(0)), containers=(NodeContainer("y", id=container_id(0)),)),
    )
    for pods in ((victim, bad), (bad, victim)):
        found = uses(GpuProcess(1, memory=5, sm=0.0), places={1: at(0)}, known=KnownContainers.of_pods(pods))
        assert numbers(found) == {(0, "a", "main"): (5, 0.0)}
