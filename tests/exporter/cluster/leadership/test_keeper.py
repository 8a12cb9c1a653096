"""Keepers of one lease against the simulated API server: who leads, what they write, and what failures change."""

import itertools
import logging

import pytest

from exporter.cluster.config import ClusterConfig, LeaseName
from exporter.cluster.kubernetes.watching.api import open_api
from exporter.cluster.leadership.election import CHECK_SECONDS, LEASE_SECONDS, RENEW_SECONDS
from exporter.cluster.leadership.keeper import LeaseKeeper, Surroundings
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from tests.clock import Clock
from tests.waiting import until

NAME = LeaseName("gpugauge", "watcher")
ALWAYS = 10**6


@pytest.fixture
def server():
    simulated = SimulatedApiServer()
    simulated.start()
    yield simulated
    simulated.stop()


class Replica:
    """A keeper that makes its attempts when the test asks for them. `changes` counts how often it began or ceased."""

    def __init__(self, server, identity, clock, *, ready=True):
        self.ready, self.clock, self.changes = ready, clock, 0
        self.seconds = itertools.count(1_800_000_000)
        self.before_write = lambda: None
        around = Surroundings(
            connect=lambda: open_api(ClusterConfig(api_server=server.url)),
            ready=self._ready,
            changed=self._changed,
            wall=lambda: float(next(self.seconds)),
            clock=clock,
            jitter=lambda: 1.0,
        )
        self.keeper = LeaseKeeper(NAME, identity, around)

    def _ready(self):
        """A keeper asks this between reading the lease and taking it."""
        self.before_write()
        return self.ready

    def _changed(self):
        self.changes += 1

    def attempt(self, after=0.0):
        """Whether it leads after an attempt that it makes so many seconds later."""
        self.clock.now += after
        self.pause = self.keeper.attempt()
        return self.keeper.view.leads

    @property
    def reason(self):
        problem = self.keeper.view.problem
        return None if problem is None else str(problem.reason)

    def close(self):
        self.keeper.interrupt()
        self.keeper.start()
        self.keeper.join()


