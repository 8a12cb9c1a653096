"""The real client against the simulated API server: what is exposed stays true whatever the server does."""

import itertools
import json
import logging
import math
import threading
import time
import urllib.request

import pytest

from exporter import VERSION
from exporter.backoff import FIRST_PAUSE
from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.api import open_api
from exporter.cluster.kubernetes.kinds import object_kinds
from exporter.cluster.kubernetes.reflector import Reflector
from exporter.cluster.kubernetes.store import ObjectStore
from exporter.cluster.pipeline import ClusterPipeline
from simulators import objects
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import KINDS, ApiFault
from tests.clock import Clock
from tests.exporter.cluster.fixture import GPUS
from tests.waiting import until

GPU = "nvidia.com/gpu"
SINCE = "gpugauge_pending_pod_since_timestamp_seconds"
STALE = ClusterConfig().stale_after + 1


@pytest.fixture
def serve():
    """Starts simulated API servers that end with the test."""
    started = []

    def start(**options):
        simulated = SimulatedApiServer(**options)
        started.append(simulated)
        simulated.start()
        return simulated

    yield start
    for simulated in started:
        simulated.stop()


@pytest.fixture
def server(serve):
    return serve(bookmark_seconds=0.2)


class ExpiringList:
    """Opens clients; once, between two pages of pods, pods come and go and the API server forgets its history."""

    def __init__(self, server):
        self.server, self._expired = server, False

    def opened(self, config):
        api = open_api(config)
        requested = api.page

        def page(path, query):
            if path.endswith("/pods") and "continue" in query and not self._expired:
                self._expired = True
                self.server.delete("pods", "p0", "team-a")
                self.server.put("pods", objects.pod("late", "team-a"))
                self.server.expire()
            return requested(path, query)

        api.page = page
        return api


def reflector_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("reflector-")]


@pytest.fixture
def started():
    """Starts pipelines that end with the test."""
    running = []

    def start(config, **options):
        pipeline = ClusterPipeline(config, **options)
        running.append(pipeline)
        pipeline.start()
        assert len(reflector_threads()) >= 1
        return pipeline

    yield start
    for pipeline in running:
        pipeline.stop()
    until(lambda: not reflector_threads())


def series(pipeline):
    return {
        family.metric.name + labels.text: value
        for family in pipeline.collect(time.time()).families
        for labels, value in family.samples
    }


def labels_of(pipeline, name):
    families = pipeline.collect(time.time()).families
    return [labels for family in families if family.metric.name == name for labels, _ in family.samples]


def pods_of(pipeline):
    """The names of the GPU pods that are exposed."""
    return {dict(labels.pairs)["gpu_pod"] for labels in labels_of(pipeline, "gpugauge_gpu_pod_info")}


def health(pipeline):
    return pipeline.collect(time.time()).health[0]


def restarts(pipeline, reason, kind="pods"):
    return series(pipeline)[f'gpugauge_watch_restarts_total{{object="{kind}",reason="{reason}"}}']


def lists(server, kind="pods"):
    return [request for request in server.requests if request.kind == kind and not request.watch]


def watches(server, kind="pods"):
    return [request for request in server.requests if request.kind == kind and request.watch]


def watched(server):
    """Whether every kind has had a watch."""
    return all(watches(server, kind) for kind in KINDS)


def fill(server, count=3):
    server.put("namespaces", objects.namespace("team-a"))
    server.put("nodes", objects.node("n1", {GPU: 8}, objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)))
    for number in range(count):
        server.put("pods", objects.pod(f"p{number}", "team-a"))
    return {f"p{number}" for number in range(count)}


def config_of(server, **options):
    return ClusterConfig(api_server=server.url, **options)


def test_a_long_list_is_read_page_by_page(server, started):
    expected = fill(server, 25)
    server.put("pods", objects.pod("cpu-only", "team-a", requests={}))
    pipeline = started(config_of(server, page_size=4))
    until(pipeline.ready)
    assert pods_of(pipeline) == expected
    pages = lists(server)
    assert len(pages) == 7
    assert {request.query["limit"] for request in pages} == {"4"}
    assert all("resourceVersion" not in request.query for request in pages)


