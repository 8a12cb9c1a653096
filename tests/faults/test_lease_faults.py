"""Faults with two replicas of the watcher, which agree by a lease: each row shows one of them."""

import pytest

from exporter.cluster.config import LeaseName
from exporter.cluster.leadership.election import CHECK_SECONDS, LEASE_SECONDS, RENEW_SECONDS
from exporter.cluster.leadership.reasons import LeaseReason
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from simulators.objects import namespace, node, pod, running
from tests.clock import Clock
from tests.faults.fault import Exposed, fault
from tests.faults.programs import INTERVAL, watching
from tests.waiting import until

pytestmark = pytest.mark.slow

ALWAYS = 10**6
"""More requests than a test makes."""
NAME = LeaseName("gpugauge", "watcher")
LEADS = ("gpugauge_leader 1", "gpugauge_node_gpu_capacity 8", "gpugauge_gpu_pod_info 1")
CLUSTER = ("gpugauge_node_", "gpugauge_gpu_pod_", "gpugauge_pending_", "gpugauge_watch_")
"""Beginnings of the names of what only the leader exposes."""
UP = 'gpugauge_source_up{source="lease"} 1'


def down(reason):
    """The samples while the lease cannot be used."""
    problem = f'gpugauge_source_problem{{source="lease",reason="{reason}"}} 1'
    return 'gpugauge_source_up{source="lease"} 0', problem


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


def value(get, name):
    return Exposed(get("/metrics")[1]).value(name)


def leads(exposed):
    """Whether a replica leads, exposes the cluster, and the lease can be used."""
    lease = exposed.value("gpugauge_source_up", source="lease")
    return exposed.value("gpugauge_leader") == lease == 1 and exposed.value("gpugauge_node_gpu_capacity") == 8


@fault(
    name="The leader ends and releases the lease (SIGTERM); shown is the standby",
    shows=("gpugauge_leader 0", UP),
    absent=CLUSTER,
    pause=CHECK_SECONDS,
)
def test_the_standby_leads_soon_after_the_lease_was_released(server, row):
    server.leases.edit(*NAME, holderIdentity="leader", renewTime="t1")
    with watching(server.url, lease=NAME) as get:
        row.wait_until_shown(get)
        server.leases.edit(*NAME, holderIdentity="", renewTime="t2")
        row.wait_until_recovered(get, leads, INTERVAL)


@fault(
    name="The leader is killed, or its node is lost; shown is the standby",
    shows=("gpugauge_leader 0", UP),
    absent=CLUSTER,
    pause=LEASE_SECONDS + CHECK_SECONDS,
)
def test_the_standby_leads_once_the_lease_was_not_renewed_for_its_duration(server, row):
    clock = Clock()
    server.leases.edit(*NAME, holderIdentity="leader", renewTime="2027-01-01T00:00:00.000000Z")
    with watching(server.url, clock, NAME) as get:
        row.wait_until_shown(get)
        clock.now += LEASE_SECONDS
        row.wait_until_recovered(get, leads, INTERVAL)


@pytest.mark.slow
@fault(
    name="The leader cannot renew the lease, because the API server is away or fails",
    shows=(*LEADS, *down("unavailable")),
    pause=RENEW_SECONDS,
)
def test_a_leader_that_cannot_renew_goes_on(server, row):
    with watching(server.url, lease=NAME) as get:
        until(lambda: value(get, "gpugauge_node_gpu_capacity") == 8)
        server.add_fault(ApiFault("lease", times=ALWAYS, status=503))
        row.wait_until_shown(get)
        server.clear_faults()
        row.wait_until_recovered(get, leads, INTERVAL)


@pytest.mark.slow
@fault(
    name="The leader was cut off, and reads that another replica leads meanwhile",
    shows=("gpugauge_leader 0", UP),
    absent=CLUSTER,
    recovery="none needed: the other replica exposes the cluster",
)
def test_a_leader_steps_down_when_it_reads_another_one(server, row):
    with watching(server.url, lease=NAME) as get:
        until(lambda: value(get, "gpugauge_node_gpu_capacity") == 8)
        server.leases.edit(*NAME, holderIdentity="other", renewTime="t")
        row.wait_until_shown(get)


@fault(
    name="A standby, or a replica that starts, may not use the lease (403)",
    shows=("gpugauge_leader 0", *down("forbidden")),
    absent=CLUSTER,
    unready=f"this replica can neither lead nor take over: {LeaseReason.FORBIDDEN.meaning}",
    pause=RENEW_SECONDS,
)
def test_a_replica_without_permission_does_not_lead_and_is_unready(server, row):
    server.add_fault(ApiFault("lease", times=ALWAYS, status=403))
    with watching(server.url, lease=NAME) as get:
        row.wait_until_shown(get)
        server.clear_faults()
        row.wait_until_recovered(get, leads, INTERVAL)


@pytest.mark.slow
@fault(name="The leader may not use the lease any more (403)", shows=(*LEADS, *down("forbidden")), pause=RENEW_SECONDS)
def test_a_leader_that_loses_its_permission_goes_on(server, row):
    with watching(server.url, lease=NAME) as get:
        until(lambda: value(get, "gpugauge_node_gpu_capacity") == 8)
        server.add_fault(ApiFault("lease", times=ALWAYS, status=403))
        row.wait_until_shown(get)
        server.clear_faults()
        row.wait_until_recovered(get, leads, INTERVAL)


@fault(
    name="The namespace of the lease does not exist",
    shows=("gpugauge_leader 0", *down("namespace_missing")),
    absent=CLUSTER,
    unready=f"this replica can neither lead nor take over: {LeaseReason.NAMESPACE_MISSING.meaning}",
    pause=RENEW_SECONDS,
)
def test_a_lease_in_a_namespace_that_does_not_exist_is_named(server, row):
    server.add_fault(ApiFault("lease", times=ALWAYS, status=404))
    with watching(server.url, lease=NAME) as get:
        row.wait_until_shown(get)
        server.clear_faults()
        row.wait_until_recovered(get, leads, INTERVAL)
