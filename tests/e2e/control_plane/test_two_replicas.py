"""Two watchers with a real lease: one leads, the other takes over, and a leader that cannot renew goes on."""

import time
from contextlib import contextmanager

import pytest

from exporter.cluster.leadership.election import LEASE_SECONDS
from simulators import objects
from tests.deploy.running import running
from tests.e2e.control_plane import processes
from tests.e2e.control_plane.plane import control_plane
from tests.e2e.control_plane.shipped import apply_rights, rights_of_two_replicas
from tests.e2e.control_plane.situation import h100, make, pod

pytestmark = processes.needs("etcd", "kube-apiserver", "kube-scheduler")

NAMESPACE = "team-a"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpugauge/leases/gpugauge-cluster"
BINDING = "/apis/rbac.authorization.k8s.io/v1/namespaces/gpugauge/rolebindings/gpugauge-cluster-lease"
PENDING = "gpugauge_pending_pods{"


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with control_plane(tmp_path_factory.mktemp("plane"), "kube-scheduler") as started:
        apply_rights(started)
        started.call("POST", "/api/v1/namespaces", objects.namespace(NAMESPACE))
        make(started, h100("n1"), NAMESPACE)
        make(started, pod("p", 9), NAMESPACE)
        yield started


@pytest.fixture(autouse=True)
def lease_role(plane):
    for each in rights_of_two_replicas():
        plane.apply(each)
    plane.delete(LEASE, {})


@contextmanager
def replica(plane):
    kubeconfig = plane.kubeconfig("watcher", plane.token("gpugauge", "gpugauge-cluster"))
    arguments = ["cluster", "--kubeconfig", kubeconfig, "--address", "127.0.0.1:0", "--interval", "1"]
    with running(arguments, {"GPUGAUGE_LEASE": "gpugauge/gpugauge-cluster"}) as started:
        started.until("/readyz")
        yield started


@pytest.fixture
def pair(plane):
    """A leader and a standby, both ready."""
    with replica(plane) as first:
        first.until("/metrics", "gpugauge_leader 1", PENDING)
        with replica(plane) as second:
            second.until("/metrics", "gpugauge_leader 0")
            yield first, second


def leads(watcher):
    return "gpugauge_leader 1" in watcher.get("/metrics")[1]


def test_one_leads_and_the_other_exposes_nothing_of_the_cluster(plane, pair):
    first, second = pair
    assert PENDING in first.get("/metrics")[1]
    assert PENDING not in second.get("/metrics")[1]
    spec = plane.call("GET", LEASE)["spec"]
    assert spec["holderIdentity"]
    assert spec["leaseDurationSeconds"] == LEASE_SECONDS


def test_a_leader_that_ends_hands_over_at_once(plane, pair):
    first, second = pair
    began = time.monotonic()
    assert first.stop() == 0
    plane.until(lambda: leads(second))
    print(f"handed over in {time.monotonic() - began:.1f} s")
    assert PENDING in second.get("/metrics")[1]
    assert plane.call("GET", LEASE)["spec"]["leaseTransitions"] >= 1


def test_a_leader_that_is_killed_is_followed_once_its_lease_is_old(plane, pair):
    first, second = pair
    first.process.kill()
    began = time.monotonic()
    plane.until(lambda: leads(second))
    print(f"taken over in {time.monotonic() - began:.1f} s")
    assert PENDING in second.get("/metrics")[1]


def test_a_leader_that_may_not_renew_goes_on_while_no_other_can_lead(plane, pair):
    first, second = pair
    plane.delete(BINDING, {})
    problem = 'gpugauge_source_problem{reason="forbidden",source="lease"} 1'
    for each in (first, second):
        each.until("/metrics", problem)
    end = time.monotonic() + 1.5 * LEASE_SECONDS
    while time.monotonic() < end:
        assert leads(first)
        assert not leads(second)
        assert PENDING in first.get("/metrics")[1]
        time.sleep(0.5)
    assert second.get("/readyz")[0] == 503
    for each in rights_of_two_replicas():
        plane.apply(each)
    plane.until(lambda: problem not in first.get("/metrics")[1] + second.get("/metrics")[1])
    plane.until(lambda: [leads(first), leads(second)].count(True) == 1)


def test_a_leader_goes_on_while_the_api_server_is_away_and_one_leads_afterwards(plane, pair):
    first, second = pair
    plane.api_server.kill()
    first.until("/metrics", 'gpugauge_source_up{source="lease"} 0')
    assert leads(first)
    assert PENDING in first.get("/metrics")[1]
    assert not leads(second)
    plane.api_server.start()
    plane.until(plane.ready)
    for each in (first, second):
        each.until("/metrics", 'gpugauge_source_up{source="lease"} 1', 'gpugauge_source_up{source="kubernetes"} 1')
    plane.until(lambda: [leads(first), leads(second)].count(True) == 1)