def test_a_large_page_comes_compressed_and_is_read_whole(server, started):
    expected = fill(server, 300)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    assert pods_of(pipeline) == expected
    page = urllib.request.Request(f"{server.url}/api/v1/pods?limit=500", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(page) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"


def test_a_watch_begins_where_the_list_ended_and_requests_bookmarks(server, started):
    fill(server)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    watch = until(lambda: watches(server))[0]
    assert watch.query["allowWatchBookmarks"] == "true"
    assert 60 <= int(watch.query["timeoutSeconds"]) <= 90
    assert watch.query["fieldSelector"] == "status.phase!=Succeeded"
    assert int(watch.query["resourceVersion"]) > 1


def test_changes_arrive_through_the_watch(server, started):
    expected = fill(server)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    server.put("pods", objects.pod("late", "team-a"))
    until(lambda: pods_of(pipeline) == expected | {"late"})
    server.put("pods", objects.running(objects.pod("p0", "team-a"), "n1"))
    free = 'gpugauge_node_gpu_free{node="n1",resource="nvidia_com_gpu",model="NVIDIA-H100-80GB-HBM3"}'
    until(lambda: series(pipeline)[free] == 7)
    server.delete("pods", "late", "team-a")
    until(lambda: pods_of(pipeline) == expected)
    server.delete("nodes", "n1")
    until(lambda: free not in series(pipeline))
    assert len(lists(server)) == len(lists(server, "nodes")) == 1


def test_a_pod_that_finishes_is_no_longer_exposed(server, started):
    fill(server)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    done = objects.running(objects.pod("p0", "team-a"), "n1")
    done["status"]["phase"] = "Succeeded"
    server.put("pods", done)
    until(lambda: pods_of(pipeline) == {"p1", "p2"})


def test_a_pod_is_pending_since_its_scheduling_gate_was_removed_also_after_a_new_list(server, started):
    gated = objects.gated(objects.pod("g", "team-a", created=time.time() - 5000), "example.com/wait")
    fill(server, 0)
    server.put("pods", gated)
    pipeline = started(config_of(server, tracked_after=-1.0))
    until(pipeline.ready)
    assert not labels_of(pipeline, SINCE)
    removed_at = time.time()
    gated["spec"]["schedulingGates"] = []
    server.put("pods", gated)
    since = until(lambda: [value for key, value in series(pipeline).items() if key.startswith(SINCE)])
    assert removed_at <= since[0] <= time.time()
    server.expire()
    until(lambda: restarts(pipeline, "expired"))
    until(lambda: health(pipeline).up)
    assert [value for key, value in series(pipeline).items() if key.startswith(SINCE)] == since


def test_a_watch_that_ends_is_resumed_without_a_new_list(server, started):
    expected = fill(server)
    pipeline = started(config_of(server, watch_seconds=1.5))
    until(pipeline.ready)
    until(lambda: len(watches(server)) >= 3)
    assert len(lists(server)) == 1
    versions = [int(watch.query["resourceVersion"]) for watch in watches(server)]
    assert versions == sorted(versions)
    assert pods_of(pipeline) == expected
    assert not any(value for key, value in series(pipeline).items() if "restarts" in key)


def test_an_expired_version_leads_to_a_new_list(server, started):
    expected = fill(server)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    server.expire()
    server.put("pods", objects.pod("new", "team-a"))
    until(lambda: restarts(pipeline, "expired") == 1)
    until(lambda: pods_of(pipeline) == expected | {"new"})
    until(lambda: health(pipeline).up)


def test_a_watch_answered_with_410_leads_to_a_new_list(server, started):
    fill(server)
    server.add_fault(ApiFault("watch", "pods", status=410))
    pipeline = started(config_of(server))
    until(lambda: restarts(pipeline, "expired") == 1)
    until(lambda: len(lists(server)) == 2)


def test_after_an_expired_version_objects_are_listed_at_once_whatever_failed_before(server):
    fill(server)
    server.add_fault(ApiFault("watch", "pods", times=2, status=403))
    server.add_fault(ApiFault("watch", "pods", status=410))
    config = config_of(server)
    store = ObjectStore("pods", time.time, time.monotonic)
    reflector = Reflector(object_kinds(GPUS)[0], store, lambda: open_api(config), config, lambda: 1.0)
    reflector.start()
    try:
        until(lambda: len(lists(server)) == 2)
        expired, listed = watches(server)[2], lists(server)[1]
        assert 0 < listed.at - expired.at < 4 * FIRST_PAUSE  # the pause that was due after two failures
    finally:
        reflector.interrupt()
        reflector.join()


def test_a_version_that_expires_again_and_again_is_not_listed_in_a_tight_loop(server, started):
    fill(server)
    server.add_fault(ApiFault("watch", "pods", times=1000, status=410))
    pipeline = started(config_of(server))
    until(lambda: restarts(pipeline, "expired") >= 3)
    times = [request.at for request in lists(server)]
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) >= 0.5 * FIRST_PAUSE


