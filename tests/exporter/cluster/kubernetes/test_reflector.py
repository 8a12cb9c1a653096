"""The real client against the simulated API server: lists, watches and what changes them."""

import time
import urllib.request

from exporter import VERSION
from simulators import objects
from tests.exporter.cluster.kubernetes.reflected import (
    SINCE,
    config_of,
    fill,
    health,
    labels_of,
    lists,
    pods_of,
    restarts,
    series,
    watches,
)
from tests.waiting import until


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


def test_requests_name_the_program(server, started):
    fill(server)
    started(config_of(server))
    until(lambda: lists(server))
    assert {request.agent for request in server.requests} == {f"gpugauge/{VERSION}"}
