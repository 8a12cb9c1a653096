"""Devices that a scheduler chooses or gives out in parts, ids that are indices, and other vendors' devices."""

import pytest

from exporter.gpu_names import ResourcePatterns, gpu_resources
from exporter.node.attribution.matching.attribute import AllocationState, attribute
from exporter.node.attribution.matching.rules import AttributionRules
from exporter.node.devices.series.labels import NO_CONTAINER
from tests.exporter.node.attribution.node_devices import (
    GPU,
    M1,
    M1C0,
    M1C1,
    U0,
    U1,
    UUID,
    M,
    allocated,
    allocations_of,
    state_of,
)


@pytest.mark.parametrize(("resource", "device_id"), [(GPU, f"{UUID}-0"), ("volcano.sh/vgpu-number", f"{UUID}::0")])
def test_no_gpu_is_unallocated_while_a_scheduler_and_not_the_kubelets_ids_choose_gpus(resource, device_id):
    found = attribute((U0, U1), allocated("a", device_id, resource=resource))
    assert [state.pods for state in found.states] == [1, None]
    assert found.unmatched == ()


@pytest.mark.parametrize("namespace", ["kai-resource-reservation", "runai-reservation"])
def test_a_gpu_that_a_reservation_pod_occupies_is_shared_and_its_users_are_unknown(namespace):
    found = attribute((U0, U1), allocated("gpu-reservation-n1-x", UUID, namespace=namespace))
    assert state_of(U0, found) == AllocationState(NO_CONTAINER, "fraction", None)
    assert state_of(U1, found).pods == 0
    assert (found.allocations, found.unmatched) == ((), ())


def test_a_reservation_pod_is_no_user_beside_another_pod():
    found = attribute((U0,), allocated("r", UUID, namespace="runai-reservation") + allocated("a", UUID))
    assert state_of(U0, found) == AllocationState(NO_CONTAINER, "fraction", None)
    assert allocations_of(U0, found) == {("a", "main", "fraction", 0)}


def test_a_gpu_instance_with_a_reserved_compute_instance_carries_no_pod():
    reserved = allocated("r", "MIG-c1", namespace="runai-reservation")
    found = attribute((M, M1, M1C0, M1C1), allocated("a", "MIG-c0") + reserved)
    assert state_of(M1, found) == AllocationState()
    assert state_of(M1C0, found).container.pod == "a"


def test_the_namespaces_of_reservation_pods_are_configured():
    rules = AttributionRules(reservation_namespaces=frozenset({"other"}))
    listed = allocated("a", UUID, namespace="runai-reservation") + allocated("r", "GPU-1", namespace="other")
    assert [state.pods for state in attribute((U0, U1), listed, rules).states] == [1, None]


def test_a_bare_number_makes_every_device_uncertain_unless_it_is_configured_to_be_an_index():
    listed = allocated("a", "1", resource="nvidia.com/gpu")
    assert [state.pods for state in attribute((U0, U1), listed).states] == [None, None]
    rules = AttributionRules(indexed=ResourcePatterns(("nvidia.com/gpu",)))
    assert [state.pods for state in attribute((U0, U1), listed, rules).states] == [0, 1]


def test_a_device_of_another_vendor_is_counted_and_makes_no_gpu_uncertain():
    rules = AttributionRules(gpus=gpu_resources(("amd.com/*",)))
    found = attribute((U0,), allocated("a", "0000:03:00.0", resource="amd.com/gpu"), rules)
    assert found.unmatched == (("amd_com_gpu", "other_vendor", 1),)
    assert state_of(U0, found).pods == 0
