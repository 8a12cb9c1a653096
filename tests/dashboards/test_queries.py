"""Every query of every dashboard against a real Prometheus with the generated rules: it runs, and it shows something.

The scene: node `a` with a busy and an idle whole card and one that two pods share, node `b` with one card of three MIG
instances of which one is free and one more that two compute instances share, and a workload that waits.
"""

import re
import time

import pytest

from dashboards import DASHBOARDS
from dashboards.panels import render
from tests.dashboards.prometheus import eventually, prometheus, query

NOW = int(time.time())
EMPTY = {
    # Nothing was recorded a week ago, nothing is wrong with a source.
    "Held and busy, against last week",
    "What GPUs and instances do",
    "Rejected values",
}
POD = 'namespace="{ns}",pod="{pod}",container="main",gpu_namespace="{ns}",gpu_pod="{pod}",gpu_container="main"'


def pod(namespace, name):
    return POD.format(ns=namespace, pod=name)


def device(uuid, index, *, node="a", gi="", ci="", profile="1g.10gb"):
    instance = f',GPU_I_ID="{gi}",GPU_I_PROFILE="{profile}"' if gi else ""
    instance += f',GPU_CI_ID="{ci}"' if ci else ""
    return f'gpu="{index}",UUID="{uuid}",hostname="{node}"{instance}'


def holders(labels, number):
    return "gpugauge_device_holders{" + re.sub(r',GPU_I_PROFILE="[^"]*"', "", labels) + "} " + str(number)


def activity(labels, share, *, used=30_000, free=50_000):
    return [
        f'gpugauge_device_info{{{labels},model="NVIDIA-H100"}} 1',
        f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels}}} {share}",
        f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{labels}}} {share / 2}",
        f"DCGM_FI_PROF_DRAM_ACTIVE{{{labels}}} {share / 3}",
        f"DCGM_FI_DEV_FB_USED{{{labels}}} {used}",
        f"DCGM_FI_DEV_FB_FREE{{{labels}}} {free}",
    ]


def board(labels, watts):
    return [
        f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} {watts}",
        f"DCGM_FI_DEV_GPU_TEMP{{{labels}}} 60",
        f"DCGM_FI_DEV_MEMORY_TEMP{{{labels}}} 70",
    ]


def health(node, observed=3):
    return [
        f'gpugauge_source_up{{source="dcgm",hostname="{node}"}} 1',
        f'gpugauge_source_problem{{source="dcgm",reason="profiling_unavailable",hostname="{node}"}} 1',
        f'gpugauge_source_read_duration_seconds{{source="dcgm",hostname="{node}"}} 0.004',
        f'gpugauge_rejected_values_total{{field="DCGM_FI_DEV_GPU_TEMP",reason="blank",hostname="{node}"}} 3',
        f'gpugauge_devices_expected{{hostname="{node}"}} 3',
        f'gpugauge_devices_observed{{hostname="{node}"}} {observed}',
        f'gpugauge_snapshot_timestamp_seconds{{hostname="{node}"}} {NOW}',
        (
            f'gpugauge_build_info{{version="0.1.0",contract="1",dcgm_version="4.2",nvml_version="13",python_version="3.11",'
            f'source="dcgm",hostname="{node}"}} 1'
        ),
    ]


def held(labels, namespace, name):
    return (
        f'gpugauge_allocation_info{{{labels},{pod(namespace, name)},resource="nvidia_com_gpu",sharing="exclusive"}} 1'
    )


A0, A1, A2 = (device(f"GPU-a{i}", i) for i in range(3))
B0, B1, B2, B3 = (device("GPU-b0", 0, node="b", gi=gi) for gi in ("", "1", "2", "3"))
# An instance that two compute instances share: it cannot itself be given out.
C, C0, C1 = (device("GPU-b0", 0, node="b", gi="4", ci=ci) for ci in ("", "0", "1"))

