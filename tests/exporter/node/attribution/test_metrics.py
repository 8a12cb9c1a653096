"""The metrics of attribution, as their sample lines are exposed."""

from hypothesis import given
from hypothesis import strategies as st

from exporter.gpu_names import ResourcePatterns
from exporter.metric import Kind
from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.matching.attribute import attribute
from exporter.node.attribution.matching.rules import AttributionRules
from exporter.node.attribution.series.metrics import (
    ALLOCATED_PODS,
    INFO,
    METRICS,
    AttributionCache,
    allocation_families,
)
from exporter.node.devices.entities.device import Device

GPU = "nvidia.com/gpu"
U0 = Device("GPU-0", 0, "00000000:07:00.0", 0, "NVIDIA H100", mig_enabled=False)
U1 = Device("GPU-1", 1, "00000000:08:00.0", 1, "NVIDIA H100", mig_enabled=False)
M = Device("GPU-m", 2, "00000000:09:00.0", 2, "NVIDIA H100", mig_enabled=True)
M7 = Device("GPU-m", 2, "00000000:09:00.0", 2, "NVIDIA H100", 7, -1, "1g.10gb", ("MIG-a",))
M1 = Device("GPU-m", 2, "00000000:09:00.0", 2, "NVIDIA H100", 1, -1, "2g.20gb", ("MIG-c0", "MIG-c1"))
M1C0 = Device("GPU-m", 2, "00000000:09:00.0", 2, "NVIDIA H100", 1, 0, "1c.2g.20gb", ("MIG-c0",))
M1C1 = Device("GPU-m", 2, "00000000:09:00.0", 2, "NVIDIA H100", 1, 1, "1c.2g.20gb", ("MIG-c1",))


def allocated(pod, *ids, container="main", resource=GPU, uid=""):
    return tuple(Allocation("team", pod, container, resource, device_id, uid) for device_id in ids)


def sample_lines(inventory, allocations, node="node-1"):
    """The samples as lines, in order."""
    families = allocation_families(attribute(inventory, allocations), node)
    return [f"{family.metric.name}{labels.text} {value}" for family in families for labels, value in family.samples]


def test_an_allocated_and_an_unallocated_gpu():
    assert sample_lines((U0, U1), allocated("train", "GPU-0")) == [
        (
            'gpugauge_allocation_info{gpu="0",UUID="GPU-0",namespace="team",pod="train",container="main",'
            'gpu_namespace="team",gpu_pod="train",gpu_container="main",'
            'resource="nvidia_com_gpu",sharing="exclusive",node="node-1"} 1'
        ),
        'gpugauge_device_allocated_pods{gpu="0",UUID="GPU-0",node="node-1"} 1',
        'gpugauge_device_allocated_pods{gpu="1",UUID="GPU-1",node="node-1"} 0',
    ]


def test_a_mig_device_has_its_id_and_profile_and_its_gpu_has_no_series():
    assert sample_lines((M, M7), allocated("m", "MIG-a", resource="nvidia.com/mig-1g.10gb")) == [
        (
            'gpugauge_allocation_info{gpu="2",UUID="GPU-m",GPU_I_ID="7",GPU_I_PROFILE="1g.10gb",'
            'namespace="team",pod="m",container="main",gpu_namespace="team",gpu_pod="m",gpu_container="main",'
            'resource="nvidia_com_mig_1g_10gb",sharing="exclusive",node="node-1"} 1'
        ),
        'gpugauge_device_allocated_pods{gpu="2",UUID="GPU-m",GPU_I_ID="7",node="node-1"} 1',
    ]


def test_compute_instances_that_share_a_gpu_instance_have_both_ids():
    lines = sample_lines((M, M1, M1C0, M1C1), allocated("a", "MIG-c0"))
    assert lines[0].startswith(
        'gpugauge_allocation_info{gpu="2",UUID="GPU-m",GPU_I_ID="1",GPU_CI_ID="0",GPU_I_PROFILE="1c.2g.20gb",'
    )
    assert lines[1:] == [
        'gpugauge_device_allocated_pods{gpu="2",UUID="GPU-m",GPU_I_ID="1",GPU_CI_ID="0",node="node-1"} 1',
        'gpugauge_device_allocated_pods{gpu="2",UUID="GPU-m",GPU_I_ID="1",GPU_CI_ID="1",node="node-1"} 0',
    ]


def test_a_pod_with_replicas_in_two_containers_has_one_series_per_container():
    both = allocated("p", "GPU-0::5", "GPU-0::19", container="c") + allocated("p", "GPU-0::7", container="d")
    pod = 'namespace="team",pod="p",container="{0}",gpu_namespace="team",gpu_pod="p",gpu_container="{0}"'
    assert [line for line in sample_lines((U0,), both) if "_info" not in line] == [
        f'gpugauge_allocation_replicas{{UUID="GPU-0",{pod.format("c")},node="node-1"}} 2',
        f'gpugauge_allocation_replicas{{UUID="GPU-0",{pod.format("d")},node="node-1"}} 1',
        'gpugauge_device_allocated_pods{gpu="0",UUID="GPU-0",node="node-1"} 1',
    ]


def test_replicas_through_two_resources_add_up():
    both = allocated("p", "GPU-0::0") + allocated("p", "GPU-0::1", resource="nvidia.com/gpu.shared")
    (replicas,) = [line for line in sample_lines((U0,), both) if "_replicas" in line]
    assert replicas.endswith(" 2")


