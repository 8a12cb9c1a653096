"""The alert on verdicts of other programs: once per node, and never beside our own."""

import pytest

from alerts.alerting import node_problems, xids
from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture
from tests.alerts.targets import check, firing, on_node, on_watcher, texts

pytestmark = pytest.mark.prometheus

REPORTED = "GPUNodeProblemReported"


def _reported(fixture: RuleFixture, node: str, problem: str, writer: str = "NVSentinel", values: str = "") -> None:
    labels = {"node": node, "writer": writer, "problem": problem}
    on_watcher(fixture, "gpugauge_node_problem", labels, values or always(1))


def test_verdicts_of_others_are_one_alert_of_the_node_and_none_beside_our_own(tmp_path):
    fixture = RuleFixture()
    _reported(fixture, "twice", "GpuMemWatch")
    _reported(fixture, "twice", "GpuXid", "node-problem-detector")
    _reported(fixture, "ours", "GpuMemWatch")
    _reported(fixture, "planned", "GpuMemWatch")
    _reported(fixture, "shortly", "GpuMemWatch", values="1x6 stale")
    on_watcher(fixture, "gpugauge_node_maintenance", {"node": "planned", "reason": "planned"}, always(1))
    lost = {"node": "ours", "UUID": "GPU-1", "xid": "79"}
    on_node(fixture, "gpugauge_xid_last_timestamp_seconds", lost, "0+30x200")
    firing(fixture, REPORTED, 4, "node")
    for minute in (6, 30, 60):
        firing(fixture, REPORTED, minute, "node", "twice")
        firing(fixture, "GPUXidCritical", minute, "node", "ours")
    texts(
        fixture,
        REPORTED,
        30,
        {"node": "twice"},
        "Another program reports a problem with GPUs of node twice.",
        "Node twice is marked for its GPUs: GpuMemWatch (NVSentinel), GpuXid (node-problem-detector). The exporter has "
        "seen nothing of it that is critical.",
    )
    check(tmp_path, fixture, groups=(xids.GROUP, node_problems.GROUP))
