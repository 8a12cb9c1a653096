"""`gpugauge explain`, on recorded objects and on a simulated API server."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from exporter.cli import parse
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.commands.explain.command import report, run
from exporter.commands.explain.sources import FileSource
from exporter.config import ConfigError
from simulators import objects
from simulators.api_server import SimulatedApiServer
from tests.exporter.cluster.fixture import GPUS, NOW

ROOT = Path(__file__).parents[3]
CORPUS = ROOT / "exporter" / "cluster" / "scheduler_corpus"
GOLDEN = ROOT / "golden" / "explain"
EXAMPLES = {
    PendingReason.GATED: ("084-everything-at-once", "gated"),
    PendingReason.QUEUED: ("095-kueue-and-gates", "kueue-pod"),
    PendingReason.GANG: ("071-gang-member-not-created", "p0"),
    PendingReason.NOT_TRIED: ("085-shared-gpus", "lost"),
    PendingReason.INSUFFICIENT_GPU: ("077-three-tainted-and-one-full", "p"),
    PendingReason.INSUFFICIENT_CPU_OR_MEMORY: ("017-free-gpus-without-cpu", "p"),
    PendingReason.INSUFFICIENT_OTHER: ("036-too-many-pods", "p"),
    PendingReason.NODE_SELECTOR_OR_AFFINITY: ("004-selector-no-product", "p"),
    PendingReason.TAINT: ("007-taint-on-all-gpu-nodes", "p"),
    PendingReason.TOPOLOGY: ("032-topology-spread-or-full", "p"),
    PendingReason.VOLUME: ("031-pv-elsewhere", "p"),
    PendingReason.NODE_UNAVAILABLE: ("009-all-cordoned", "p"),
    PendingReason.GPU_UNAVAILABLE: ("022-device-plugin-absent", "p"),
    PendingReason.FRAGMENTATION: ("103-pools", "frag-anywhere"),
    PendingReason.UNSATISFIABLE_SIZE: ("103-pools", "size-in-pool"),
    PendingReason.UNKNOWN_RESOURCE: ("020-mistyped-resource", "p"),
    PendingReason.CLAIM: ("101-dra-more", "held"),
    PendingReason.PREEMPTING: ("037-preempting", "p"),
    PendingReason.SCALING_UP: ("096-autoscaler", "scaled"),
    PendingReason.IMAGE_PULL: ("092-kubelet-waiting-states", "back-off"),
    PendingReason.START_FAILED: ("092-kubelet-waiting-states", "run-error"),
    PendingReason.STARTING: ("092-kubelet-waiting-states", "creating"),
    PendingReason.ADMISSION_FAILED: ("093-kubelet-admission-failures", "out-of-gpu"),
    PendingReason.SCHEDULER_ERROR: ("100-scheduler-errors", "extender-down"),
    PendingReason.OTHER: ("035-host-port", "p"),
}
"""A recorded case and a pod for each reason; no pod of a recorded case has the reason `quota`."""


def listed(path, items):
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    return str(path)


def recorded(tmp_path, name):
    """(file of the objects, when they were recorded)."""
    case = json.loads((CORPUS / f"{name}.json").read_text(encoding="utf-8"))
    items = [each for value in case.values() if isinstance(value, list) for each in value]
    return listed(tmp_path / "objects.json", items), datetime.fromisoformat(case["recorded_at"]).timestamp()


@pytest.mark.parametrize(
    ("reason", "case", "pod"), [(r, *each) for r, each in EXAMPLES.items()], ids=map(str, EXAMPLES)
)
def test_the_explanation_of_each_reason_is_as_recorded(reason, case, pod, tmp_path, golden):
    file, at = recorded(tmp_path, case)
    text = report(FileSource([file]), GPUS, at + 300, f"case-{case[:3]}/{pod}", json=False)
    assert text.startswith(f"case-{case[:3]}/{pod}: {reason}\n")
    golden(text, GOLDEN / f"{reason}.txt")


def test_the_explanation_of_a_quota_is_as_recorded(tmp_path, golden):
    message = "Pod default/p is rejected in PreFilter because ElasticQuota team is more than Max"
    pod = objects.unschedulable(objects.pod("p", created=NOW - 600), message, NOW - 590)
    file = listed(tmp_path / "objects.json", [pod])
    golden(report(FileSource([file]), GPUS, NOW, "p", json=False), GOLDEN / "quota.txt")


def test_every_reason_has_an_example():
    assert {*EXAMPLES, PendingReason.QUOTA} == set(PendingReason)


def test_json_has_the_same_facts(tmp_path):
    file, at = recorded(tmp_path, "103-pools")
    found = json.loads(report(FileSource([file]), GPUS, at, "case-103/frag-in-pool", json=True))
    assert found["reason"] == "fragmentation"
    assert found["requests"] == {"nvidia.com/gpu": 4}
    assert found["nodes"][0] == {"finding": "3 of 4 nvidia.com/gpu free: too few", "names": ["a1", "a2"]}


def test_what_a_terminal_would_act_on_is_not_written(tmp_path):
    hostile = objects.unschedulable(objects.pod("p", created=NOW - 60), "\x1b[31m0/1 nodes\nare available\x07", NOW)
    file = listed(tmp_path / "objects.json", [hostile])
    text = report(FileSource([file]), GPUS, NOW, "p", json=False)
    assert "The scheduler wrote:  [31m0/1 nodes are available " in text
    assert all(line.isprintable() for line in text.splitlines())


def test_of_many_equal_nodes_a_few_are_named(tmp_path):
    nodes = [objects.node(f"n{number}", {"nvidia.com/gpu": 1}, objects.gpu_labels("L4", 1)) for number in range(9)]
    file = listed(tmp_path / "objects.json", [objects.pod("p", requests={"nvidia.com/gpu": 2}), *nodes])
    text = report(FileSource([file]), GPUS, NOW, "p", json=False)
    assert (
        "  9 nodes (n0, n1, n2, n3 and 5 more), each: 1 of 1 nvidia.com/gpu free: too few even when all are free"
        in text
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [("team-a/absent", "team-a/absent is no GPU pod that is known here"), ("runs", "default/runs is not pending")],
)
def test_a_pod_that_is_not_pending_is_one_message(tmp_path, name, message):
    file = listed(tmp_path / "objects.json", [objects.running(objects.pod("runs"), "n1")])
    with pytest.raises(ConfigError, match=message):
        report(FileSource([file]), GPUS, NOW, name, json=False)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"items": 7}', '{"items": [7]}'])
def test_a_file_that_cannot_be_read_is_one_message_that_names_it(tmp_path, text):
    path = tmp_path / "objects.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"objects\.json"):
        FileSource([str(path)])


def test_a_missing_file_is_one_message_that_names_it():
    with pytest.raises(ConfigError, match=r"absent\.json"):
        FileSource(["absent.json"])


@pytest.fixture
def server():
    simulated = SimulatedApiServer()
    simulated.start()
    yield simulated
    simulated.stop()


def test_a_cluster_is_listed_and_what_is_not_served_is_left_out(server):
    server.put("nodes", objects.node("n1", {"nvidia.com/gpu": 2}, objects.gpu_labels("H100", 2)))
    full = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    server.put("pods", objects.unschedulable(objects.pod("p", requests={"nvidia.com/gpu": 4}), full))
    arguments = parse(["explain", "default/p", "--api-server", server.url], {})
    text = run(arguments, lambda: NOW)
    assert text.startswith("default/p: unsatisfiable_size\n")
    assert "1 node (n1): 2 of 2 nvidia.com/gpu free: too few even when all are free" in text


def test_a_cluster_that_cannot_be_reached_is_one_message(server):
    server.stop()
    arguments = parse(["explain", "--api-server", server.url], {})
    with pytest.raises(ConfigError, match="the API server cannot be reached"):
        run(arguments, lambda: NOW)


def test_the_pod_may_stand_before_or_after_the_flags():
    assert parse(["explain", "a/b", "--json"], {}).operands == ("a/b",)
    assert parse(["explain", "--json", "a/b"], {}).operands == ("a/b",)
    assert parse(["explain", "a/b", "--objects", "x", "--objects=y"], {}).objects == ("x", "y")
    assert parse(["explain"], {}).operands == ()
    with pytest.raises(ConfigError, match="explain takes one NAMESPACE/POD or node/NAME, and was given a b"):
        run(parse(["explain", "a", "b"], {}), lambda: NOW)
