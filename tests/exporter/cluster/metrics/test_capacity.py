"""The largest free block, quotas, and nodes that do not offer their GPUs."""

from dataclasses import replace

import pytest

from exporter.cluster.kubernetes.objects.records import ResourceQuota
from exporter.cluster.metrics.capacity import capacity_families
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.scheduling.nodes.capacity import capacities
from exporter.cluster.view import view_of
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, exposed, view
from tests.exporter.cluster.store_views import listed

GPU = "nvidia.com/gpu"
H100 = objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)
BLOCK = "gpugauge_largest_free_block_devices"
REGISTERED = "gpugauge_node_device_plugin_registered"


def series(given, name):
    return {key: value for key, value in exposed(capacity_families(given)).items() if key.startswith(name)}


def used(name, count, on):
    return objects.running(objects.pod(name, requests={GPU: count}), on)


def test_the_largest_block_is_that_of_one_node_and_not_the_sum():
    nodes = [objects.node(name, {GPU: 8}, H100) for name in ("n1", "n2", "n3")]
    found = series(view([used("a", 5, "n1"), used("b", 6, "n2"), used("c", 8, "n3")], nodes), BLOCK)
    assert list(found.values()) == [3]


def test_a_node_that_takes_no_pods_has_no_block_and_a_full_cluster_has_0():
    nodes = [objects.cordoned(objects.node("n1", {GPU: 8}, H100)), objects.node("n2", {GPU: 8}, H100)]
    assert list(series(view([used("a", 8, "n2")], nodes), BLOCK).values()) == [0]
    assert list(series(view([used("a", 7, "n2")], nodes), BLOCK).values()) == [1]


def test_blocks_are_told_apart_by_resource_and_model():
    nodes = [
        objects.node("n1", {GPU: 8}, H100),
        objects.node("n2", {"nvidia.com/mig-1g.10gb": 7}, objects.gpu_labels("NVIDIA-A100-SXM4-80GB", 1, mig="mixed")),
    ]
    assert sorted(series(view([], nodes), BLOCK).values()) == [7, 8]


def test_a_node_whose_gpus_are_all_unhealthy_has_a_block_of_0_and_no_row_in_the_overview():
    unhealthy = objects.node("n1", {GPU: 8}, H100)
    unhealthy["status"]["allocatable"][GPU] = "0"
    given = view([], [unhealthy])
    assert list(series(given, BLOCK).values()) == [0]
    assert [each.offered for each in capacities(given.gpu_nodes(), given.requested(), {})] == [False]


@pytest.mark.parametrize(("known", "expected"), [({"resourceslices": []}, [0]), ({}, [])])
def test_a_node_that_offers_nothing_lacks_its_plugin_only_where_it_is_known_to_offer_nothing_through_dra(
    known, expected
):
    """Slices that may not be read, or are not listed yet, could be those of the node."""
    stores = listed(NOW, pods=[], nodes=[objects.node("n1", {}, H100)], **known)
    found = view_of(NOW, GPUS, stores, ClusterHistory())
    assert list(series(found, REGISTERED).values()) == expected


def test_an_api_without_dra_has_no_slices_that_could_be_the_nodes():
    stores = tuple(
        replace(store, off="not_served" if store.object == "resourceslices" else "")
        for store in listed(NOW, pods=[], nodes=[objects.node("n1", {}, H100)])
    )
    assert list(series(view_of(NOW, GPUS, stores, ClusterHistory()), REGISTERED).values()) == [0]


def test_there_is_no_block_while_pods_or_nodes_are_unknown():
    nodes = [objects.node("n1", {GPU: 8}, H100)]
    assert series(view(None, nodes), BLOCK) == {}
    assert series(view([], None), BLOCK) == {}


@pytest.mark.parametrize(
    ("labels", "capacity", "expected"),
    [
        (H100, {GPU: 8}, [1]),
        (H100, {}, [0]),
        (H100, {GPU: 0}, [0]),
        ({}, {GPU: 8}, []),
        ({**H100, "nvidia.com/gpu.workload.config": "vm-passthrough"}, {}, []),
        ({**H100, "nvidia.com/gpu.workload.config": "container"}, {}, [0]),
    ],
)
def test_a_node_with_gpus_by_its_labels_offers_them_or_not(labels, capacity, expected):
    assert list(series(view([], [objects.node("n1", capacity, labels)]), REGISTERED).values()) == expected


def test_the_smallest_quota_of_a_namespace_counts():
    quotas = (
        ResourceQuota("team-a", "large", ((GPU, 16),), ((GPU, 3),)),
        ResourceQuota("team-a", "small", ((GPU, 8),), ((GPU, 2),)),
        ResourceQuota("team-b", "one", ((GPU, 4),), ()),
    )
    found = series(replace(view([], []), quotas=quotas), "gpugauge_quota")
    labels = 'namespace="{0}",gpu_namespace="{0}",resource="nvidia_com_gpu"'
    assert found == {
        f"gpugauge_quota_hard{{{labels.format('team-a')}}}": 8,
        f"gpugauge_quota_hard{{{labels.format('team-b')}}}": 4,
        f"gpugauge_quota_used{{{labels.format('team-a')}}}": 3,
    }


def quota(name, hard, used_):
    return {"metadata": {"name": name, "namespace": "team-a"}, "status": {"hard": hard, "used": used_}}


def test_quotas_are_read_for_gpus_alone_and_one_that_cannot_be_read_costs_itself():
    items = [
        quota("gpus", {"requests.nvidia.com/gpu": "8", "requests.cpu": "100m"}, {"requests.nvidia.com/gpu": "2"}),
        quota("cpus", {"requests.cpu": "10", "pods": "5"}, {"pods": "1"}),
        {"metadata": {"name": "new", "namespace": "team-a"}, "spec": {}},
    ]
    found = view_of(NOW, GPUS, listed(NOW, resourcequotas=items), ClusterHistory()).quotas
    assert found == (ResourceQuota("team-a", "gpus", ((GPU, 8),), ((GPU, 2),)),)
