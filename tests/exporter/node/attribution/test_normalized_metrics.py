"""The families of normalized values: which labels they have, and under which pod a device's values are."""

from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.matching.attribute import attribute
from exporter.node.attribution.series.normalized_metrics import NormalizedMetrics
from exporter.node.devices.computed.normalized import device_values
from exporter.node.devices.entities.device import Device

ONE, TWO = (Device(f"GPU-{n}", n, f"00000000:0{n}:00.0", n, "NVIDIA H100", mig_enabled=False) for n in (1, 2))
MIB = 1_048_576


def instance(gi, ci=-1):
    ids = (f"MIG-{gi}-{max(ci, 0)}",)
    return Device("GPU-1", 1, ONE.pci_bus_id, 1, "NVIDIA H100", gi, ci, "1g.10gb", ids, mig_enabled=True)


def alone(device_id, *, container="main", pod="train", uid=""):
    return Allocation("team", pod, container, "nvidia.com/gpu", device_id, uid)


def lines(inventory, allocations, by_field, node="n1"):
    """The series and their values, with the labels as they are exposed."""
    attribution = attribute(inventory, allocations)
    metrics = NormalizedMetrics(node)
    families = metrics.families(device_values(metrics.see(attribution), by_field))
    return [f"{family.metric.name}{labels.text} {value}" for family in families for labels, value in family.samples]


POD = 'namespace="team",pod="train",container="{0}",gpu_namespace="team",gpu_pod="train",gpu_container="{0}"'


def test_a_device_and_the_pod_that_it_is_exclusively_allocated_to_have_the_value():
    by_field = {1001: [((0, 1), (0.5, 0.25))], 1004: [((0,), (0.125,))], 252: [((0,), (2,))], 155: [((0,), (300.0,))]}
    pod = f'UUID="GPU-1",{POD.format("main")},gpu_pod_uid="u-1",node="n1"'
    assert lines((ONE, TWO), (alone("GPU-1", uid="u-1"),), by_field) == [
        'gpugauge_device_busy_ratio{UUID="GPU-1",node="n1"} 0.5',
        'gpugauge_device_busy_ratio{UUID="GPU-2",node="n1"} 0.25',
        'gpugauge_device_tensor_active_ratio{UUID="GPU-1",node="n1"} 0.125',
        f'gpugauge_device_memory_used_bytes{{UUID="GPU-1",node="n1"}} {2 * MIB}',
        'gpugauge_gpu_power_watts{UUID="GPU-1",node="n1"} 300.0',
        f"gpugauge_allocation_busy_ratio{{{pod}}} 0.5",
        f"gpugauge_allocation_tensor_active_ratio{{{pod}}} 0.125",
        f"gpugauge_allocation_memory_used_bytes{{{pod}}} {2 * MIB}",
    ]


def test_the_container_is_empty_where_several_of_one_pod_have_the_device():
    both = (alone("GPU-1", container="a"), alone("GPU-1", container="b"))
    assert lines((ONE,), both, {1001: [((0,), (0.5,))]})[1:] == [
        f'gpugauge_allocation_busy_ratio{{UUID="GPU-1",{POD.format("")},node="n1"}} 0.5'
    ]


def test_shared_unallocated_and_unknown_devices_have_no_value_under_a_pod():
    by_field = {1001: [((0,), (0.5,))]}
    shared = (alone("GPU-1::0"), alone("GPU-1::1", pod="other"))
    for allocations in (shared, (), None):
        assert lines((ONE,), allocations, by_field) == ['gpugauge_device_busy_ratio{UUID="GPU-1",node="n1"} 0.5']


def test_a_mig_device_has_its_ids_and_the_quantities_of_its_gpu_none():
    gpu = Device("GPU-1", 1, ONE.pci_bus_id, 1, "NVIDIA H100", mig_enabled=True)
    inventory = (gpu, instance(3), instance(3, 0), instance(3, 1))
    by_field = {1001: [((2, 3), (0.5, 0.25))], 252: [((1,), (2,))], 155: [((0,), (300.0,))]}
    pod, node = POD.format("main"), 'node="n1"'
    assert lines(inventory, (alone("MIG-3-0"), alone("MIG-3-1")), by_field) == [
        'gpugauge_device_busy_ratio{UUID="GPU-1",GPU_I_ID="3",GPU_CI_ID="0",node="n1"} 0.5',
        'gpugauge_device_busy_ratio{UUID="GPU-1",GPU_I_ID="3",GPU_CI_ID="1",node="n1"} 0.25',
        f'gpugauge_device_memory_used_bytes{{UUID="GPU-1",GPU_I_ID="3",node="n1"}} {2 * MIB}',
        'gpugauge_gpu_power_watts{UUID="GPU-1",node="n1"} 300.0',
        f'gpugauge_allocation_busy_ratio{{UUID="GPU-1",GPU_I_ID="3",GPU_CI_ID="0",{pod},{node}}} 0.5',
        f'gpugauge_allocation_busy_ratio{{UUID="GPU-1",GPU_I_ID="3",GPU_CI_ID="1",{pod},{node}}} 0.25',
        f'gpugauge_allocation_memory_used_bytes{{UUID="GPU-1",GPU_I_ID="3",{pod},{node}}} {2 * MIB}',
    ]


def test_labels_are_made_once_and_an_unknown_node_is_left_out():
    attribution = attribute((ONE,), (alone("GPU-1"),))
    metrics = NormalizedMetrics("")
    values = device_values(metrics.see(attribution), {1001: [((0,), (0.5,))]})
    (first, *_), (again, *_) = metrics.families(values), metrics.families(values)
    assert first.samples[0][0] is again.samples[0][0]
    assert first.samples[0][0].text == '{UUID="GPU-1"}'
    metrics.see(attribution)
    assert metrics.families(values)[0].samples[0][0] is first.samples[0][0]
