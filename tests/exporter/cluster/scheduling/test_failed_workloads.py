"""How many workloads failed on a node within seven days."""

import msgspec

from exporter.cluster.scheduling.keeping.failed_workloads import FailedWorkloads
from simulators import objects
from tests.exporter.cluster.fixture import NOW, pod

DAY = 86400


def _failed(name, node="n1", *, workload="", created=NOW, failure="error"):
    plain = pod(objects.pod(name, "team-a", {"nvidia.com/gpu": 1}, created=created))
    return msgspec.structs.replace(plain, node=node, workload=workload, failure=failure)


def test_pods_of_one_workload_count_once_and_each_node_for_itself():
    history = FailedWorkloads()
    history.update([], NOW)
    pods = [_failed(f"a-{number}", workload="a") for number in range(3)]
    pods += [_failed("b-0", workload="b"), _failed("bare"), _failed("other", node="n2")]
    assert history.update(pods, NOW) == {"n1": 3, "n2": 1}
    assert history.update(pods, NOW + 60) == {"n1": 3, "n2": 1}


def test_they_are_forgotten_after_seven_days_whether_the_pods_are_there_or_not():
    history = FailedWorkloads()
    history.update([], NOW)
    history.update([_failed("a")], NOW)
    assert history.update([], NOW + 7 * DAY) == {"n1": 1}
    assert history.update([], NOW + 7 * DAY + 1) == {}


def test_pods_that_were_there_before_count_from_their_creation():
    pods = [_failed("old", created=NOW - 8 * DAY), _failed("young", created=NOW - 6 * DAY)]
    history = FailedWorkloads()
    assert history.update(pods, NOW) == {"n1": 1}
    assert history.update(pods, NOW + 60) == {"n1": 1}
    assert history.update(pods, NOW + 2 * DAY) == {}


def test_what_is_no_fault_of_a_node_does_not_count():
    found = FailedWorkloads()
    found.update([], NOW)
    pods = [_failed(reason, failure=reason) for reason in ("error", "node_lost", "oom", "evicted", "preempted")]
    assert found.update(pods, NOW) == {"n1": 2}
