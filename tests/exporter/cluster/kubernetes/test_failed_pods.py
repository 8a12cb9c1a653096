"""How a GPU pod ended that ran and failed, and that each is counted once."""

import pytest

from exporter.cluster.metrics.pods import failure_family
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.view import view_of
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, exposed, pod
from tests.exporter.cluster.store_views import listed

GPU = "nvidia.com/gpu"


def failed(name="p", reason=None, disruption=None, terminated=None, on="n1"):
    given = objects.running(objects.pod(name, "team-a", {GPU: 1}), on)
    status = given["status"]
    status["phase"] = "Failed"
    if reason:
        status["reason"] = reason
    if disruption:
        status["conditions"].append({"type": "DisruptionTarget", "status": "True", "reason": disruption})
    if terminated:
        status["containerStatuses"] = [{"name": "c", "state": {"terminated": {"reason": terminated}}}]
    return given


@pytest.mark.parametrize(
    ("given", "failure"),
    [
        (failed(), "error"),
        (failed(terminated="Error"), "error"),
        (failed(terminated="OOMKilled"), "oom"),
        (failed(reason="Evicted", disruption="TerminationByKubelet"), "evicted"),
        (failed(reason="Evicted"), "evicted"),
        (failed(disruption="EvictionByEvictionAPI", terminated="Error"), "evicted"),
        (failed(reason="Preempting"), "preempted"),
        (failed(disruption="PreemptionByScheduler", terminated="OOMKilled"), "preempted"),
        (failed(disruption="DeletionByPodGC"), "node_lost"),
        (failed(reason="NodeLost"), "node_lost"),
        (failed(reason="Terminated"), "node_lost"),
        (failed(reason="NodeShutdown"), "node_lost"),
        (failed(reason="SomethingNew"), "error"),
        (failed(reason="UnexpectedAdmissionError"), ""),
        (failed(reason="OutOfnvidia.com/gpu"), ""),
        (objects.running(objects.pod("p", "team-a", {GPU: 1}), "n1"), ""),
    ],
)
def test_a_pod_that_failed_says_how(given, failure):
    assert pod(given).failure == failure


def test_a_failure_is_counted_once_and_those_from_before_the_start_are_not():
    history = ClusterHistory()

    def counts(*pods):
        found = view_of(NOW, GPUS, listed(NOW, pods=pods, nodes=[], namespaces=[]), history)
        assert all(each.phase != "Failed" for each in found.pods)
        return exposed([failure_family(found)])

    assert counts(failed("before")) == {}
    both = 'gpugauge_gpu_pod_failures_total{node="n1",reason="oom"}'
    assert counts(failed("before"), failed("a", terminated="OOMKilled")) == {both: 1}
    assert counts(failed("a", terminated="OOMKilled"), failed("b", terminated="OOMKilled")) == {both: 2}
    assert counts() == {both: 2}