@pytest.mark.slow
def test_a_watch_that_turns_out_to_be_expired_is_no_recovery(server, started, caplog):
    caplog.set_level(logging.INFO)
    fill(server)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    server.add_fault(ApiFault("watch", "pods", times=2, status=500))
    server.add_fault(ApiFault("watch", "pods", event=410))
    server.disconnect()
    until(lambda: restarts(pipeline, "expired") == 1)

    def logged():
        assert pipeline.collect(time.time())
        return [r.getMessage() for r in caplog.records if r.getMessage().startswith("pods ")]

    until(lambda: "pods are watched again" in logged())
    expired = next(number for number, text in enumerate(logged()) if "answered 410" in text)
    assert logged().index("pods are watched again") > expired


def test_requests_name_the_program(server, started):
    fill(server)
    started(config_of(server))
    until(lambda: lists(server))
    assert {request.agent for request in server.requests} == {f"gpugauge/{VERSION}"}


JOBS = "/apis/batch/v1/jobs"


def test_objects_that_are_not_served_are_left_out_and_nothing_is_wrong(server, started, caplog):
    caplog.set_level(logging.INFO)
    fill(server)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    until(lambda: series(pipeline).get('gpugauge_watch_off{object="jobs",reason="not_served"}'))
    assert health(pipeline).up
    assert pipeline.collect(time.time()).problems == ()
    assert not any('object="jobs"' in key and "restarts" in key for key in series(pipeline))
    told = [r for r in caplog.records if r.getMessage().startswith("jobs are optional")]
    assert [r.levelname for r in told] == ["INFO"]


def test_objects_that_may_not_be_read_are_read_once_that_is_allowed(server, started):
    fill(server)
    server.serve(JOBS)
    server.put("jobs", blocked_job())
    server.add_fault(ApiFault("list", "jobs", times=1, status=403))
    pipeline = started(config_of(server))
    until(lambda: series(pipeline).get('gpugauge_watch_off{object="jobs",reason="forbidden"}'))
    until(lambda: any(key.startswith("gpugauge_pending_workloads{") for key in series(pipeline)))
    assert 'gpugauge_watch_off{object="jobs",reason="forbidden"}' not in series(pipeline)


