"""The real client against the simulated API server: what is known stays true whatever the server does."""

import json
import logging
import threading
import time
import urllib.request

import pytest

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.api import open_api
from exporter.cluster.pipeline import ClusterPipeline
from simulators import objects
from simulators.api_server import Fault, SimulatedApiServer

GPU = "nvidia.com/gpu"
DEADLINE = 15.0


@pytest.fixture
def server():
    simulated = SimulatedApiServer(bookmark_seconds=0.2)
    simulated.start()
    yield simulated
    simulated.stop()


@pytest.fixture
def started():
    """Starts pipelines that end with the test."""
    running = []

    def start(config, **more):
        pipeline = ClusterPipeline(config, **more)
        running.append(pipeline)
        pipeline.start()
        return pipeline

    yield start
    for pipeline in running:
        pipeline.stop()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("watch-")]


def until(what, seconds=DEADLINE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := what():
            return answer
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")


def series(pipeline):
    return {
        family.metric.name + labels.text: value
        for family in pipeline.take(time.time()).families
        for labels, value in family.samples
    }


def pods_of(pipeline):
    """Names of the GPU pods on the page, or None while there are none."""
    found = [dict(labels.pairs)["gpu_pod"] for labels in samples(pipeline, "gpugauge_gpu_pod_info")]
    return set(found)


def samples(pipeline, name):
    families = pipeline.take(time.time()).families
    return [labels for family in families if family.metric.name == name for labels, _ in family.samples]


def health(pipeline):
    return pipeline.take(time.time()).health[0]


def restarts(pipeline, reason, kind="pods"):
    return series(pipeline)[f'gpugauge_watch_restarts_total{{object="{kind}",reason="{reason}"}}']


def fill(server, count=3):
    server.put("namespaces", objects.namespace("team-a"))
    server.put("nodes", objects.node("n1", {GPU: 8}, objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)))
    for number in range(count):
        server.put("pods", objects.pod(f"p{number}", "team-a"))
    return {f"p{number}" for number in range(count)}


def config_of(server, **more):
    return ClusterConfig(api_server=server.url, **more)


def test_a_long_list_is_read_page_by_page(server, started):
    expected = fill(server, 25)
    server.put("pods", objects.pod("cpu-only", "team-a", requests={}))
    pipeline = started(config_of(server, page=4))
    until(pipeline.ready)
    assert pods_of(pipeline) == expected
    lists = [request for request in server.requests if request.kind == "pods" and not request.watch]
    assert len(lists) == 7
    assert {request.query["limit"] for request in lists} == {"4"}
    assert all("resourceVersion" not in request.query for request in lists)


