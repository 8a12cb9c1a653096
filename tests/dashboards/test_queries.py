"""Every query of every dashboard with a real Prometheus and the generated rules: it runs, and it shows something.

What is exposed: node `a` has a busy GPU, an idle one and one that two pods share; node `b` has one GPU with four GPU
instances, of which one is unallocated and one is shared by two compute instances; and one workload is pending.
"""

import re
import time
from contextlib import contextmanager

import pytest

from dashboards import DASHBOARDS
from dashboards.panels import render
from tests.dashboards.prometheus import eventually, prometheus, query

pytestmark = pytest.mark.prometheus

EMPTY = {
    # Nothing was recorded a week ago.
    ("Allocated and busy GPUs, compared with last week", "C"),
    ("Allocated and busy GPUs, compared with last week", "D"),
    # No activity and no allocation is unknown.
    ("State of GPUs and MIG devices", "C"),
    ("State of GPUs and MIG devices", "E"),
    # The counter does not grow.
    ("Rejected values", "A"),
}
"""Queries without a result, by panel and name of the query."""
POD = 'namespace="{ns}",pod="{pod}",container="main",gpu_namespace="{ns}",gpu_pod="{pod}",gpu_container="main"'


def pod(namespace, name):
    return POD.format(ns=namespace, pod=name)


def device(uuid, index, *, node="a", gi="", ci="", profile="1g.10gb"):
    instance = f',GPU_I_ID="{gi}",GPU_I_PROFILE="{profile}"' if gi else ""
    instance += f',GPU_CI_ID="{ci}"' if ci else ""
    return f'gpu="{index}",UUID="{uuid}",node="{node}"{instance}'


def allocated_pods(labels, number):
    return "gpugauge_device_allocated_pods{" + re.sub(r',GPU_I_PROFILE="[^"]*"', "", labels) + "} " + str(number)


def activity(labels, share, *, used=30_000, free=50_000):
    ids = re.sub(r'gpu="\d+",|,GPU_I_PROFILE="[^"]*"', "", labels)
    return [
        f'gpugauge_device_info{{{labels},model="NVIDIA-H100"}} 1',
        f"gpugauge_device_busy_ratio{{{ids}}} {share}",
        f"gpugauge_device_tensor_active_ratio{{{ids}}} {share / 2}",
        f"gpugauge_device_dram_active_ratio{{{ids}}} {share / 3}",
        f"gpugauge_device_memory_used_bytes{{{ids}}} {used}",
        f"gpugauge_device_memory_total_bytes{{{ids}}} {used + free}",
    ]


def gpu(labels, watts):
    ids = re.sub(r'gpu="\d+",', "", labels)
    return [
        f"gpugauge_gpu_power_watts{{{ids}}} {watts}",
        f"gpugauge_gpu_temperature_celsius{{{ids}}} 60",
        f"gpugauge_gpu_memory_temperature_celsius{{{ids}}} 70",
    ]


def health(node, now, observed=3):
    return [
        f'gpugauge_source_up{{source="dcgm",node="{node}"}} 1',
        f'gpugauge_source_problem{{source="dcgm",reason="profiling_unavailable",node="{node}"}} 1',
        f'gpugauge_source_read_duration_seconds{{source="dcgm",node="{node}"}} 0.004',
        f'gpugauge_rejected_values_total{{field="DCGM_FI_DEV_GPU_TEMP",reason="blank",node="{node}"}} 3',
        f'gpugauge_devices_expected{{node="{node}"}} 3',
        f'gpugauge_devices_observed{{node="{node}"}} {observed}',
        f'gpugauge_last_collection_timestamp_seconds{{node="{node}"}} {now}',
        (
            f'gpugauge_build_info{{version="0.1.0",contract="1",dcgm_version="4.2",nvml_version="13",python_version="3.11",'
            f'source="dcgm",node="{node}"}} 1'
        ),
    ]


def allocation(labels, namespace, name, share=None):
    """A device that is allocated to a container; `share` is how busy it is where that container has it alone."""
    found = [
        f'gpugauge_allocation_info{{{labels},{pod(namespace, name)},resource="nvidia_com_gpu",sharing="exclusive"}} 1'
    ]
    if share is not None:
        ids = re.sub(r'gpu="\d+",|,GPU_I_PROFILE="[^"]*"', "", labels)
        found.append(f"gpugauge_allocation_busy_ratio{{{ids},{pod(namespace, name)}}} {share}")
    return found


A0, A1, A2 = (device(f"GPU-a{i}", i) for i in range(3))
B0, B1, B2, B3 = (device("GPU-b0", 0, node="b", gi=gi) for gi in ("", "1", "2", "3"))
# A GPU instance that two compute instances share: it cannot be allocated itself.
C, C0, C1 = (device("GPU-b0", 0, node="b", gi="4", ci=ci) for ci in ("", "0", "1"))