def blocked_job():
    given = objects.job("train", "team-a")
    given["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    given["spec"] |= {"suspend": True, "template": {"spec": objects.pod("x", "team-a")["spec"]}}
    given["status"] = {}
    return given


def test_an_older_version_of_an_api_is_read_where_the_preferred_one_is_not_served(server, started):
    fill(server)
    server.serve("/apis/resource.k8s.io/v1beta1/resourceclaims")
    pipeline = started(config_of(server))
    until(lambda: lists(server, "resourceclaims"))
    until(lambda: any("last_sync" in key and 'object="resourceclaims"' in key for key in series(pipeline)))


def test_optional_objects_that_fail_are_a_problem_and_the_watcher_is_ready(server, started):
    fill(server)
    server.serve(JOBS)
    server.add_fault(ApiFault("list", "jobs", times=1000, status=500))
    pipeline = started(config_of(server))
    until(pipeline.ready)
    until(lambda: pipeline.collect(time.time()).problems)
    assert health(pipeline).up


def test_a_list_answered_with_410_is_begun_again(server, started):
    expected = fill(server, 10)
    server.add_fault(ApiFault("list", "nodes", status=410))
    pipeline = started(config_of(server))
    until(pipeline.ready)
    assert restarts(pipeline, "expired", "nodes") == 1
    assert pods_of(pipeline) == expected


def test_a_list_whose_token_expires_between_two_pages_is_begun_again_and_loses_nothing(server, started):
    expected = fill(server, 10)
    pipeline = started(config_of(server, page_size=3), connect=ExpiringList(server).opened)
    until(pipeline.ready)
    assert pods_of(pipeline) == (expected - {"p0"}) | {"late"}
    assert restarts(pipeline, "expired") == 1
    assert ["continue" in request.query for request in lists(server)] == [False, True, False, True, True, True]
    until(lambda: watches(server))
    server.put("pods", objects.pod("later", "team-a"))
    until(lambda: "later" in pods_of(pipeline))


def test_a_watch_whose_connection_broke_is_resumed_without_a_new_list(server, started):
    expected = fill(server)
    pipeline = started(config_of(server))
    until(lambda: watched(server))
    server.disconnect()
    server.put("pods", objects.pod("meanwhile", "team-a"))
    until(lambda: pods_of(pipeline) == expected | {"meanwhile"})
    assert restarts(pipeline, "unreachable") == 1
    assert len(lists(server)) == 1


def test_a_list_that_breaks_off_is_not_taken_for_a_short_one(server, started):
    expected = fill(server)
    server.add_fault(ApiFault("list", "pods", drop=True))
    pipeline = started(config_of(server))
    until(pipeline.ready)
    assert restarts(pipeline, "unreachable") == 1
    assert pods_of(pipeline) == expected


def test_objects_are_exposed_until_they_are_stale_and_again_when_the_server_is_back(server, started):
    expected, clock = fill(server), Clock()
    pipeline = started(config_of(server), clock=clock)
    until(pipeline.ready)
    server.stop(keep_port=True)
    until(lambda: all(restarts(pipeline, "unreachable", kind) for kind in KINDS))
    assert pods_of(pipeline) == expected
    clock.now += STALE
    stale = series(pipeline)
    known = ("gpugauge_node", "gpugauge_pending", "gpugauge_gpu_pod")
    assert not [key for key in stale if key.startswith(known)]
    assert [key for key in stale if key.startswith("gpugauge_watch_last_sync")]
    assert health(pipeline).reason == "unreachable"
    server.start()
    until(lambda: health(pipeline).up)
    until(lambda: pods_of(pipeline) == expected)


def test_a_server_that_accepts_requests_and_breaks_off_every_answer_confirms_nothing(server, started):
    expected, clock = fill(server), Clock()
    pipeline = started(config_of(server), clock=clock)
    until(pipeline.ready)
    server.add_fault(ApiFault("watch", times=1000, drop=True))
    server.add_fault(ApiFault("list", times=1000, drop=True))
    server.disconnect()
    until(lambda: all(restarts(pipeline, "unreachable", kind) for kind in KINDS))
    assert pods_of(pipeline) == expected
    clock.now += STALE
    assert not pods_of(pipeline)

    def listed_again(kind):
        """Whether a second list has failed: every request did, but for the first list."""
        requests = [request for request in server.requests if request.kind == kind]
        return len(lists(server, kind)) > 1 and restarts(pipeline, "unreachable", kind) >= len(requests) - 1

    until(lambda: all(listed_again(kind) for kind in KINDS))
    assert not pods_of(pipeline)
    assert pipeline.unready() == f"the API server has not confirmed the pods for {ClusterConfig().stale_after:.0f} s"


@pytest.mark.slow
def test_a_server_that_ends_every_watch_at_once_confirms_nothing_and_is_not_asked_in_a_tight_loop(server, started):
    expected, clock = fill(server), Clock()
    pipeline = started(config_of(server, stale_after=0.5), clock=clock)
    until(pipeline.ready)
    server.add_fault(ApiFault("watch", times=1000, garbage=b"\n"))
    server.disconnect()
    until(lambda: all(len(watches(server, kind)) > 2 for kind in KINDS))
    assert pods_of(pipeline) == expected
    clock.now += 0.9  # stale, but a watch in progress does not become one that lasted a second
    assert not pods_of(pipeline)
    counts = {kind: len(watches(server, kind)) for kind in KINDS}
    until(lambda: all(len(watches(server, kind)) > counts[kind] + 1 for kind in KINDS))
    assert not pods_of(pipeline)
    for kind in KINDS:
        at = [watch.at for watch in watches(server, kind)]
        assert min(later - earlier for earlier, later in itertools.pairwise(at)) >= 0.5
    server.clear_faults()
    until(lambda: pods_of(pipeline) == expected)


def test_it_starts_without_a_server_and_finds_it_later(serve, started):
    simulated = serve()
    simulated.stop(keep_port=True)
    pipeline = started(config_of(simulated))
    until(lambda: health(pipeline).reason == "unreachable")
    assert not pipeline.ready()
    expected = fill(simulated)
    simulated.start()
    until(pipeline.ready)
    assert pods_of(pipeline) == expected


def test_a_malformed_pod_costs_only_itself(server, started, caplog):
    expected = fill(server)
    unreadable = objects.pod("unreadable", "team-a")
    unreadable["spec"]["containers"][0]["resources"]["requests"] = {GPU: "a few"}
    of_other_type = objects.pod("of-other-type", "team-a")
    of_other_type["spec"]["containers"] = "none"
    timeless = objects.pod("timeless", "team-a")
    timeless["metadata"]["creationTimestamp"] = "yesterday"
    for given in (unreadable, of_other_type, timeless):
        server.put("pods", given)
    with caplog.at_level(logging.WARNING):
        pipeline = started(config_of(server))
        until(pipeline.ready)
    assert pods_of(pipeline) == expected
    assert series(pipeline)['gpugauge_watch_malformed_objects_total{object="pods"}'] == 3
    assert sum("team-a/unreadable" in text for text in caplog.messages) == 1
    assert sum("team-a/of-other-type" in text for text in caplog.messages) == 1


def test_a_pod_that_becomes_malformed_is_no_longer_exposed_as_it_was(server, started):
    fill(server)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    malformed = objects.pod("p0", "team-a")
    malformed["status"] = 7
    server.put("pods", malformed)
    until(lambda: pods_of(pipeline) == {"p1", "p2"})
    server.put("pods", objects.pod("p0", "team-a"))
    until(lambda: pods_of(pipeline) == {"p0", "p1", "p2"})


def test_nulls_in_place_of_lists_do_not_cost_the_pod(server, started):
    strange = objects.pod("strange", "team-a")
    strange["spec"]["initContainers"] = strange["spec"]["tolerations"] = strange["metadata"]["annotations"] = None
    strange["status"]["conditions"] = None
    strange["metadata"]["labels"]["empty"] = None
    fill(server, 0)
    server.put("pods", strange)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    assert pods_of(pipeline) == {"strange"}


@pytest.mark.parametrize("garbage", [b"<html>", b'{"items": []', b'{"kind": "PodList"}', b"[]", b"\xff\xfe"])
def test_a_list_of_garbage_is_rejected_and_requested_again(server, started, garbage):
    expected = fill(server)
    server.add_fault(ApiFault("list", "pods", garbage=garbage))
    pipeline = started(config_of(server))
    until(pipeline.ready)
    assert restarts(pipeline, "bad_response") == 1
    assert pods_of(pipeline) == expected


@pytest.mark.parametrize("line", [b"garbage", b"{}", b'{"type":"ADDED"}', b"null", b"\xff"])
def test_a_line_of_garbage_restarts_the_watch(server, started, line):
    expected = fill(server)
    pipeline = started(config_of(server))
    until(lambda: watched(server))
    server.send("pods", line)
    until(lambda: restarts(pipeline, "bad_response") >= 1)
    server.expire()
    server.put("pods", objects.pod("after", "team-a"))
    until(lambda: pods_of(pipeline) == expected | {"after"})


def test_after_an_error_event_that_is_not_410_the_pods_stay_exposed(server, started):
    expected = fill(server)
    server.add_fault(ApiFault("watch", "pods", event=500))
    pipeline = started(config_of(server))
    until(lambda: restarts(pipeline, "server_error") == 1)
    assert pods_of(pipeline) == expected
    until(lambda: health(pipeline).up)
    assert len(lists(server)) == 1


def test_a_busy_server_gets_no_request_for_as_long_as_it_asks(server, started):
    fill(server)
    server.add_fault(ApiFault("list", "pods", status=429, retry_after=2))
    pipeline = started(config_of(server))
    until(pipeline.ready)
    first, second = [request.at for request in lists(server)]
    assert second - first >= 2
    assert restarts(pipeline, "throttled") == 1


@pytest.mark.parametrize(
    ("status", "reason"),
    [(401, "unauthorized"), (403, "forbidden"), (500, "server_error"), (404, "not_served"), (418, "bad_response")],
)
def test_a_status_other_than_200_has_a_reason(server, started, status, reason):
    fill(server)
    server.add_fault(ApiFault("list", "pods", times=1000, status=status))
    pipeline = started(config_of(server))
    until(lambda: health(pipeline).reason == reason)
    assert restarts(pipeline, reason) >= 1
    until(lambda: labels_of(pipeline, "gpugauge_node_gpu_capacity"))
    server.clear_faults()
    until(lambda: health(pipeline).up)


def test_a_collection_does_not_wait_for_a_slow_server(server, started):
    fill(server)
    server.add_fault(ApiFault("list", "pods", delay=math.inf))
    pipeline = started(config_of(server))
    until(lambda: lists(server))
    assert not pipeline.collect(time.time()).health[0].up
    assert pipeline.unready() == "the pods are not listed yet"
    server.clear_faults()
    until(pipeline.ready)


def kubeconfig(path, server, token):
    text = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("one", "two")],
    }
    path.write_text(json.dumps(text))
    return str(path)


