"""Resource versions and pages that the API server no longer has: everything is listed again, and nothing is lost."""

import itertools
import logging
import time

import pytest

from exporter.backoff import FIRST_PAUSE
from exporter.cluster.kubernetes.watching.api import open_api
from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.cluster.kubernetes.watching.reflector import Reflector
from exporter.cluster.kubernetes.watching.store import ObjectStore
from simulators import objects
from simulators.api_server_http import ApiFault
from tests.exporter.cluster.fixture import GPUS
from tests.exporter.cluster.kubernetes.reflected import (
    config_of,
    fill,
    health,
    lists,
    pods_of,
    restarts,
    watches,
)
from tests.waiting import until


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