PAGE_A = [
    *activity(A0, 0.8),
    *activity(A1, 0.0),
    *activity(A2, 0.5),
    *board(A0, 500),
    *board(A1, 100),
    *board(A2, 300),
    held(A0, "vision", "busy-0"),
    held(A1, "vision", "idle-0"),
    held(A2, "chat", "one"),
    held(A2, "chat", "two"),
    holders(A0, 1),
    holders(A1, 1),
    holders(A2, 2),
    *(f"gpugauge_device_up{{{labels}}} 1" for labels in (A0, A1, A2)),
    *health("a"),
]
PAGE_B = [
    f'gpugauge_device_info{{{B0},model="NVIDIA-A100"}} 1',
    *board(B0, 200),
    *(line.replace("H100", "A100") for line in activity(B1, 0.4, used=5_000, free=5_000)),
    *(line.replace("H100", "A100") for line in activity(B2, 0.0, used=0, free=10_000)),
    *(line.replace("H100", "A100") for line in activity(B3, 0.4, used=5_000, free=5_000)),
    held(B1, "notebooks", "nb-0"),
    held(B3, "notebooks", "nb-1"),
    holders(B1, 1),
    holders(B2, 0),
    holders(B3, 1),
    *(f'gpugauge_device_info{{{labels},model="NVIDIA-A100"}} 1' for labels in (C, C0, C1)),
    *(f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels}}} 0.4" for labels in (C0, C1)),
    held(C0, "notebooks", "nb-2"),
    holders(C0, 1),
    holders(C1, 0),
    f"gpugauge_device_up{{{B0}}} 1",
    *health("b", observed=1),
]


def watched(name, namespace="vision", workload="idle", class_="training"):
    return (
        f'gpugauge_gpu_pod_info{{{pod(namespace, name)},node="a",workload="{workload}",workload_type="job",'
        f'class="{class_}",priority_class=""}} 1'
    )


WATCHER = [
    watched("busy-0", workload="busy"),
    watched("idle-0"),
    (
        f'gpugauge_pending_pod_since_timestamp_seconds{{{pod("vision", "next-0")},resource="nvidia_com_gpu",'
        f'workload="next",workload_type="job"}} {NOW - 1800}'
    ),
    (
        f'gpugauge_pending_pod_reason{{{pod("vision", "next-0")},workload="next",workload_type="job",'
        f'reason="insufficient_gpu"}} 1'
    ),
]
FIRING = """
groups:
- name: scene
  interval: 1s
  rules:
  - alert: SomethingIsWrong
    expr: vector(1)
    labels: {component: gpu, severity: warning, area: hardware, node: a}
"""
# What comes last: rules read each other's series one evaluation later.
LAST = (
    "workload:gpu_pending_oldest:info",
    'pod:gpu_low_utilization_threshold:ratio{pod="idle-0"} == 0.3',
    'pod:gpu_workload:info{pod="idle-0", workload="idle"}',
    'pod:gpu_busy:ratio{pod="nb-0"}',
    "ALERTS_FOR_STATE",
    "gpu_instance:memory_used:ratio",
)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    jobs = {
        "/a": {"job": "gpugauge-node", "node": "a"},
        "/b": {"job": "gpugauge-node", "node": "b"},
        "/watcher": {"job": "gpugauge-cluster"},
    }
    pages = {"/a": PAGE_A, "/b": PAGE_B, "/watcher": WATCHER}
    texts = {path: "\n".join(lines) + "\n" for path, lines in pages.items()}
    with prometheus(tmp_path_factory.mktemp("prometheus"), jobs, texts, FIRING) as address:
        for last in LAST:
            eventually(lambda last=last: query(address, "query", query=last) != [], last)
        yield address


def chosen(expression):
    text = expression.replace("$__rate_interval", "30s")
    return re.sub(r"\$[a-z]+", ".*", text)


def every_query():
    for each in DASHBOARDS:
        rendered = render(each)
        inner = [panel for row in rendered["panels"] for panel in row.get("panels", [])]
        for panel in [*rendered["panels"], *inner]:
            for target in panel.get("targets", []):
                yield pytest.param(panel["title"], target, id=f"{each.uid}: {panel['title']} {target['refId']}")


@pytest.mark.parametrize(("title", "target"), list(every_query()))
def test_a_query_runs_and_shows_something(base, title, target):
    expression = chosen(target["expr"])

    def answer():
        if target["instant"]:
            return query(base, "query", query=expression)
        now = time.time()
        return query(base, "query_range", query=expression, start=str(now - 5), end=str(now), step="1")

    if title in EMPTY:
        answer()
    else:
        eventually(lambda: answer() != [], expression, seconds=15)


def expression_of(uid, title, ref="A"):
    rendered = render(next(each for each in DASHBOARDS if each.uid == uid))
    panel = next(panel for panel in rendered["panels"] if panel["title"] == title)
    return chosen(next(target["expr"] for target in panel["targets"] if target["refId"] == ref))


