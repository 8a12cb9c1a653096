"""Free GPUs that cannot be used, because their node lacks CPUs, memory or places for pods."""

import pytest

from exporter.cluster.metrics.capacity import capacity_families
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.view import view_of
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, exposed
from tests.exporter.cluster.store_views import listed

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"


def node(cpu="64", memory="512Gi", pods="110", **gpus):
    given = objects.node("n1", gpus or {GPU: 8}, objects.gpu_labels("H100", 8))
    given["status"]["allocatable"] |= {"cpu": cpu, "memory": memory, "pods": pods}
    return given


def on_node(name, cpu="1", memory="1Gi", gpus=None, phase="Running"):
    given = objects.running(objects.pod(name, "team-a", gpus or {}), "n1")
    given["spec"]["containers"][0]["resources"]["requests"] |= {"cpu": cpu, "memory": memory}
    given["status"]["phase"] = phase
    return given


def stranded(given_node, *pods):
    view = view_of(NOW, GPUS, listed(NOW, pods=list(pods), nodes=[given_node], namespaces=[]), ClusterHistory())
    series = exposed([each for each in capacity_families(view) if each.metric.name == "gpugauge_node_gpu_stranded"])
    return {tuple(key.split(chr(34))[3::2]): value for key, value in series.items()}


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ({"cpu": "48"}, {}),
        ({"cpu": "49"}, {("nvidia_com_gpu", "cpu"): 1}),
        ({"cpu": "64"}, {("nvidia_com_gpu", "cpu"): 8}),
        ({"cpu": "63500m"}, {("nvidia_com_gpu", "cpu"): 8}),
        ({"cpu": "80"}, {("nvidia_com_gpu", "cpu"): 8}),
        ({"memory": "448Gi"}, {}),
        ({"memory": "460Gi"}, {("nvidia_com_gpu", "memory"): 2}),
        ({"cpu": "60", "memory": "511Gi"}, {("nvidia_com_gpu", "memory"): 8}),
        ({"cpu": "not a quantity", "memory": "-1Gi"}, {}),
    ],
)
def test_what_pods_without_gpus_take_strands_free_gpus(taken, expected):
    assert stranded(node(), on_node("web", **taken)) == expected


def test_only_free_gpus_can_be_stranded():
    web = on_node("web", cpu="56")
    assert stranded(node(), web, on_node("a", "8", "8Gi", {GPU: 8})) == {}
    assert stranded(node(), web, on_node("a", "7", "8Gi", {GPU: 3})) == {("nvidia_com_gpu", "cpu"): 5}


def test_without_a_place_for_a_pod_every_free_gpu_is_stranded():
    pods = [on_node(f"web-{number}", "0", "0") for number in range(10)]
    assert stranded(node(pods="10"), *pods) == {("nvidia_com_gpu", "pods"): 8}
    assert stranded(node(pods="12"), *pods) == {("nvidia_com_gpu", "pods"): 6}


def test_a_mig_device_needs_less_than_a_whole_gpu():
    assert stranded(node(**{MIG: 7}), on_node("web", cpu="62")) == {("nvidia_com_mig_1g_10gb", "cpu"): 3}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_takes_nothing(phase):
    assert stranded(node(), on_node("web", cpu="64", phase=phase)) == {}


def test_sidecars_add_up_an_init_container_runs_alone_and_overhead_counts():
    pod = on_node("web", cpu="10")
    once = {"name": "once", "resources": {"requests": {"cpu": "40"}}}
    sidecar = {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "8"}}}
    pod["spec"]["initContainers"] = [sidecar, once]
    assert stranded(node(), pod) == {}
    pod["spec"]["overhead"] = {"cpu": "1"}
    assert stranded(node(), pod) == {("nvidia_com_gpu", "cpu"): 1}


def test_requests_of_the_pod_as_a_whole_take_the_place_of_its_containers():
    pod = on_node("web", cpu="64")
    pod["spec"]["resources"] = {"requests": {"cpu": "10"}}
    assert stranded(node(), pod) == {}


def test_what_a_node_does_not_state_blocks_nothing():
    given = node()
    given["status"]["allocatable"] = {GPU: "8"}
    assert stranded(given, on_node("web", cpu="64")) == {}
