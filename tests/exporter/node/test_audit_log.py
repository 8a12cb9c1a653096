"""What collections note for the audit log, and what of it is exposed."""

from dataclasses import dataclass, field

import pytest

from exporter import cli
from exporter.config import ConfigError
from exporter.node.audit.audit_log import AuditLog
from exporter.node.audit.chain import Chain
from exporter.node.audit.ledger import Ledger
from exporter.node.audit.lines import AllocationStarted, DeviceId
from exporter.node.audit.options import AuditOptions
from exporter.node.audit.reasons import SOURCE, AuditReason, GapReason
from exporter.node.config import node_config
from exporter.snapshot import SourceProblem
from tests.exporter.node.audit.days import decoded, of_event
from tests.exporter.node.pod_node import pod, pod_node, uuid
from tests.exporter.node.scenario_flow import HOSTNAME, SimulatedFlow
from tests.exporter.node.test_pipeline import of

PROBLEM = SourceProblem(SOURCE, AuditReason.UNWRITABLE, "the disk is full")


@dataclass
class Noted:
    """Takes the observations in place of a thread that writes them."""

    observations: list = field(default_factory=list)
    found: tuple = ()
    wrote_at: float | None = None
    failures: int = 0

    def put(self, observation):
        self.observations.append(observation)

    def problems(self):
        return self.found

    def close(self): ...


@pytest.fixture
def noted():
    return Noted()


def flow_of(noted, name="whole"):
    return SimulatedFlow(name, audit=AuditLog(noted, HOSTNAME))


def test_each_collection_notes_what_is_allocated_and_how_busy_it_is(noted):
    flow = flow_of(noted)
    exposition = flow.exposition(61)
    (observation,) = noted.observations
    info = of(exposition, "gpugauge_allocation_info")
    assert {(key.device.uuid, key.pod, key.resource) for key in observation.node.seen} == {
        (labels["UUID"], labels["gpu_pod"], labels["resource"]) for labels, _ in info
    }
    busy = {labels["UUID"]: value for labels, value in of(exposition, "DCGM_FI_PROF_GR_ENGINE_ACTIVE")}
    used = {labels["UUID"]: value for labels, value in of(exposition, "DCGM_FI_DEV_FB_USED")}
    for key, seen in observation.node.seen.items():
        assert observation.busy[seen.position] >= busy[key.device.uuid]
        assert observation.memory[seen.position] == used[key.device.uuid] * 2**20
    assert observation.at == flow.now()


def test_mig_devices_are_noted_with_their_ids(noted):
    flow_of(noted, "mig").exposition(61)
    (observation,) = noted.observations
    devices = {key.device for key in observation.node.seen}
    assert {bool(device.profile) for device in devices if device.gi >= 0} == {True}
    assert {device.profile for device in devices if device.gi < 0} <= {""}
    assert all(DeviceId(device.uuid) not in observation.node.unknown for device in devices)


def test_the_last_answer_of_a_kubelet_that_is_away_is_exposed_and_not_noted(noted):
    flow = flow_of(noted)
    flow.exposition(61)
    flow.kubelet.reason = "no_answer"
    assert of(flow.exposition(71), "gpugauge_allocation_info")
    flow.kubelet.reason = ""
    flow.exposition(81)
    assert [isinstance(each.node, GapReason) and each.node for each in noted.observations] == [
        False, GapReason.KUBELET, False,
    ]  # fmt: skip


def test_while_the_devices_cannot_be_read_nothing_is_noted_of_them(noted):
    flow = flow_of(noted)
    flow.devices.reason = "connection_lost"
    flow.exposition(61)
    assert [each.node for each in noted.observations] == [GapReason.DEVICES]


def test_the_metrics_of_the_log_are_there_while_it_is_on(noted):
    flow = flow_of(noted)
    exposition = flow.exposition(61)
    assert of(exposition, "gpugauge_audit_last_write_timestamp_seconds") == []
    noted.wrote_at, noted.failures, noted.found = 1234.5, 2, (PROBLEM,)
    exposition = flow.exposition(71)
    assert of(exposition, "gpugauge_audit_last_write_timestamp_seconds") == [({"node": HOSTNAME}, 1234.5)]
    assert of(exposition, "gpugauge_audit_write_failures_total") == [({"node": HOSTNAME}, 2)]
    problems = [labels["source"] for labels, _ in of(exposition, "gpugauge_source_problem")]
    assert SOURCE in problems
    assert b"gpugauge_audit" not in SimulatedFlow("whole").exposition(61).text


def test_with_pod_metadata_uid_workload_and_the_annotations_that_are_asked_for_are_noted(noted, tmp_path):
    flags = ("--audit-log=-", "--audit-annotations=example.com/requester")
    with pod_node(tmp_path, *flags, audit=AuditLog(noted, HOSTNAME)) as node:
        annotations = {"example.com/requester": "ann", "secret": "x"}
        node.put(pod("a", labels={"app": "x"}, annotations=annotations, owner=("Job", "train")))
        node.kubelet.rows = [("a", uuid(0))]
        series = node.exposed()
        observation = noted.observations[-1]
        (line,) = started(observation, node.config.audit.annotations)
        assert (line.pod_uid, line.workload, line.workload_type) == ("uid-of-a", "train", "job")
        assert (line.requested_by, line.from_metadata) == ({"example.com/requester": "ann"}, False)
        assert not any("ann" in labels.values() for _, labels, _ in series)


def started(observation, annotations):
    ledger = Ledger(Chain(HOSTNAME, "c1"), 30.0, annotations=annotations)
    return of_event(decoded(ledger.observe(observation)), AllocationStarted)


def options(*words):
    return node_config(cli.parse(["node", *words], {}), {"NODE_NAME": "node-1"}).audit


def test_the_options_of_the_log():
    assert options() is None
    assert options("-k", "--audit-log", "-") == AuditOptions(None, 16 << 20, 20)
    file = options("--source=simulated", "--audit-log=/a/b", "--audit-log-maxsize=0", "--audit-log-maxbackup=0")
    assert (str(file.file), file.max_bytes, file.rotated) == ("/a/b", 1 << 20, 0)
    assert options("-k", "--audit-log=-", "--audit-annotations=a,b", "--audit-annotations=c").annotations == (*"abc",)


def test_without_attribution_there_is_nothing_to_write():
    with pytest.raises(ConfigError, match="--audit-log needs --kubernetes"):
        options("--audit-log", "-")