def value(base, uid, title, ref="A", **labels):
    """The value of the only series of a panel's query that has these labels."""
    result = query(base, "query", query=expression_of(uid, title, ref))
    found = [each for each in result if labels.items() <= each["metric"].items()]
    assert len(found) == 1, found
    return pytest.approx(float(found[0]["value"][1]))


def nothing(base, uid, title, ref):
    return query(base, "query", query=expression_of(uid, title, ref)) == []


def test_cards_are_counted_once_however_they_are_partitioned(base):
    assert value(base, "gpu-fleet", "GPUs") == 4
    assert value(base, "gpu-fleet", "Nodes", node="b") == 1
    assert value(base, "gpu-fleet", "Models", model="NVIDIA-A100") == 1


def test_a_card_of_which_instances_are_held_is_held_once(base):
    assert value(base, "gpu-fleet", "Held") == 1
    assert value(base, "gpu-fleet", "Free") == 0
    assert value(base, "gpu-fleet", "Nodes", "B", node="b") == 1


def test_the_parts_of_what_gpus_do_add_up_to_all_of_them(base):
    assert value(base, "gpu-fleet", "What GPUs and instances do", "A") == 5
    assert value(base, "gpu-fleet", "What GPUs and instances do", "B") == 1
    assert value(base, "gpu-fleet", "What GPUs and instances do", "D") == 2
    assert nothing(base, "gpu-fleet", "What GPUs and instances do", "C")
    assert nothing(base, "gpu-fleet", "What GPUs and instances do", "E")


def test_idle_held_devices_are_counted_and_their_pod_is_named(base):
    assert value(base, "gpu-fleet", "Held but idle") == 1
    row = {"namespace": "vision", "workload": "idle", "workload_type": "job", "pod": "idle-0", "node": "a"}
    assert value(base, "gpu-fleet", "Low-utilisation pods", "A", **row) == 0
    assert value(base, "gpu-fleet", "Low-utilisation pods", "B", **row) == 0.3
    assert value(base, "gpu-fleet", "Low-utilisation pods", "C", **row) == 1
    assert value(base, "gpu-fleet", "Pods below their limit") == 1


def test_the_mean_of_held_gpus_leaves_free_ones_out(base):
    assert value(base, "gpu-fleet", "Utilisation of held GPUs") == (0.8 + 0 + 0.5 + 3 * 0.4) / 6


def test_memory_and_power_are_sums_over_each_card_once(base):
    assert value(base, "gpu-fleet", "Power") == 1100
    assert value(base, "gpu-fleet", "Models", "F", model="NVIDIA-H100") == 900
    assert value(base, "gpu-fleet", "Memory used") == (3 * 30 + 2 * 5) / (3 * 80 + 3 * 10)


def test_a_waiting_workload_is_listed_with_reason_age_and_number_of_pods(base):
    row = {"namespace": "vision", "workload": "next", "reason": "insufficient_gpu", "pod": "next-0"}
    assert 1800 <= value(base, "gpu-fleet", "Pending workloads", "A", **row).expected < 2400
    assert value(base, "gpu-fleet", "Pending workloads", "B", **row) == 1
    assert value(base, "gpu-fleet", "Waiting pods") == 1


def test_nobody_waiting_is_zero_only_while_the_watcher_answers(base):
    expression = expression_of("gpu-fleet", "Waiting pods")
    nobody = expression.replace("workload:gpu_pending_pods:count", "nobody_waits")
    assert query(base, "query", query=nobody)[0]["value"][1] == "0"
    assert query(base, "query", query=nobody.replace("gpugauge-cluster", "gone")) == []


def test_holders_are_named_with_their_device_and_its_activity(base):
    assert value(base, "gpu-node", "Who holds what", "B", pod="nb-0", gpu="0", GPU_I_PROFILE="1g.10gb") == 0.4
    assert value(base, "gpu-node", "Who holds what", "B", pod="two", gpu="2") == 0.5


def test_alerts_that_fire_are_listed_with_the_time_since_when(base):
    since = value(base, "gpu-fleet", "Alerts that fire", alertname="SomethingIsWrong", severity="warning").expected
    assert abs(since / 1000 - time.time()) < 600


def test_cards_that_should_be_there_and_are_not_are_counted(base):
    assert value(base, "gpu-node", "Missing cards") == 2
