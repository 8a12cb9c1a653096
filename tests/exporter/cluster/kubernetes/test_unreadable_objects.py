"""Objects, lists and events that cannot be read cost only themselves."""

import logging

import pytest

from simulators import objects
from simulators.api_server_http import ApiFault
from tests.exporter.cluster.kubernetes.reflected import (
    GPU,
    config_of,
    fill,
    health,
    lists,
    pods_of,
    restarts,
    series,
    watched,
)
from tests.waiting import until


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
