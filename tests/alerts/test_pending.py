"""GPUWorkloadPending: one alert per workload, which a changed reason does not restart, with the reason in its text."""

import pytest

from alerts import GROUPS
from alerts.rules.rule import QUICK_INTERVAL_SECONDS, RUNBOOK, Alert
from alerts.rules.rulefile import labels_of
from tests.alerts.fleet import always, stored
from tests.alerts.promtool import RuleFixture, dashboard_of, run, write_rules, write_test

pytestmark = pytest.mark.prometheus

ALERT = "GPUWorkloadPending"


class Queue:
    """Pending pods of one namespace as a watcher exposes them."""

    def __init__(
        self, fixture: RuleFixture, namespace: str, *, honor: bool = True, watcher: str = "0", cluster: str = ""
    ) -> None:
        self.fixture, self.namespace, self.honor = fixture, namespace, honor
        self.target = {"job": "gpugauge-cluster", "instance": f"watcher-{watcher}:9410", "cluster": cluster}
        self.target |= {"namespace": "monitoring", "pod": f"watcher-{watcher}", "container": "watcher"}

    def pod(self, name: str, since: str, reasons: dict[str, str], workload: str = "train", kind: str = "Job") -> None:
        ids = {"namespace": self.namespace, "pod": name, "gpu_namespace": self.namespace, "gpu_pod": name}
        owner = {"workload": workload, "workload_type": kind}
        self._add("gpugauge_pending_pod_since_timestamp_seconds", {**ids, **owner, "resource": "nvidia_com_gpu"}, since)
        for reason, values in reasons.items():
            self._add("gpugauge_pending_pod_reason", {**ids, **owner, "reason": reason}, values)

    def _add(self, name: str, exposed: dict[str, str], values: str) -> None:
        self.fixture.add(name, stored(exposed, self.target, honor=self.honor), values)


def _firing(fixture: RuleFixture, namespace: str, minute: float, *workloads: str) -> None:
    chosen = f'alertname="{ALERT}", alertstate="firing", namespace="{namespace}"'
    found = (({"workload": workload}, 1.0) for workload in sorted(workloads))
    fixture.expect(f"count by (workload) (ALERTS{{{chosen}}})", minute, *found)


def _check(tmp_path, fixture: RuleFixture) -> None:
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [fixture], interval=QUICK_INTERVAL_SECONDS)
    assert run(path)[path] == ""


def test_a_workload_fires_once_its_oldest_pod_has_been_pending_for_15_minutes(tmp_path):
    fixture = RuleFixture()
    for honor in (True, False):
        name = f"pending-{honor}"
        Queue(fixture, name, honor=honor).pod("train-0", always(0), {"insufficient_gpu": always(1)})
        for minute, firing in ((10, ()), (15, ()), (17, ("train",)), (25, ("train",)), (40, ("train",))):
            _firing(fixture, name, minute, *firing)
    _check(tmp_path, fixture)


def test_a_gang_of_pods_is_one_alert_and_two_workloads_are_two(tmp_path):
    fixture = RuleFixture()
    queue = Queue(fixture, "gang")
    for rank in range(20):
        queue.pod(f"train-{rank}", always(0), {"gang": always(1)})
    queue.pod("other-0", always(0), {"taint": always(1)}, "other")
    _firing(fixture, "gang", 25, "train", "other")
    _check(tmp_path, fixture)


def test_a_reason_that_changes_all_the_time_does_not_restart_the_alert(tmp_path):
    fixture = RuleFixture()
    turns = {"insufficient_gpu": "1 stale " * 60, "not_tried": "_ 1 stale " + "1 stale " * 58}
    Queue(fixture, "flips").pod("train-0", always(0), turns)
    for minute in (17, 17.5, 18, 25.5):
        _firing(fixture, "flips", minute, "train")
    _check(tmp_path, fixture)


def test_two_watchers_and_a_failover_between_them_are_one_alert(tmp_path):
    fixture = RuleFixture()
    for watcher, values in (("0", "0x59 stale"), ("1", "_x20 60x100")):
        reasons = {"insufficient_gpu": values.replace("0x59", "1x59").replace("60x", "1x")}
        Queue(fixture, "failover", watcher=watcher).pod("train-0", values, reasons)
    for minute in (17, 29, 30, 31, 40):
        _firing(fixture, "failover", minute, "train")
    _check(tmp_path, fixture)


@pytest.mark.parametrize("failover", [8, 14.5, 15.5, 16, 16.5, 25])
def test_a_failover_with_a_lease_ends_no_alert_and_delays_none_by_more_than_its_for(tmp_path, failover):
    """The leader is gone after this minute; one scrape later, at most, the other replica exposes the same pods."""
    fixture = RuleFixture()
    for gap in (0, 1):
        last = round(failover * 2)
        for watcher, first in (("0", 0), ("1", last + 1 + gap)):
            since, reason = (f"{value}x{last} stale" if first == 0 else f"_x{first} {value}x100" for value in (0, 1))
            Queue(fixture, f"gap-{gap}", watcher=watcher).pod("train-0", since, {"taint": reason})
        for minute in (10, *(18, 20, 25, 25.5, 26, 26.5, 27, 35)):
            _firing(fixture, f"gap-{gap}", minute, *(("train",) if minute > 10 else ()))
    _check(tmp_path, fixture)


