"""An API server that breaks off, hangs, refuses or is not there: what is exposed stays true."""

import itertools
import json
import logging
import math
import time

import pytest

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.watching.api import open_api
from simulators import objects
from simulators.api_server_http import KINDS, ApiFault
from tests.clock import Clock
from tests.exporter.cluster.kubernetes.reflected import (
    STALE,
    config_of,
    fill,
    health,
    labels_of,
    lists,
    pods_of,
    reflector_threads,
    restarts,
    series,
    watched,
    watches,
)
from tests.waiting import until


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