def test_a_large_page_comes_compressed_and_is_read_whole(server, started):
    expected = fill(server, 300)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    assert pods_of(pipeline) == expected
    page = urllib.request.Request(f"{server.url}/api/v1/pods?limit=500", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(page) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"


def test_a_watch_begins_where_the_list_ended_and_asks_for_bookmarks(server, started):
    fill(server)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    watch = until(lambda: next((r for r in server.requests if r.watch and r.kind == "pods"), None))
    assert watch.query["allowWatchBookmarks"] == "true"
    assert 60 <= int(watch.query["timeoutSeconds"]) <= 90
    assert watch.query["fieldSelector"] == "status.phase!=Succeeded,status.phase!=Failed"
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


def test_a_pod_that_finishes_leaves_the_page(server, started):
    fill(server)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    done = objects.running(objects.pod("p0", "team-a"), "n1")
    done["status"]["phase"] = "Succeeded"
    server.put("pods", done)
    until(lambda: pods_of(pipeline) == {"p1", "p2"})


def test_a_pod_waits_from_the_moment_its_gate_goes(server, started):
    gated = objects.gated(objects.pod("g", "team-a", created=time.time() - 5000), "example.com/wait")
    fill(server, 0)
    server.put("pods", gated)
    pipeline = started(config_of(server, tracked_after=-1.0))
    until(pipeline.ready)
    assert not samples(pipeline, "gpugauge_pending_pod_since_timestamp_seconds")
    opened_at = time.time()
    gated["spec"]["schedulingGates"] = []
    server.put("pods", gated)
    name = "gpugauge_pending_pod_since_timestamp_seconds"
    since = until(lambda: [value for key, value in series(pipeline).items() if key.startswith(name)])
    assert opened_at <= since[0] <= time.time()
    server.expire()
    until(lambda: restarts(pipeline, "expired"))
    until(lambda: health(pipeline).up)
    assert [value for key, value in series(pipeline).items() if key.startswith(name)] == since


def test_a_watch_that_ends_is_resumed_without_a_new_list(server, started):
    expected = fill(server)
    pipeline = started(config_of(server, watch_seconds=1.5))
    until(pipeline.ready)
    until(lambda: sum(request.watch for request in server.requests if request.kind == "pods") >= 3)
    assert sum(not request.watch for request in server.requests if request.kind == "pods") == 1
    versions = [int(r.query["resourceVersion"]) for r in server.requests if r.watch and r.kind == "pods"]
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


def test_a_watch_refused_with_410_leads_to_a_new_list(server, started):
    fill(server)
    server.misbehave(Fault("watch", "pods", status=410))
    pipeline = started(config_of(server))
    until(lambda: restarts(pipeline, "expired") == 1)
    until(lambda: sum(not request.watch for request in server.requests if request.kind == "pods") == 2)


def test_a_list_whose_continuation_expires_is_begun_again(server, started):
    expected = fill(server, 10)
    server.misbehave(Fault("list", "nodes", status=410))
    pipeline = started(config_of(server))
    until(pipeline.ready)
    assert restarts(pipeline, "expired", "nodes") == 1
    assert pods_of(pipeline) == expected


def test_a_dropped_connection_is_taken_up_where_it_broke(server, started):
    expected = fill(server)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    until(lambda: sum(request.watch for request in server.requests) == 3)
    server.disconnect()
    server.put("pods", objects.pod("meanwhile", "team-a"))
    until(lambda: pods_of(pipeline) == expected | {"meanwhile"})
    assert restarts(pipeline, "unreachable") == 1
    assert sum(not request.watch for request in server.requests if request.kind == "pods") == 1


def test_a_list_that_breaks_off_is_not_taken_for_a_short_one(server, started):
    expected = fill(server)
    server.misbehave(Fault("list", "pods", drop=True))
    pipeline = started(config_of(server))
    until(pipeline.ready)
    assert restarts(pipeline, "unreachable") == 1
    assert pods_of(pipeline) == expected


def test_nothing_old_is_shown_when_the_server_stays_away_and_all_of_it_when_it_returns(server, started):
    expected = fill(server)
    pipeline = started(config_of(server, stale_after=1.0))
    until(pipeline.ready)
    server.stop()
    until(lambda: not health(pipeline).up)
    known = ("gpugauge_node", "gpugauge_pending", "gpugauge_gpu_pod")
    until(lambda: not [key for key in series(pipeline) if key.startswith(known)])
    page = series(pipeline)
    assert [key for key in page if key.startswith("gpugauge_watch_last_sync")]
    assert health(pipeline).reason == "unreachable"
    server.start()
    until(lambda: health(pipeline).up)
    until(lambda: pods_of(pipeline) == expected)


def test_a_server_that_takes_requests_and_answers_nothing_is_no_contact(server, started):
    fill(server)
    pipeline = started(config_of(server, stale_after=1.0))
    until(pipeline.ready)
    server.misbehave(Fault("watch", times=1000, drop=True))
    server.misbehave(Fault("list", times=1000, drop=True))
    server.disconnect()
    until(lambda: not pods_of(pipeline))
    assert not pipeline.ready()


def test_a_server_that_ends_every_watch_at_once_is_no_contact(server, started):
    expected = fill(server)
    pipeline = started(config_of(server, stale_after=1.0))
    until(pipeline.ready)
    server.misbehave(Fault("watch", times=1000, garbage=b"\n"))
    server.disconnect()
    until(lambda: not pods_of(pipeline))
    assert sum(request.watch for request in server.requests) < 30
    server.behave()
    until(lambda: pods_of(pipeline) == expected)


def test_it_starts_without_a_server_and_finds_it_later(started):
    simulated = SimulatedApiServer()
    simulated.start()
    simulated.stop()
    pipeline = started(config_of(simulated))
    until(lambda: health(pipeline).reason == "unreachable")
    assert not pipeline.ready()
    expected = fill(simulated)
    simulated.start()
    until(pipeline.ready)
    assert pods_of(pipeline) == expected
    simulated.stop()


def test_a_malformed_pod_costs_only_itself(server, started, caplog):
    expected = fill(server)
    broken = objects.pod("broken", "team-a")
    broken["spec"]["containers"][0]["resources"]["requests"] = {GPU: "a few"}
    twisted = objects.pod("twisted", "team-a")
    twisted["spec"]["containers"] = "none"
    nameless = objects.pod("timeless", "team-a")
    nameless["metadata"]["creationTimestamp"] = "yesterday"
    for given in (broken, twisted, nameless):
        server.put("pods", given)
    with caplog.at_level(logging.WARNING):
        pipeline = started(config_of(server))
        until(pipeline.ready)
    assert pods_of(pipeline) == expected
    assert series(pipeline)['gpugauge_watch_malformed_objects_total{object="pods"}'] == 3
    assert sum("team-a/broken" in text for text in caplog.messages) == 1
    assert sum("team-a/twisted" in text for text in caplog.messages) == 1


def test_a_pod_that_becomes_malformed_is_no_longer_shown_as_it_was(server, started):
    fill(server)
    pipeline = started(config_of(server))
    until(pipeline.ready)
    twisted = objects.pod("p0", "team-a")
    twisted["status"] = 7
    server.put("pods", twisted)
    until(lambda: pods_of(pipeline) == {"p1", "p2"})
    server.put("pods", objects.pod("p0", "team-a"))
    until(lambda: pods_of(pipeline) == {"p0", "p1", "p2"})


def test_nulls_where_lists_should_be_are_lived_with(server, started):
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
def test_a_list_of_garbage_is_refused_and_asked_for_again(server, started, garbage):
    expected = fill(server)
    server.misbehave(Fault("list", "pods", garbage=garbage))
    pipeline = started(config_of(server))
    until(pipeline.ready)
    assert restarts(pipeline, "bad_response") == 1
    assert pods_of(pipeline) == expected


@pytest.mark.parametrize("line", [b"garbage", b"{}", b'{"type":"ADDED"}', b"null", b"\xff"])
def test_a_line_of_garbage_restarts_the_watch(server, started, line):
    expected = fill(server)
    pipeline = started(config_of(server))
    until(lambda: sum(request.watch for request in server.requests) == 3)
    server.send("pods", line)
    until(lambda: restarts(pipeline, "bad_response") >= 1)
    server.expire()
    server.put("pods", objects.pod("after", "team-a"))
    until(lambda: pods_of(pipeline) == expected | {"after"})


def test_an_error_event_that_is_not_410_keeps_what_is_known(server, started):
    expected = fill(server)
    server.misbehave(Fault("watch", "pods", event=500))
    pipeline = started(config_of(server))
    until(lambda: restarts(pipeline, "server_error") == 1)
    assert pods_of(pipeline) == expected
    until(lambda: health(pipeline).up)
    assert sum(not request.watch for request in server.requests if request.kind == "pods") == 1


def test_a_busy_server_is_left_alone_as_long_as_it_asks(server, started):
    fill(server)
    server.misbehave(Fault("list", "pods", status=429, retry_after=2))
    pipeline = started(config_of(server))
    until(pipeline.ready)
    first, second = [request.at for request in server.requests if request.kind == "pods" and not request.watch]
    assert second - first >= 2
    assert restarts(pipeline, "throttled") == 1


@pytest.mark.parametrize(
    ("status", "reason"), [(401, "unauthorized"), (403, "forbidden"), (500, "server_error"), (404, "bad_response")]
)
def test_a_refusal_has_a_reason(server, started, status, reason):
    fill(server)
    server.misbehave(Fault("list", "pods", times=1000, status=status))
    pipeline = started(config_of(server))
    until(lambda: health(pipeline).reason == reason)
    assert restarts(pipeline, reason) >= 1
    until(lambda: samples(pipeline, "gpugauge_node_gpu_capacity"))
    server.behave()
    until(lambda: health(pipeline).up)


def test_a_slow_server_delays_no_page(server, started):
    fill(server)
    server.misbehave(Fault("list", "pods", delay=3.0))
    pipeline = started(config_of(server))
    began = time.monotonic()
    snapshot = pipeline.take(time.time())
    assert time.monotonic() - began < 2.5
    assert not snapshot.health[0].up
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


def test_the_token_of_a_kubeconfig_is_sent_and_a_new_one_is_read_after_a_refusal(tmp_path, started):
    simulated = SimulatedApiServer(token="right")
    simulated.start()
    expected = fill(simulated)
    path = kubeconfig(tmp_path / "config", simulated, "wrong")
    pipeline = started(ClusterConfig(kubeconfig=path, context="two"))
    until(lambda: health(pipeline).reason == "unauthorized")
    kubeconfig(tmp_path / "config", simulated, "right")
    until(pipeline.ready)
    assert pods_of(pipeline) == expected
    assert {request.authorization for request in simulated.requests} == {"Bearer wrong", "Bearer right"}
    simulated.stop()


@pytest.mark.parametrize("text", [None, "", "{", "kind: Config", "just words"])
def test_without_a_usable_configuration_it_says_so(tmp_path, started, text):
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    pipeline = started(ClusterConfig(kubeconfig=str(path)))
    until(lambda: health(pipeline).reason == "no_configuration")
    assert pods_of(pipeline) == set()


def test_stopping_does_not_wait_for_a_watch_to_end(server, started):
    fill(server)
    pipeline = started(config_of(server))
    until(lambda: sum(request.watch for request in server.requests) == 3)
    began = time.monotonic()
    pipeline.stop()
    assert time.monotonic() - began < 4  # each thread left behind would cost five seconds


def test_malformed_switches_are_named_once(server, started, caplog):
    server.put("namespaces", objects.namespace("team-a", {"gpugauge.io/low-utilization": "forever"}))
    with caplog.at_level(logging.WARNING):
        pipeline = started(config_of(server))
        until(pipeline.ready)
        key = 'gpugauge_switches_malformed{key="gpugauge.io/low-utilization"}'
        assert [series(pipeline)[key] for _ in range(3)] == [1, 1, 1]
    assert sum("namespace team-a: 'forever'" in text for text in caplog.messages) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_watch_that_dies_is_started_again(server, started):
    expected = fill(server)
    calls = []

    def connect(config):
        calls.append(config)
        if len(calls) == 1:
            raise SystemExit  # a defect that ends the thread
        return open_api(config)

    pipeline = started(config_of(server), connect=connect)
    until(lambda: health(pipeline).up)
    assert pods_of(pipeline) == expected
    assert sum(restarts(pipeline, "crashed", kind) for kind in ("pods", "nodes", "namespaces")) == 1
