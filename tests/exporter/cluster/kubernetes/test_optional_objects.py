"""Objects that are optional: they may be missing, forbidden or of another version, and nothing else suffers."""

import logging
import time

from simulators import objects
from simulators.api_server_http import ApiFault
from tests.exporter.cluster.kubernetes.reflected import JOBS, config_of, fill, health, lists, series
from tests.waiting import until


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
