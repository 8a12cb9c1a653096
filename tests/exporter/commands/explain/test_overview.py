"""`gpugauge explain` without a pod: all pending GPU workloads and the free capacity."""

import json

from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.view import view_of
from exporter.commands.explain.overview import overview
from exporter.commands.explain.sources import FileSource
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW
from tests.exporter.cluster.store_views import listed

GPU = "nvidia.com/gpu"
H100, L4 = (objects.gpu_labels(product, 8) for product in ("NVIDIA-H100-80GB-HBM3", "NVIDIA-L4"))


def text(*, as_json=False, **given):
    view = view_of(NOW, GPUS, listed(NOW, **given), ClusterHistory())
    return overview(FileSource([]), view, None, json=as_json)


def suspended(name, age):
    """A Job that waits in a queue of Kueue and has no pods yet."""
    job = objects.job(name, "team-b", NOW - age)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "main"}
    container = objects.container("main", {GPU: "2"})
    job["spec"] |= {"suspend": True, "template": {"spec": {"containers": [container]}}}
    return job | {"status": {}}


def pods():
    owner = objects.owner("Job", "train", "team-a")
    members = [
        objects.pod(f"train-{number}", "team-a", {GPU: 4}, owner, created=NOW - 7200 - number) for number in range(3)
    ]
    taken = objects.running(objects.pod("runs", requests={GPU: 5}), "h1")
    return [objects.pod("young", created=NOW - 60), *members, taken, objects.pod("cpu", requests={})]


def nodes():
    return [
        objects.node("h1", {GPU: 8}, H100),
        objects.node("h2", {GPU: 8}, H100),
        objects.cordoned(objects.node("h3", {GPU: 8}, H100)),
        objects.node("l1", {GPU: 8, "nvidia.com/mig-1g.10gb": 0}, L4),
        objects.node("cpu"),
    ]


def test_workloads_are_listed_oldest_first_with_the_free_gpus_of_each_model():
    found = text(pods=pods(), nodes=nodes(), jobs=[suspended("waits", 10800)])
    assert found.splitlines() == [
        "Pending GPU workloads:",
        "  WORKLOAD       TYPE  PODS  PENDING FOR  REASON     REQUESTS           OLDEST POD",
        "  team-b/waits   job   0     3 h 0 min    queued     2 nvidia.com/gpu   none yet",
        "  team-a/train   job   3     2 h 0 min    not_tried  12 nvidia.com/gpu  train-2",
        "  default/young  pod   1     1 min        not_tried  1 nvidia.com/gpu   young",
        "",
        "GPUs of the nodes:",
        "  MODEL                  RESOURCE        NODES  ALLOCATABLE  FREE  SCHEDULABLE  LARGEST FREE BLOCK",
        "  NVIDIA-H100-80GB-HBM3  nvidia.com/gpu  3      24           19    11           8",
        "  NVIDIA-L4              nvidia.com/gpu  1      8            8     8            8",
    ]


def test_pods_of_a_workload_with_different_reasons_are_different_rows():
    owner = objects.owner("Job", "train", "team-a")
    one, other = (objects.pod(name, "team-a", owned_by=owner, created=NOW - 600) for name in ("p0", "p1"))
    found = json.loads(text(pods=[one, objects.gated(other, "example.com/wait")], as_json=True))
    assert [(each["reason"], each["pods"]) for each in found["pending"]] == [("gated", ["p1"]), ("not_tried", ["p0"])]


def test_json_has_the_same_facts():
    found = json.loads(text(pods=pods(), nodes=nodes(), as_json=True))
    assert found["pending"][0] == {
        "namespace": "team-a",
        "workload": "train",
        "workload_type": "job",
        "reason": "not_tried",
        "pending_since": "2027-01-15T05:59:58Z",
        "pods": ["train-2", "train-1", "train-0"],
        "requests": {GPU: 12},
    }
    assert found["capacity"][1] == {
        "model": "NVIDIA-L4",
        "resource": GPU,
        "nodes": 1,
        "allocatable": 8,
        "free": 8,
        "schedulable": 8,
        "largest_free_block": 8,
    }


def test_what_is_not_there_or_not_known_is_said():
    assert text(pods=[], nodes=[]) == "No GPU workload is pending.\n\nNo node offers GPUs.\n"
    assert "The nodes are not known, so no free GPUs are shown." in text(pods=[])
    assert json.loads(text(pods=[], as_json=True)) == {"pending": [], "capacity": None, "not_seen": []}


def test_what_a_terminal_would_act_on_is_not_written():
    hostile = objects.pod("p\x1b[31m", "team\r\n", {"nvidia.com/mig-1g\x9b2J": 1}, created=NOW - 60)
    labels = objects.gpu_labels("L4\x1b]0;x\x07\u202e", 1)
    found = text(pods=[hostile], nodes=[objects.node("n1", {GPU: 1}, labels)])
    assert all(line.isprintable() for line in found.split("\n"))
    assert "team  /p [31m" in found
