"""What panels show of the devices of `mixed.py`, with a real Prometheus and the generated rules."""

import re
import time
from contextlib import contextmanager

import pytest

from tests.dashboards.mixed import NODE_A, NODE_B, WATCHER, health, pending_since
from tests.dashboards.prometheus import eventually, prometheus, query
from tests.dashboards.rendered import RENDERED, filled, panels

pytestmark = pytest.mark.prometheus

FIRING = """
groups:
- name: firing
  interval: 1s
  rules:
  - alert: SomethingIsWrong
    expr: vector(1)
    labels: {component: gpu, severity: warning, area: hardware, node: a}
"""
OTHER_THRESHOLDS = """
groups:
- name: gpugauge-thresholds
  interval: 1s
  rules:
  - {record: "global:gpugauge_threshold:value", expr: vector(0.3), labels: {alert: GPUPodLowUtilization}}
  - {record: "global:gpugauge_threshold:value", expr: vector(0.45), labels: {alert: GPUPodIdle}}
"""
# The series that are recorded last, because rules read each other's series one evaluation later.
LAST = (
    "workload:gpu_pending_oldest:info",
    'pod:gpu_low_utilization_threshold:ratio{pod="idle-0"} == 0.3',
    'pod:gpu_workload:info{pod="idle-0", workload="idle"}',
    'pod:gpu_busy:ratio{pod="nb-0"}',
    "ALERTS_FOR_STATE",
    "model:gpu_power_watts:sum",
    "cluster:gpu_idle_devices:count15m",
)


@pytest.fixture(scope="module")
def started():
    return int(time.time())


@contextmanager
def running(folder, started, rules):
    """Run a Prometheus with everything above. Yields its URL once the last series are recorded."""
    jobs = {
        "/a": {"job": "gpugauge-node", "node": "a"},
        "/b": {"job": "gpugauge-node", "node": "b"},
        "/watcher": {"job": "gpugauge-cluster"},
    }
    samples = {
        "/a": [*NODE_A, *health("a", started)],
        "/b": [*NODE_B, *health("b", started, observed=1)],
        "/watcher": [*WATCHER, pending_since(started - 1800)],
    }
    expositions = {path: "\n".join(lines) + "\n" for path, lines in samples.items()}
    with prometheus(folder, jobs, expositions, {"firing.yaml": FIRING, **rules}) as address:
        for last in LAST:
            eventually(lambda last=last: query(address, "query", query=last) != [], last)
        yield address


@pytest.fixture(scope="module")
def base(tmp_path_factory, started):
    with running(tmp_path_factory.mktemp("prometheus"), started, {}) as address:
        yield address


@pytest.fixture(scope="module")
def base_with_other_thresholds(tmp_path_factory, started):
    with running(tmp_path_factory.mktemp("thresholds"), started, {"thresholds.yaml": OTHER_THRESHOLDS}) as address:
        yield address


def expression_of(uid, title, ref="A"):
    (panel,) = [each for each in panels(RENDERED[uid]) if each["title"] == title]
    (target,) = [each for each in panel["targets"] if each["refId"] == ref]
    return filled(target["expr"], "30s", "1s")


def values(base, uid, title, ref, labels):
    """The values of the series of a panel's query that have these labels."""
    result = query(base, "query", query=expression_of(uid, title, ref))
    return [float(each["value"][1]) for each in result if labels.items() <= each["metric"].items()]


def expect(base, expected, uid, title, ref="A", **labels):
    """Wait until exactly one series of a panel's query has these labels, and the expected value.

    A scrape that takes longer than its interval of 1 s, as on a busy machine, ends series for that long.
    """

    def found():
        return values(base, uid, title, ref, labels)

    eventually(lambda: found() == [pytest.approx(expected)], lambda: f"{title} {ref}: {found()}, not {expected}")


def expect_nothing(base, uid, title, ref="A", **labels):
    eventually(lambda: values(base, uid, title, ref, labels) == [], lambda: f"{title} {ref} shows something")


def only_value(base, uid, title, ref="A", **labels):
    """The value of the only series of a panel's query that has these labels."""
    found = []

    def one():
        found[:] = values(base, uid, title, ref, labels)
        return len(found) == 1

    eventually(one, lambda: f"{title} {ref}: {found}")
    return found[0]


def test_gpus_are_counted_once_whether_mig_enabled_or_not(base):
    expect(base, 4, "gpu-fleet", "GPUs")
    expect(base, 1, "gpu-fleet", "Nodes", node="b")
    expect(base, 1, "gpu-fleet", "Models", model="NVIDIA-A100")


def test_a_gpu_whose_mig_devices_are_allocated_is_allocated_once(base):
    expect(base, 1, "gpu-fleet", "Allocated")
    expect(base, 0, "gpu-fleet", "Unallocated")
    expect(base, 1, "gpu-fleet", "Nodes", "B", node="b")


