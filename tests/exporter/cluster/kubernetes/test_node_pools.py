"""Which NodePools of Karpenter make nodes with GPUs."""

import msgspec
import pytest

from exporter.cluster.kubernetes.converting.node_pools import WireNodePool, node_pool
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.view import view_of
from tests.exporter.cluster.fixture import GPUS, NOW
from tests.exporter.cluster.store_views import listed


def pool(requirements=(), *, taints=(), limits=None):
    spec = {"template": {"spec": {"requirements": list(requirements), "taints": list(taints)}}, "limits": limits}
    return {"metadata": {"name": "p"}, "spec": spec}


def requires(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


CATEGORY = "karpenter.k8s.aws/instance-category"


@pytest.mark.parametrize(
    ("given", "gpus"),
    [
        (pool([requires("karpenter.k8s.aws/instance-gpu-count", "Gt", "0")]), True),
        (pool([requires("karpenter.k8s.aws/instance-gpu-name", "In", "h100")]), True),
        (pool([requires("karpenter.k8s.aws/instance-gpu-count", "In", "0")]), False),
        (pool([requires("karpenter.k8s.aws/instance-gpu-count", "DoesNotExist")]), False),
        (pool([requires("karpenter.azure.com/sku-gpu-count", "Gt", "0")]), True),
        (pool([requires(CATEGORY, "In", "c", "p")]), True),
        (pool([requires(CATEGORY, "In", "c", "m")]), False),
        (pool([requires(CATEGORY, "NotIn", "g")]), False),
        (pool([requires("karpenter.k8s.aws/instance-family", "In", "p5")]), True),
        (pool([requires("node.kubernetes.io/instance-type", "In", "g5.12xlarge")]), True),
        (pool([requires("node.kubernetes.io/instance-type", "In", "Standard_NC24ads_A100_v4")]), True),
        (pool(taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]), True),
        (pool(limits={"cpu": "1000", "nvidia.com/gpu": "64"}), True),
        (pool([requires(CATEGORY, "In", "p")], limits={"nvidia.com/gpu": 0}), False),
        (pool(limits={"cpu": "1000"}), False),
        ({"metadata": {"name": "p"}}, False),
    ],
)
def test_a_pool_makes_gpus_when_its_requirements_taints_or_limits_say_so(given, gpus):
    assert (node_pool(msgspec.convert(given, WireNodePool), GPUS) is not None) is gpus


def test_one_pool_with_gpus_is_enough():
    def view(*pools):
        return view_of(NOW, GPUS, listed(NOW, nodepools=list(pools)), ClusterHistory())

    assert view(pool(limits={"nvidia.com/gpu": "64"})).gpu_pools
    assert not view(pool()).gpu_pools