NODE_A = [
    *activity(A0, 0.8),
    *activity(A1, 0.0),
    *activity(A2, 0.5),
    *gpu(A0, 500),
    *gpu(A1, 100),
    *gpu(A2, 300),
    *allocation(A0, "vision", "busy-0", 0.8),
    *allocation(A1, "vision", "idle-0", 0.0),
    *allocation(A2, "chat", "one"),
    *allocation(A2, "chat", "two"),
    allocated_pods(A0, 1),
    allocated_pods(A1, 1),
    allocated_pods(A2, 2),
    *(f"gpugauge_device_up{{{labels}}} 1" for labels in (A0, A1, A2)),
]
NODE_B = [
    f'gpugauge_device_info{{{B0},model="NVIDIA-A100"}} 1',
    *gpu(B0, 200),
    *(line.replace("H100", "A100") for line in activity(B1, 0.4, used=5_000, free=5_000)),
    *(line.replace("H100", "A100") for line in activity(B2, 0.0, used=0, free=10_000)),
    *(line.replace("H100", "A100") for line in activity(B3, 0.4, used=5_000, free=5_000)),
    *allocation(B1, "notebooks", "nb-0", 0.4),
    *allocation(B3, "notebooks", "nb-1", 0.4),
    allocated_pods(B1, 1),
    allocated_pods(B2, 0),
    allocated_pods(B3, 1),
    *(f'gpugauge_device_info{{{labels},model="NVIDIA-A100"}} 1' for labels in (C, C0, C1)),
    *(line for labels in (C0, C1) for line in activity(labels, 0.4)[1:2]),
    *allocation(C0, "notebooks", "nb-2", 0.4),
    allocated_pods(C0, 1),
    allocated_pods(C1, 0),
    f"gpugauge_device_up{{{B0}}} 1",
]


def watched(name, namespace="vision", workload="idle", workload_class="training"):
    return (
        f'gpugauge_gpu_pod_info{{{pod(namespace, name)},node="a",workload="{workload}",workload_type="job",'
        f'workload_class="{workload_class}",priority_class=""}} 1'
    )


WATCHER = [
    watched("busy-0", workload="busy"),
    watched("idle-0"),
    (
        f'gpugauge_pending_pod_reason{{{pod("vision", "next-0")},workload="next",workload_type="job",'
        f'reason="insufficient_gpu"}} 1'
    ),
]


def pending_since(since):
    return (
        f'gpugauge_pending_pod_since_timestamp_seconds{{{pod("vision", "next-0")},resource="nvidia_com_gpu",'
        f'workload="next",workload_type="job"}} {since}'
    )


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


def chosen(expression):
    text = expression.replace("$__rate_interval", "30s")
    return re.sub(r"\$[a-z]+", ".*", text)


def every_query():
    """The dashboard, the panel title and the target of every query."""
    for each in DASHBOARDS:
        rendered = render(each)
        inner = [panel for row in rendered["panels"] for panel in row.get("panels", [])]
        for panel in [*rendered["panels"], *inner]:
            for target in panel.get("targets", []):
                yield each.uid, panel["title"], target


def as_parameter(uid, title, target):
    return pytest.param(title, target, id=f"{uid}: {title} {target['refId']}")


@pytest.mark.parametrize(("title", "target"), [as_parameter(*found) for found in every_query()])
def test_a_query_runs_and_shows_something(base, title, target):
    expression = chosen(target["expr"])

    def answer():
        if target["instant"]:
            return query(base, "query", query=expression)
        now = time.time()
        return query(base, "query_range", query=expression, start=str(now - 5), end=str(now), step="1")

    if (title, target["refId"]) in EMPTY:
        answer()
    else:
        eventually(lambda: answer() != [], expression)


def expression_of(uid, title, ref="A"):
    (target,) = [t for found, name, t in every_query() if (found, name, t["refId"]) == (uid, title, ref)]
    return chosen(target["expr"])


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
    expect(base, 1, "gpu-fleet", "Pods below their threshold")


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
    expressions = {title: target["expr"] for _, title, target in every_query()}
    assert [title for title, expression in expressions.items() if "threshold:value{" in expression] == []
    assert [title for title, expression in expressions.items() if re.search(r"\b0\.0*1\b", expression)] == []


def test_the_mean_of_allocated_gpus_excludes_unallocated_ones(base):
    expect(base, (0.8 + 0 + 0.5 + 3 * 0.4) / 6, "gpu-fleet", "Busy, allocated")


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