def test_a_gap_of_a_few_minutes_does_not_end_the_alert_and_a_start_does(tmp_path):
    fixture = RuleFixture()
    Queue(fixture, "gap").pod("train-0", "0x39 stale _x5 0x100", {"taint": "1x39 stale _x5 1x100"})
    for minute in (19, 21, 22, 24, 30):
        _firing(fixture, "gap", minute, "train")
    Queue(fixture, "starts").pod("train-0", "0x39 stale", {"taint": "1x39 stale"})
    _firing(fixture, "starts", 19, "train")
    _firing(fixture, "starts", 26)
    _check(tmp_path, fixture)


def test_time_with_a_scheduling_gate_does_not_count_and_younger_pods_do_not_hide_the_oldest(tmp_path):
    fixture = RuleFixture()
    Queue(fixture, "gated").pod("train-0", "_x60 1800x100", {"not_tried": "_x60 1x100"})
    for minute, firing in ((20, ()), (40, ()), (47, ("train",))):
        _firing(fixture, "gated", minute, *firing)
    queue = Queue(fixture, "mixed")
    queue.pod("train-old", always(0), {"taint": always(1)})
    queue.pod("train-new", "_x20 600x100", {"taint": "_x20 1x100"})
    _firing(fixture, "mixed", 17, "train")
    _check(tmp_path, fixture)


def test_the_same_workload_in_two_clusters_is_two_alerts_with_their_own_reasons(tmp_path):
    fixture = RuleFixture()
    for cluster, reason in (("east", "taint"), ("west", "volume")):
        Queue(fixture, "same-names", cluster=cluster).pod("train-0", always(0), {reason: always(1)})
        fixture.expect(
            f'workload:gpu_pending_oldest:info{{cluster="{cluster}"}} > bool 0',
            20,
            (
                {
                    "cluster": cluster,
                    "namespace": "same-names",
                    "workload": "train",
                    "workload_type": "Job",
                    "pod": "train-0",
                    "reason": reason,
                },
                1.0,
            ),
        )
    chosen = f'alertname="{ALERT}", alertstate="firing"'
    fixture.expect(
        f"count by (cluster) (ALERTS{{{chosen}}})", 20, ({"cluster": "east"}, 1.0), ({"cluster": "west"}, 1.0)
    )
    _check(tmp_path, fixture)


def test_the_threshold_is_a_constant_that_can_be_changed_or_missing(tmp_path):
    for name, constant, firing in (("missing", None, ("train",)), ("raised", 3600, ())):
        fixture = RuleFixture()
        if constant:
            fixture.add("global:gpugauge_threshold:value", {"alert": ALERT}, always(constant))
        Queue(fixture, name).pod("train-0", always(0), {"taint": always(1)})
        _firing(fixture, name, 20, *firing)
        folder = tmp_path / name
        folder.mkdir()
        groups = GROUPS[1:]
        path = write_test(folder / "test.json", write_rules(folder, groups), [fixture], groups, QUICK_INTERVAL_SECONDS)
        assert run(path)[path] == ""


def test_a_name_with_quotes_and_braces_is_shown_as_it_is_and_queries_nothing_else(tmp_path):
    fixture = RuleFixture()
    hostile = "x'} or label_replace(vector(7), 'reason', 'forged', '', '') or a{b='\\\"{{ 1 }}<b>"
    Queue(fixture, "team-a", cluster="west").pod("train-0", always(0), {"taint": always(1)}, hostile, "job'")
    Queue(fixture, "team-b", cluster="west").pod("train-0", always(0), {"volume": always(1)}, hostile, "job'")
    alert = next(rule for group in GROUPS for rule in group.rules if rule.name == ALERT)
    assert isinstance(alert, Alert)
    owner = {"workload": hostile, "workload_type": "job'"}
    expected = []
    for namespace, reason in (("team-a", "taint"), ("team-b", "volume")):
        labels = {**labels_of(alert), "cluster": "west", "namespace": namespace, **owner}
        text = {
            "summary": f"job' {namespace}/{hostile} has been pending for 25 minutes.",
            "description": (
                f"1 GPU pods of job' {namespace}/{hostile} could be scheduled and do not run. The oldest, train-0, "
                f"is pending: {reason}. All: 1 {reason}. The workload has been pending for 25 minutes."
            ),
            "reason": reason,
            "pods": "1",
            "runbook_url": f"{RUNBOOK}#gpuworkloadpending",
            "dashboard_url": dashboard_of(alert, labels),
        }
        expected.append((labels, text))
    fixture.expect_alerts(ALERT, 25, *expected)
    _check(tmp_path, fixture)


def test_the_text_names_the_reason_of_the_oldest_pod_and_counts_all(tmp_path):
    fixture = RuleFixture()
    queue = Queue(fixture, "team-a", honor=False, cluster="west")
    queue.pod("train-0", always(0), {"insufficient_gpu": always(1)})
    queue.pod("train-1", always(60), {"insufficient_gpu": always(1)})
    queue.pod("train-2", always(120), {"taint": always(1)})
    alert = next(rule for group in GROUPS for rule in group.rules if rule.name == ALERT)
    assert isinstance(alert, Alert)
    labels = {**labels_of(alert), "cluster": "west", "namespace": "team-a", "workload": "train", "workload_type": "Job"}
    text = {
        "summary": "Job team-a/train has been pending for 25 minutes.",
        "description": (
            "3 GPU pods of Job team-a/train could be scheduled and do not run. The oldest, train-0, is pending: "
            "insufficient_gpu. All: 2 insufficient_gpu, 1 taint. The workload has been pending for 25 minutes."
        ),
        "reason": "insufficient_gpu",
        "pods": "3",
        "runbook_url": f"{RUNBOOK}#gpuworkloadpending",
        "dashboard_url": dashboard_of(alert, labels),
    }
    fixture.expect_alerts(ALERT, 25, (labels, text))
    _check(tmp_path, fixture)