def test_ids_without_a_device_are_counted_by_resource_and_reason():
    lines = sample_lines((U0,), allocated("a", "GPU-8", "GPU-9", "tegra"))
    assert lines == [
        'gpugauge_unmatched_device_ids{resource="nvidia_com_gpu",reason="no_such_gpu",node="node-1"} 2',
        'gpugauge_unmatched_device_ids{resource="nvidia_com_gpu",reason="unknown_form",node="node-1"} 1',
    ]


def test_devices_with_contradicting_allocations_are_counted():
    two_pods = allocated("job-1", "GPU-0") + allocated("svc-1", "GPU-0")
    whole_and_replica = allocated("c", "GPU-1") + allocated("d", "GPU-1::0")
    name = "gpugauge_devices_with_conflicting_allocations"
    assert sample_lines((U0, U1), two_pods + whole_and_replica)[-1] == name + '{node="node-1"} 2'
    assert not any(
        name in line for line in sample_lines((U0, U1), allocated("a", "GPU-0") + allocated("b", "GPU-1::0"))
    )


def test_nothing_is_exposed_while_the_allocations_are_unknown():
    assert sample_lines((U0, U1), None) == []


def test_an_unknown_node_name_is_left_out():
    assert sample_lines((U1,), (), node="") == ['gpugauge_device_allocated_pods{gpu="1",UUID="GPU-1"} 0']


def test_a_pods_uid_is_a_label_where_it_is_known():
    assert not any("gpu_pod_uid" in line for line in sample_lines((U0,), allocated("p", "GPU-0::0")))
    replicas = sample_lines((U0,), allocated("p", "GPU-0::0", uid="4711"))[1]
    assert 'gpu_container="main",gpu_pod_uid="4711",node=' in replicas
    (line, _) = sample_lines((U0,), allocated("p", "GPU-0", uid="4711"))
    assert 'gpu_container="main",gpu_pod_uid="4711",resource=' in line


def test_the_metrics_have_the_names_and_the_kind_of_the_contract():
    assert [metric.name for metric in METRICS] == [
        "gpugauge_allocation_info",
        "gpugauge_allocation_replicas",
        "gpugauge_device_allocated_pods",
        "gpugauge_unmatched_device_ids",
        "gpugauge_devices_with_conflicting_allocations",
    ]
    assert {metric.kind for metric in METRICS} == {Kind.GAUGE}
    assert all(metric.help.endswith(".") for metric in METRICS)


def test_the_same_devices_and_allocations_give_the_same_objects_again():
    cache = AttributionCache("node-1")
    attribution, families = cache.get((U0, U1), allocated("a", "GPU-0"))
    # Equal, not identical: every collection decodes its own.
    again = cache.get((Device(*(getattr(U0, name) for name in U0.__struct_fields__)), U1), allocated("a", "GPU-0"))
    assert again[0] is attribution
    assert again[1] is families


def test_a_change_of_devices_or_allocations_is_attributed_at_once():
    cache = AttributionCache("node-1")
    results = [
        cache.get(inventory, allocations)
        for inventory, allocations in [
            ((U0,), ()),
            ((U0,), allocated("a", "GPU-0")),
            ((U0,), allocated("b", "GPU-0")),
            ((U0, U1), allocated("b", "GPU-0")),
            ((U0, U1), None),
            ((U0, U1), allocated("b", "GPU-0")),
        ]
    ]
    assert [attribution.containers[0].pod for attribution, _ in results] == ["", "a", "b", "b", "", "b"]
    assert results[4][1] == ()
    assert results[5] == results[3]


def test_the_cache_attributes_by_its_rules():
    cache = AttributionCache("node-1", AttributionRules(replicas="mps"))
    attribution, _ = cache.get((U0,), allocated("a", "GPU-0::1"))
    assert attribution.states[0].sharing == "mps"


names = st.text(max_size=6)
ids = st.sampled_from(
    ["GPU-0", "GPU-0::0", "GPU-0::1", "GPU-1", "MIG-a", "MIG-a::3", "MIG-c0", "MIG-c1", "GPU-m", "all"]
)
resources = st.sampled_from([GPU, "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g-10gb"])


@given(st.lists(st.builds(Allocation, names, names, names, resources, ids, st.sampled_from(["", "u"])), max_size=10))
def test_no_series_appears_twice_and_each_has_the_labels_of_its_metric_in_their_order(allocations):
    inventory = (U0, U1, M, M7, M1, M1C0, M1C1)
    for family in allocation_families(attribute(inventory, tuple(allocations)), "n"):
        texts = [labels.text for labels, _ in family.samples]
        assert len(texts) == len(set(texts))
        for labels, value in family.samples:
            present = [name for name, _ in labels.pairs]
            assert present == [name for name in family.metric.schema.names if name in present]
            assert value >= (0 if family.metric is ALLOCATED_PODS else 1)
            assert family.metric is not INFO or value == 1


def test_a_gpu_that_is_lost_or_back_changes_the_attribution_at_once():
    cache = AttributionCache("node-1", AttributionRules(indexed=ResourcePatterns((GPU,))))
    same_index = Device("GPU-9", U0.index, "00000000:99:00.0", 9, "NVIDIA H100", mig_enabled=False)
    pods = [
        [container.pod for container in cache.get((U0, same_index), allocated("a", str(U0.index)), down)[0].containers]
        for down in (("GPU-0",), ("GPU-9",), ("GPU-0",))
    ]
    assert pods == [["", "a"], ["a", ""], ["", "a"]]
