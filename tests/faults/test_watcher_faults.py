"""Faults of the API server as the watcher sees them: what is known stays exposed until it is too old."""

import math

import pytest

from exporter.backoff import LONGEST_PAUSE
from exporter.cluster.config import STALE_AFTER_SECONDS
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from simulators.objects import job, namespace, node, pod, running
from tests.clock import Clock
from tests.faults.fault import Exposed, Fault, fault
from tests.faults.programs import INTERVAL, watching
from tests.waiting import until

pytestmark = pytest.mark.slow

ALWAYS = 10**6
"""More requests than a test makes."""
LISTED = ("gpugauge_node_gpu_capacity 8", "gpugauge_gpu_pod_info 1")
OBJECTS = ("gpugauge_node_gpu_capacity", "gpugauge_gpu_pod_info", "gpugauge_pending_pods")


def down(reason):
    """The samples while requests to the API server fail."""
    problem = f'gpugauge_source_problem{{source="kubernetes",reason="{reason}"}} 1'
    return 'gpugauge_source_up{source="kubernetes"} 0', problem


@pytest.fixture
def server():
    """An API server with a node of eight GPUs and a pod on it."""
    server = SimulatedApiServer(bookmark_seconds=0.2)
    server.start()
    server.put("namespaces", namespace("team-a"))
    server.put("nodes", node("node-1", {"nvidia.com/gpu": 8}))
    server.put("pods", running(pod("train", "team-a"), "node-1"))
    yield server
    server.stop()


def current(exposed):
    """Whether the API server answers and its objects are exposed."""
    return exposed.value("gpugauge_source_up", source="kubernetes") == 1 and {*OBJECTS[:2]} <= exposed.named(
        "gpugauge_"
    )


@fault(
    name="The API server cannot be reached when the watcher starts",
    shows=down("unreachable"),
    absent=OBJECTS,
    unready="the pods are not listed yet",
    pause=LONGEST_PAUSE,
)
def test_a_watcher_that_starts_without_api_server_is_unready_until_its_first_list(server, row):
    server.stop(keep_port=True)
    with watching(server.url) as get:
        row.wait_until_shown(get)
        server.start()
        row.wait_until_recovered(get, current, INTERVAL)


@fault(
    name="The first list of pods, nodes or namespaces takes long",
    shows=down("connecting"),
    absent=OBJECTS[1:],
    unready="the pods are not listed yet",
)
def test_a_watcher_whose_first_list_has_not_ended_is_unready(server, row):
    server.add_fault(ApiFault("list", "pods", delay=math.inf))
    with watching(server.url) as get:
        row.wait_until_shown(get)
        server.clear_faults()
        row.wait_until_recovered(get, current, INTERVAL)


@fault(
    name="The watcher may not list pods, nodes or namespaces",
    shows=down("forbidden"),
    absent=OBJECTS,
    unready="the pods are not listed yet",
    pause=LONGEST_PAUSE,
)
def test_a_watcher_without_permission_is_unready(server, row):
    server.add_fault(ApiFault("list", times=ALWAYS, status=403))
    with watching(server.url) as get:
        row.wait_until_shown(get)
        server.clear_faults()
        row.wait_until_recovered(get, current, INTERVAL)


