"""What a real API server of Kubernetes 1.37 answered to a watcher, replayed over HTTP: every pod has its reason.

Each file of `recorded` is a situation, made by `tests/e2e/control_plane/recording.py`: a line that says what is right,
then the answers in the order in which they came. Those with `late` are the lists of a watcher that was started last.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.watching.permissions import WATCHED
from exporter.cluster.pipeline import ClusterPipeline
from exporter.cluster.scheduling.reasons.message import parse
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from simulators.api_server import SimulatedApiServer
from tests.exporter.cluster.fixture import GPUS
from tests.waiting import until

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.jsonl"))
SITUATION = pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)


def read(path):
    """(what is right, the answers to a watcher that was there before, the lists of one that was started last)."""
    head, *answers = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return head, [each for each in answers if "late" not in each], [each for each in answers if "late" in each]


def counted(pipeline, now, what):
    """By reason, the pods or the work that a watcher counts."""
    families = {family.metric.name: family for family in pipeline.collect(now).families}
    found = Counter()
    family = families.get(f"gpugauge_pending_{what}")
    for labels, value in () if family is None else family.samples:
        found[dict(labels.pairs)["reason"]] += int(value)
    return found


def replay(server, answers):
    """Let the server have what is answered."""
    for each in answers:
        kind = each["path"].rpartition("/")[2]
        for given in each.get("items", ()):
            server.put(kind, given)
        if each.get("type") == "DELETED":
            metadata = each["object"]["metadata"]
            server.delete(kind, metadata["name"], metadata.get("namespace", ""))
        elif "type" in each:
            server.put(kind, each["object"])


@pytest.fixture
def server():
    started = SimulatedApiServer()
    for part in WATCHED:
        for name in part.resources:
            started.serve(part.paths(name)[0])
    started.start()
    yield started
    started.stop()


@pytest.fixture
def start(server):
    """Starts watchers that end with the test, and waits until they are ready."""
    running = []

    def started(now):
        running.append(ClusterPipeline(ClusterConfig(api_server=server.url), wall=lambda: now))
        running[-1].start()
        until(running[-1].ready)
        return running[-1]

    yield started
    for each in running:
        each.stop()


@SITUATION
def test_a_watcher_that_is_told_of_every_change_finds_the_reasons(path, server, start):
    head, watched, _ = read(path)
    pipeline = start(head["recorded_at"])
    replay(server, watched)
    right = Counter(head["pods"]), Counter(head["work"])
    until(lambda: tuple(counted(pipeline, head["recorded_at"], what) for what in ("pods", "workloads")) == right, 20)


@pytest.mark.slow
@SITUATION
def test_a_watcher_that_lists_everything_finds_the_reasons(path, server, start):
    head, _, listed = read(path)
    replay(server, listed)
    pipeline = start(head["recorded_at"])
    right = Counter(head["pods"]), Counter(head["work"])
    until(lambda: tuple(counted(pipeline, head["recorded_at"], what) for what in ("pods", "workloads")) == right, 20)


@SITUATION
def test_no_text_of_the_scheduler_is_unknown(path):
    for each in read(path)[1]:
        for condition in each.get("object", {}).get("status", {}).get("conditions", ()):
            if (condition["type"], condition.get("reason")) == ("PodScheduled", "Unschedulable"):
                assert parse(condition["message"], GPUS).unknown == ()


def test_every_reason_was_recorded():
    heads = [read(path)[0] for path in RECORDED]
    assert {reason for head in heads for reason in (*head["pods"], *head["work"])} == {
        str(each) for each in PendingReason
    }
