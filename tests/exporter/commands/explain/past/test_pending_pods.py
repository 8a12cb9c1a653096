"""Idle GPUs that would fit a pending pod, and how long pods like it waited."""

import json
from pathlib import Path

from exporter.cluster.scheduling.nodes.node_selection import PRODUCT
from simulators import objects
from tests.exporter.cluster.fixture import NOW
from tests.exporter.commands.explain.past.pods import device, explained

GOLDEN = Path(__file__).parents[4] / "golden" / "explain-past"
FULL = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
INFO, IDLE = "gpugauge_device_info", "gpugauge_allocation_info"
COUNT, P50, P95 = "wait_seconds_count", "histogram_quantile(0.5", "histogram_quantile(0.95"


def idle(uuid, pod, node="n1", resource="nvidia_com_gpu"):
    return device(uuid, gpu_namespace="team", gpu_pod=pod, resource=resource) | {"node": node}, 1


ANSWERS = {
    IDLE: [
        idle("GPU-0", "old"),
        idle("GPU-1", "old"),
        idle("GPU-2", "other", "n2"),
        idle("GPU-3", "elsewhere", "n3"),
        idle("GPU-4", "mig", resource="nvidia_com_mig_1g_10gb"),
    ],
    INFO: [({"UUID": f"GPU-{n}", "model": "H100" if n < 2 else "L4"}, 1) for n in range(5)],
    COUNT: [({}, 12)],
    P50: [({}, 300)],
    P95: [({}, 7200)],
}


def cluster(**spec):
    pod = objects.unschedulable(objects.pod("p", requests={"nvidia.com/gpu": 2}, created=NOW - 600), FULL, NOW - 590)
    pod["spec"].update(spec)
    nodes = [objects.node(name, {"nvidia.com/gpu": 4}, objects.gpu_labels("H100", 4)) for name in ("n1", "n2")]
    taken = [
        objects.running(objects.pod(f"full-{n['metadata']['name']}", requests={"nvidia.com/gpu": 4}), name)
        for n in nodes
        for name in [n["metadata"]["name"]]
    ]
    return [pod, *nodes, *taken]


def test_a_pending_pod_is_shown_the_idle_gpus_that_would_fit_it(tmp_path, golden):
    text, _ = explained(tmp_path, cluster(), ANSWERS)
    assert text.startswith("default/p: insufficient_gpu\n")
    golden(text, GOLDEN / "pending.txt")


def test_only_gpus_of_the_model_and_the_nodes_that_the_pod_may_use_count(tmp_path):
    given = cluster(nodeSelector={PRODUCT: "L4"})
    document = json.loads(explained(tmp_path, [given[0]], ANSWERS, "--json")[0])
    assert [(each["node"], each["count"]) for each in document["idle_gpus"]] == [("n2", 1), ("n3", 1)]
    document = json.loads(explained(tmp_path, cluster(), ANSWERS, "--json")[0])
    assert [(each["node"], each["pod"], each["count"]) for each in document["idle_gpus"]] == [
        ("n1", "old", 2), ("n2", "other", 1),
    ]  # fmt: skip


def test_where_few_waited_in_the_namespace_those_of_all_are_shown(tmp_path):
    text, queries = explained(tmp_path, cluster(), {**ANSWERS, COUNT: [({}, 3)]})
    assert "In 7 days, 3 pods of all namespaces with 2-4 nvidia_com_gpu waited: p50 at most 5 min" in text
    assert any('gpu_namespace=~".+"' in each for each in queries)


def test_nothing_known_is_said(tmp_path):
    text, _ = explained(tmp_path, cluster(), {})
    assert "No allocated GPU that would fit it was idle for the last hour." in text
    assert "No pod like it was scheduled in the last 7 days, so no waits are shown." in text
    text, _ = explained(tmp_path, cluster()[:1], ANSWERS)
    assert "The nodes are not known, so it is not checked whether the pod may use them." in text