@pytest.fixture
def replica(server):
    """Makes replicas, each with a clock of its own, that end with the test."""
    made = []

    def make(identity, *, at=server, **more):
        made.append(Replica(at, identity, Clock(1000.0 * (len(made) + 1)), **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def spec(server):
    return server.leases.spec(*NAME)


def test_the_first_ready_replica_creates_the_lease_and_leads(server, replica):
    first = replica("first_1")
    assert first.attempt()
    assert first.pause == RENEW_SECONDS
    assert (first.changes, first.reason, first.keeper.view.unready()) == (1, None, None)
    assert spec(server) == {
        "holderIdentity": "first_1",
        "leaseDurationSeconds": 15,
        "acquireTime": "2027-01-15T08:00:00.000000Z",
        "renewTime": "2027-01-15T08:00:00.000000Z",
        "leaseTransitions": 0,
    }


def test_a_second_replica_stands_by_and_is_ready(server, replica):
    assert replica("first").attempt()
    second = replica("second")
    assert not second.attempt()
    assert (second.changes, second.reason, second.keeper.view.unready()) == (0, None, None)
    assert second.pause == CHECK_SECONDS
    assert spec(server)["holderIdentity"] == "first"


def test_a_leader_renews_with_one_request_and_changes_nothing_else(server, replica):
    first = replica("first")
    first.attempt()
    before, requests = spec(server), len(server.requests)
    assert first.attempt(RENEW_SECONDS)
    assert spec(server) == {**before, "renewTime": "2027-01-15T08:00:01.000000Z"}
    assert [request.query["method"] for request in server.requests[requests:]] == ["PUT"]


def test_a_leader_that_renews_stays_and_one_that_does_not_is_replaced(server, replica):
    first, second = replica("first"), replica("second")
    first.attempt()
    for _ in range(10):
        assert not second.attempt(RENEW_SECONDS)
        assert first.attempt(RENEW_SECONDS)
    assert not second.attempt(CHECK_SECONDS)
    assert not second.attempt(LEASE_SECONDS - 0.5)
    assert second.pause == pytest.approx(0.5)
    assert second.attempt(second.pause)
    assert (spec(server)["holderIdentity"], spec(server)["leaseTransitions"]) == ("second", 1)
    assert spec(server)["acquireTime"] == spec(server)["renewTime"]


def test_a_leader_that_was_away_reads_that_another_one_leads_and_steps_down(server, replica):
    first, second = replica("first"), replica("second")
    first.attempt()
    second.attempt()
    assert second.attempt(LEASE_SECONDS)
    assert not first.attempt(60.0)
    assert (first.changes, second.changes) == (2, 1)
    assert not first.attempt(CHECK_SECONDS)
    assert spec(server)["holderIdentity"] == "second"


def test_of_two_that_take_a_released_lease_at_once_the_second_write_fails_and_is_not_repeated(server, replica):
    server.leases.edit(*NAME, holderIdentity="")
    slow = replica("slow")
    slow.before_write = lambda: server.leases.edit(*NAME, holderIdentity="quick", renewTime="t")
    assert not slow.attempt()
    assert (slow.changes, slow.reason) == (0, None)
    assert spec(server)["holderIdentity"] == "quick"


def test_a_change_of_the_lease_by_somebody_else_does_not_end_leadership(server, replica):
    first = replica("first")
    first.attempt()
    server.leases.edit(*NAME, preferredHolder="x")
    assert first.attempt(RENEW_SECONDS)
    assert (spec(server)["preferredHolder"], spec(server)["leaseTransitions"]) == ("x", 0)
    assert spec(server)["renewTime"] > spec(server)["acquireTime"]
    assert first.changes == 1


def test_a_deleted_lease_is_created_again_by_its_leader(server, replica):
    first = replica("first")
    first.attempt()
    server.leases.delete(*NAME)
    assert first.attempt(RENEW_SECONDS)
    assert spec(server)["holderIdentity"] == "first"
    assert first.changes == 1


def test_a_released_lease_is_taken_at_once(server, replica):
    first, second = replica("first"), replica("second")
    first.attempt()
    assert not second.attempt()
    first.close()
    assert spec(server)["holderIdentity"] == ""
    assert second.attempt(CHECK_SECONDS)
    assert spec(server)["leaseTransitions"] == 1


def test_a_replica_that_ends_does_not_release_what_another_one_has_taken(server, replica):
    first, second = replica("first"), replica("second")
    first.attempt()
    second.attempt()
    assert second.attempt(LEASE_SECONDS)
    first.close()
    assert spec(server)["holderIdentity"] == "second"


def test_a_replica_without_the_objects_of_the_cluster_lets_another_one_lead(server, replica):
    empty, full = replica("empty", ready=False), replica("full")
    assert not empty.attempt()
    assert not empty.attempt(LEASE_SECONDS - 1)
    assert full.attempt()
    assert not empty.attempt(LEASE_SECONDS)


def test_a_replica_without_objects_leads_in_the_end_where_no_other_does(replica):
    empty = replica("empty", ready=False)
    assert not empty.attempt()
    assert empty.attempt(LEASE_SECONDS)


def test_a_leader_goes_on_while_the_api_server_is_away_and_keeps_the_lease_when_it_is_back(server, replica, caplog):
    caplog.set_level(logging.INFO)
    first, second = replica("first"), replica("second")
    first.attempt()
    second.attempt()
    server.stop(keep_port=True)
    for _ in range(5):
        assert first.attempt(60.0)
        assert not second.attempt(60.0)
        assert max(first.pause, second.pause) <= RENEW_SECONDS
    assert (first.reason, first.keeper.view.unready()) == ("unavailable", None)
    server.start()
    assert not second.attempt(60.0), "the leader could not renew the lease meanwhile"
    assert first.attempt(RENEW_SECONDS)
    assert not second.attempt(LEASE_SECONDS - 1)
    assert (first.changes, second.changes) == (1, 0)
    assert (first.reason, second.reason) == (None, None)


def test_a_replica_that_has_never_read_the_lease_is_not_ready(server, replica):
    server.stop(keep_port=True)
    first = replica("first")
    assert first.keeper.view.unready() == "the lease has not been read yet"
    assert not first.attempt()
    assert first.keeper.view.unready() == "the lease has not been read yet"
    server.start()


def test_without_permission_nobody_begins_to_lead_and_a_leader_goes_on(server, replica):
    first, second = replica("first"), replica("second")
    server.add_fault(ApiFault("lease", status=403))
    assert not second.attempt()
    assert second.reason == "forbidden"
    assert "neither lead nor take over" in second.keeper.view.unready()
    assert first.attempt()
    server.add_fault(ApiFault("lease", times=ALWAYS, status=403))
    for _ in range(5):
        assert first.attempt(LEASE_SECONDS)
        assert not second.attempt(LEASE_SECONDS)
    assert (first.reason, first.keeper.view.unready()) == ("forbidden", None)
    server.clear_faults()
    assert first.attempt()
    assert not second.attempt()
    assert (first.reason, second.reason, second.keeper.view.unready()) == (None, None, None)


def test_a_namespace_that_does_not_exist_is_named(server, replica):
    first = replica("first")
    server.add_fault(ApiFault("lease", times=2, status=404))
    assert not first.attempt()
    assert first.reason == "namespace_missing"
    assert first.attempt()


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500},
        {"status": 401},
        {"status": 429, "retry_after": 3600},
        {"garbage": b"<html>"},
        {"garbage": b"[]"},
        {"garbage": b'{"metadata":{},"spec":7}'},
        {"garbage": b"\xff"},
        {"drop": True},
    ],
)
def test_an_answer_that_is_no_lease_is_a_problem_and_changes_nothing(server, replica, fault):
    first = replica("first")
    first.attempt()
    server.add_fault(ApiFault("lease", times=2, **fault))
    assert first.attempt(RENEW_SECONDS)
    assert first.reason == "unavailable"
    assert first.pause <= LEASE_SECONDS + RENEW_SECONDS
    server.clear_faults()
    assert first.attempt(RENEW_SECONDS)
    assert (first.reason, first.changes) == (None, 1)


def test_a_lease_without_a_spec_is_one_that_nobody_has(server, replica):
    server.leases.edit(*NAME)
    assert replica("first").attempt()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_ended_because_of_a_defect_is_started_again(server, replica):
    first = replica("first")
    first.seconds = iter(())  # the wall clock fails
    first.keeper.start()
    until(lambda: not first.keeper._thread.is_alive())
    first.seconds = itertools.count(1_800_000_000)
    first.keeper.supervise()
    until(lambda: first.keeper.view.leads)
    assert first.reason is None