def test_the_token_of_a_kubeconfig_is_sent_and_read_again_when_it_is_not_accepted(tmp_path, serve, started):
    simulated = serve(token="right")
    expected = fill(simulated)
    path = kubeconfig(tmp_path / "config", simulated, "wrong")
    pipeline = started(ClusterConfig(kubeconfig=path, context="two"))
    until(lambda: health(pipeline).reason == "unauthorized")
    kubeconfig(tmp_path / "config", simulated, "right")
    until(pipeline.ready)
    assert pods_of(pipeline) == expected
    assert {request.authorization for request in simulated.requests} == {"Bearer wrong", "Bearer right"}


@pytest.mark.parametrize("text", [None, "", "{", "kind: Config", "just words"])
def test_a_missing_usable_configuration_has_a_reason(tmp_path, started, text):
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    pipeline = started(ClusterConfig(kubeconfig=str(path)))
    until(lambda: health(pipeline).reason == "no_configuration")
    assert pods_of(pipeline) == set()


def test_stopping_does_not_wait_for_a_watch_to_end(server, started):
    fill(server)
    pipeline = started(config_of(server))
    until(lambda: watched(server))
    pipeline.stop()
    until(lambda: not reflector_threads())
    ends = [watch.at + int(watch.query["timeoutSeconds"]) for kind in KINDS for watch in watches(server, kind)]
    assert time.monotonic() < min(ends)


def test_a_malformed_override_is_counted_at_every_collection_and_logged_once(server, started, caplog):
    server.put("namespaces", objects.namespace("team-a", {"gpugauge.io/low-utilization": "forever"}))
    with caplog.at_level(logging.WARNING):
        pipeline = started(config_of(server))
        until(pipeline.ready)
        key = 'gpugauge_overrides_malformed{key="gpugauge.io/low-utilization"}'
        assert [series(pipeline)[key] for _ in range(3)] == [1, 1, 1]
    assert sum("namespace team-a: 'forever'" in text for text in caplog.messages) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_reflector_that_ends_because_of_a_defect_is_started_again(server, started):
    expected = fill(server)
    calls = itertools.count()

    def connect(config):
        if next(calls) == 0:
            raise SystemExit  # a defect that ends the thread
        return open_api(config)

    pipeline = started(config_of(server), connect=connect)
    until(lambda: health(pipeline).up)
    assert pods_of(pipeline) == expected
    assert sum(restarts(pipeline, "crashed", kind) for kind in KINDS) == 1