def test_the_states_of_devices_add_up_to_all_of_them(base):
    expect(base, 5, "gpu-fleet", "State of GPUs and MIG devices", "A")
    expect(base, 1, "gpu-fleet", "State of GPUs and MIG devices", "B")
    expect(base, 2, "gpu-fleet", "State of GPUs and MIG devices", "D")
    expect_nothing(base, "gpu-fleet", "State of GPUs and MIG devices", "C")
    expect_nothing(base, "gpu-fleet", "State of GPUs and MIG devices", "E")


def test_idle_allocated_devices_are_counted_and_their_pod_is_listed(base):
    expect(base, 1, "gpu-fleet", "Allocated but idle")
    row = {"namespace": "vision", "workload": "idle", "workload_type": "job", "pod": "idle-0", "node": "a"}
    expect(base, 0, "gpu-fleet", "Low-utilization pods", "A", **row)
    expect(base, 0.3, "gpu-fleet", "Low-utilization pods", "B", **row)
    expect(base, 1, "gpu-fleet", "Low-utilization pods", "C", **row)
    expect(base, 1, "gpu-fleet", "Pods below threshold")


def test_idle_devices_are_those_below_the_default_threshold_when_no_other_is_recorded(base):
    expect(base, 1, "gpu-node", "Allocated but idle")
    expect(base, 1, "gpu-fleet", "Idle GPUs by namespace", namespace="vision")
    expect_nothing(base, "gpu-fleet", "Idle GPUs by namespace", namespace="notebooks")
    expect(base, 0, "gpu-fleet", "Namespaces", "D", namespace="notebooks")


def test_another_recorded_idle_threshold_changes_which_devices_count_as_idle(base_with_other_thresholds):
    base = base_with_other_thresholds
    for uid in ("gpu-fleet", "gpu-node"):
        expect(base, 4, uid, "Allocated but idle")
    expect(base, 2, "gpu-fleet", "State of GPUs and MIG devices", "A")
    expect(base, 4, "gpu-fleet", "State of GPUs and MIG devices", "B")
    for namespace, idle in (("vision", 1), ("notebooks", 3)):
        expect(base, idle, "gpu-fleet", "Idle GPUs by namespace", namespace=namespace)
        expect(base, idle, "gpu-fleet", "Namespaces", "D", namespace=namespace)


def test_no_panel_has_an_idle_threshold_of_its_own():
    expressions = {
        panel["title"]: target["expr"]
        for dashboard in RENDERED.values()
        for panel in panels(dashboard)
        for target in panel["targets"]
    }
    assert [title for title, expression in expressions.items() if "threshold:value{" in expression] == []
    assert [title for title, expression in expressions.items() if re.search(r"\b0\.0*1\b", expression)] == []


def test_the_mean_of_allocated_gpus_excludes_unallocated_ones(base):
    expect(base, (0.8 + 0 + 0.5 + 3 * 0.4) / 6, "gpu-fleet", "Busy, allocated")


def test_a_share_of_the_weekly_report_is_one_of_the_same_hours_whatever_the_step(base):
    expect(base, (0.8 + 0 + 0.5 + 3 * 0.4) / 6, "gpu-weekly", "Busy while allocated")
    expect(base, 0.4, "gpu-weekly", "Namespaces by idle GPU-hours", "C", namespace="notebooks")


def test_memory_and_power_are_sums_in_which_each_gpu_counts_once(base):
    expect(base, 1100, "gpu-fleet", "Power")
    expect(base, 900, "gpu-fleet", "Models", "F", model="NVIDIA-H100")
    expect(base, (3 * 30 + 2 * 5) / (3 * 80 + 3 * 10), "gpu-fleet", "Memory used")


def test_a_pending_workload_is_listed_with_reason_age_and_number_of_pods(base, started):
    row = {"namespace": "vision", "workload": "next", "reason": "insufficient_gpu", "pod": "next-0"}
    age = only_value(base, "gpu-fleet", "Pending workloads", "A", **row)
    assert 1800 <= age <= time.time() - (started - 1800)
    expect(base, 1, "gpu-fleet", "Pending workloads", "B", **row)
    expect(base, 1, "gpu-fleet", "Pending pods")


def test_no_pending_pods_are_zero_only_while_the_watcher_answers(base):
    expression = expression_of("gpu-fleet", "Pending pods").replace("workload:gpu_pending_pods:count", "none_pending")
    eventually(lambda: [each["value"][1] for each in query(base, "query", query=expression)] == ["0"], "zero")
    assert query(base, "query", query=expression.replace("gpugauge-cluster", "gone")) == []


def test_allocations_are_listed_with_their_device_and_its_activity(base):
    expect(base, 0.4, "gpu-node", "Allocations", "B", pod="nb-0", gpu="0", GPU_I_PROFILE="1g.10gb")
    expect(base, 0.5, "gpu-node", "Allocations", "B", pod="two", gpu="2")


def test_firing_alerts_are_listed_with_the_time_since_when(base, started):
    alert = {"alertname": "SomethingIsWrong", "severity": "warning"}
    since = only_value(base, "gpu-fleet", "Alerts that fire", **alert)
    assert started <= since / 1000 <= time.time()


def test_expected_gpus_that_cannot_be_read_are_counted(base):
    expect(base, 2, "gpu-node", "Missing GPUs")