@fault(
    name="The watcher may not list objects that are optional, such as Jobs",
    shows=(
        'gpugauge_watch_off{object="jobs",reason="forbidden"} 1',
        'gpugauge_source_up{source="kubernetes"} 1',
        *LISTED,
    ),
    absent=("gpugauge_pending_workload_devices",),
    pause=LONGEST_PAUSE,
)
def test_a_watcher_without_an_optional_permission_is_ready_and_exposes_the_rest(server, row):
    server.serve("/apis/batch/v1/jobs")
    queued = job("queued", "team-a")
    queued["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    queued["spec"] |= {"suspend": True, "template": {"spec": pod("x", "team-a")["spec"]}}
    queued["status"] = {}
    server.put("jobs", queued)
    server.add_fault(ApiFault("list", "jobs", times=ALWAYS, status=403))
    with watching(server.url) as get:
        row.wait_until_shown(get)
        server.clear_faults()
        row.wait_until_recovered(
            get, lambda exposed: "gpugauge_pending_workload_devices" in exposed.named("gpugauge_"), INTERVAL
        )


@fault(
    name=f"The API server is away for less than {STALE_AFTER_SECONDS:.0f} s",
    shows=(*down("unreachable"), *LISTED),
    pause=LONGEST_PAUSE,
)
def test_what_is_known_stays_exposed_while_the_api_server_is_away(server, row):
    with watching(server.url) as get:
        until(lambda: get("/readyz")[0] == 200)
        server.stop(keep_port=True)
        row.wait_until_shown(get)
        server.start()
        row.wait_until_recovered(get, current, INTERVAL)


@fault(
    name="The API server is away for longer",
    shows=down("unreachable"),
    absent=OBJECTS,
    unready=f"the API server has not confirmed the pods for {STALE_AFTER_SECONDS:.0f} s",
    pause=LONGEST_PAUSE,
)
def test_what_is_too_old_is_not_exposed_and_the_watcher_is_unready(server, row):
    clock = Clock()
    with watching(server.url, clock) as get:
        until(lambda: get("/readyz")[0] == 200)
        server.stop(keep_port=True)
        until(lambda: Exposed(get("/metrics")[1]).value("gpugauge_source_up") == 0)  # nothing more is confirmed
        clock.now += STALE_AFTER_SECONDS + 1
        row.wait_until_shown(get)
        server.start()
        row.wait_until_recovered(get, current, INTERVAL)


@fault(
    name="The API server has dropped the history of a watch (410), as after a compaction of etcd",
    shows=('gpugauge_watch_restarts_total{reason="expired"} > 0', *LISTED),
)
def test_an_expired_watch_leads_to_a_new_list(server, row):
    with watching(server.url) as get:
        until(lambda: get("/readyz")[0] == 200)
        server.add_fault(ApiFault("watch", "pods", status=410))
        row.wait_until_shown(get)
        row.wait_until_recovered(get, current, INTERVAL)


@fault(
    *(
        Fault(name, (*down(reason), *LISTED), pause=LONGEST_PAUSE)
        for name, reason in (
            ("The API server is overloaded and rejects requests (429)", "throttled"),
            ("The API server fails (5xx)", "server_error"),
            ("The watcher's credentials are not accepted any more (401)", "unauthorized"),
            ("A proxy answers in place of the API server", "bad_response"),
        )
    )
)
def test_requests_that_fail_while_it_runs_keep_what_is_known(server, row):
    (reason,) = (each for each in FAILURES if f'reason="{each}"' in row.shows[1])
    with watching(server.url) as get:
        until(lambda: get("/readyz")[0] == 200)
        for on in ("watch", "list"):
            server.add_fault(ApiFault(on, times=ALWAYS, **FAILURES[reason]))
        row.wait_until_shown(get)
        server.clear_faults()
        row.wait_until_recovered(get, current, INTERVAL)


FAILURES = {
    "throttled": {"status": 429, "retry_after": 1},
    "server_error": {"status": 503},
    "unauthorized": {"status": 401},
    "bad_response": {"garbage": b"<html>\n"},
}
"""What the API server does, by the reason that it is reported with."""


@fault(
    name="An object cannot be decoded",
    shows=(
        'gpugauge_watch_malformed_objects_total{object="pods"} > 0',
        'gpugauge_source_up{source="kubernetes"} 1',
        *LISTED,
    ),
    recovery="with the next version of the object",
)
def test_an_object_that_cannot_be_decoded_costs_itself(server, row):
    broken = pod("broken", "team-a")
    broken["spec"]["containers"] = "none"
    with watching(server.url) as get:
        until(lambda: get("/readyz")[0] == 200)
        server.put("pods", broken)
        row.wait_until_shown(get)


@fault(
    name="An annotation or a label has a value that gpugauge does not know",
    shows=('gpugauge_overrides_malformed{key="gpugauge.io/low-utilization"} 1', *LISTED),
)
def test_a_malformed_override_is_ignored_and_counted(server, row):
    with watching(server.url) as get:
        server.put("namespaces", namespace("team-a", {"gpugauge.io/low-utilization": "forever"}))
        row.wait_until_shown(get)
        server.put("namespaces", namespace("team-a"))
        name = "gpugauge_overrides_malformed"
        row.wait_until_recovered(get, lambda exposed: not exposed.value(name), INTERVAL)
