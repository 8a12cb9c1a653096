"""The watcher's page, from what is known of the cluster."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.node_description import model
from exporter.cluster.kubernetes.overrides import CLASS, OPTOUT, THRESHOLD, malformed
from exporter.cluster.kubernetes.records import Switches
from exporter.cluster.kubernetes.store import TableView
from exporter.cluster.metrics.families import METRICS, families
from exporter.identity_labels import POD
from exporter.metric import Kind
from simulators import objects
from tests.exporter.cluster.fixture import NOW, page, pod, view

GOLDEN = Path(__file__).parents[3] / "golden" / "watcher.txt"
GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"
H100 = objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)
T4 = objects.gpu_labels("Tesla T4-SHARED", 1, "time-slicing", 4)
FULL = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
CONFIG = ClusterConfig()


def shown(found, config=CONFIG):
    ignored = malformed(found.pods or (), (), NOW)
    return page(families(found, config, ignored))


def of(metric, series):
    return {key: value for key, value in series.items() if key.partition("{")[0] == metric}


def waiting(name, space="team-a", count=4, created=NOW - 1000, **more):
    return objects.unschedulable(objects.pod(name, space, {GPU: count}, created=created, **more), FULL, created + 1)


def cluster():
    """Three nodes, and a pod in every state."""
    nodes = [
        objects.node("h1", {GPU: 8}, {**H100, "eks.amazonaws.com/nodegroup": "big"}),
        objects.node("m1", {MIG: 7, GPU: 0}, objects.gpu_labels("NVIDIA-A100-SXM4-80GB", 1, mig="mixed")),
        objects.cordoned(
            objects.node(
                "t1", {"nvidia.com/gpu.shared": 4}, objects.gpu_labels("Tesla T4-SHARED", 1, "time-slicing", 4)
            )
        ),
        objects.node("cpu"),
    ]
    pods = [
        objects.running(
            objects.pod(
                "serve-5d9c-x",
                "team-a",
                {GPU: 6},
                objects.owner("ReplicaSet", "serve-5d9c", "team-a"),
                NOW - 90_000,
                {"pod-template-hash": "5d9c"},
                {THRESHOLD: "10pct", OPTOUT: "until-2027-01-20"},
            ),
            "h1",
            NOW - 89_990,
        ),
        waiting("train-0", owned_by=objects.owner("Job", "train", "team-a")),
        waiting("train-1", owned_by=objects.owner("Job", "train", "team-a"), created=NOW - 30),
        objects.gated(objects.pod("held", "team-b", {GPU: 2}, created=NOW - 7200), "kueue.x-k8s.io/admission"),
        objects.bound(objects.pod("pull", "team-b", {MIG: 1, GPU: 0}, created=NOW - 500), "m1", NOW - 499),
        objects.pod("new", "team-b", created=NOW - 5, annotations={CLASS: "batch"}),
    ]
    names = ("pods", "nodes", "namespaces")
    tables = tuple(TableView(name, (), NOW - 1, {"expired": 2}, 1, 0.5, None) for name in names)
    spaces = {"team-a": Switches(class_="serving"), "team-b": Switches(optout="disabled", threshold="50pct")}
    keep = [each for each in nodes if each["metadata"]["name"] != "cpu"]
    return replace(view(pods, keep, spaces), tables=tables)


def test_the_page_of_a_cluster_is_as_recorded(golden):
    golden("".join(f"{key} {value!r}\n" for key, value in shown(cluster()).items()), GOLDEN)


def test_every_metric_can_be_seen_on_the_recorded_page():
    lines = GOLDEN.read_text().splitlines()
    assert {metric.name for metric in METRICS} == {line.partition("{")[0].split()[0] for line in lines}


def test_counters_end_in_total_and_nothing_carries_a_hostname():
    for metric in METRICS:
        assert metric.name.endswith("_total") == (metric.kind == Kind.COUNTER)
        assert not {"hostname", "container", "gpu_container"} & set(metric.labels)


def test_free_devices_are_what_no_pod_holds():
    series = shown(cluster())
    assert series['gpugauge_node_gpu_free{node="h1",resource="nvidia_com_gpu",model="NVIDIA-H100-80GB-HBM3"}'] == 2
    assert series['gpugauge_node_gpu_requested{node="h1",resource="nvidia_com_gpu",model="NVIDIA-H100-80GB-HBM3"}'] == 6


def test_unhealthy_devices_leave_none_free_and_never_less():
    sick = objects.node("h1", {GPU: 8}, H100)
    sick["status"]["allocatable"][GPU] = "4"
    found = view([objects.running(objects.pod("p", requests={GPU: 6}), "h1")], [sick])
    labels = '{node="h1",resource="nvidia_com_gpu",model="NVIDIA-H100-80GB-HBM3"}'
    series = shown(found)
    assert series["gpugauge_node_gpu_capacity" + labels] == 8
    assert series["gpugauge_node_gpu_allocatable" + labels] == 4
    assert series["gpugauge_node_gpu_requested" + labels] == 6
    assert series["gpugauge_node_gpu_free" + labels] == 0


def test_what_pods_hold_of_a_resource_that_has_gone_is_still_said():
    found = view([objects.running(objects.pod("p", requests={MIG: 1}), "h1")], [objects.node("h1", {}, H100)])
    series = of("gpugauge_node_gpu_requested", shown(found))
    assert list(series.values()) == [1]
    assert "nvidia_com_mig_1g_10gb" in next(iter(series))


def test_resources_that_are_spelled_alike_add_up():
    found = view([], [objects.node("n", {"nvidia.com/mig-1g.10gb": 1, "nvidia.com/mig-1g-10gb": 2}, H100)])
    assert list(of("gpugauge_node_gpu_capacity", shown(found)).values()) == [3]


def test_while_pods_are_unknown_nothing_is_said_of_them_nor_of_free_devices():
    names = {key.partition("{")[0] for key in shown(replace(cluster(), pods=None))}
    assert not {name for name in names if "pending" in name or "_pod_" in name}
    assert not {"gpugauge_node_gpu_requested", "gpugauge_node_gpu_free"} & names
    assert "gpugauge_node_gpu_allocatable" in names


def test_while_nodes_are_unknown_pods_are_still_shown():
    series = shown(replace(cluster(), nodes=None))
    assert not {key for key in series if key.startswith("gpugauge_node")}
    assert of("gpugauge_pending_pods", series)


def test_while_namespaces_are_unknown_no_class_is_guessed():
    series = shown(replace(cluster(), namespaces=None))
    infos = of("gpugauge_gpu_pod_info", series)
    assert infos
    assert all(',class=""' in key for key in infos if 'pod="new"' not in key)
    assert not of("gpugauge_namespace_alert_optout", series)


def test_the_oldest_pods_are_shown_and_the_others_counted():
    pods = [waiting(f"p{number}", created=NOW - 1000 - number) for number in range(10)]
    series = shown(view(pods, []), ClusterConfig(tracked_pods=3))
    own = of("gpugauge_pending_pod_since_timestamp_seconds", series)
    assert sorted(own.values()) == [NOW - 1009, NOW - 1008, NOW - 1007]
    assert len(of("gpugauge_pending_pod_reason", series)) == 3
    assert series["gpugauge_pending_pods_untracked"] == 7
    assert sum(of("gpugauge_pending_pods", series).values()) == 10


def test_a_pod_gets_series_of_its_own_after_a_minute_and_never_while_gated():
    series = shown(cluster())
    names = {key.split('gpu_pod="')[1].split('"')[0] for key in of("gpugauge_pending_pod_reason", series)}
    assert names == {"train-0", "pull"}


def test_the_series_that_alerts_run_on_does_not_change_with_the_reason():
    before = of("gpugauge_pending_pod_since_timestamp_seconds", shown(view([waiting("p")], [])))
    other = objects.unschedulable(waiting("p"), "0/1 nodes are available: 1 Insufficient cpu.", NOW)
    assert of("gpugauge_pending_pod_since_timestamp_seconds", shown(view([other], []))) == before


def test_the_schedulers_text_is_nowhere_on_the_page():
    secret = objects.unschedulable(objects.pod("p", created=NOW - 1000), "0/1 nodes are available: 1 xyzzy.")
    assert "xyzzy" not in "".join(shown(view([secret], [])))


def test_a_pod_with_two_resources_is_counted_under_both():
    both = objects.unschedulable(objects.pod("p", requests={GPU: 1, MIG: 2}, created=NOW - 1000), FULL)
    both["status"]["conditions"][0]["lastTransitionTime"] = objects.stamp(NOW - 900)
    series = shown(view([both], []))
    assert sorted(of("gpugauge_pending_devices", series).values()) == [1, 2]
    assert len(of("gpugauge_pending_pod_since_timestamp_seconds", series)) == 2
    assert len(of("gpugauge_pending_pod_reason", series)) == 1


def test_pod_series_name_the_pod_twice():
    assert POD == ("namespace", "pod", "gpu_namespace", "gpu_pod", "gpu_pod_uid")
    info = next(iter(of("gpugauge_gpu_pod_info", shown(view([objects.pod("p", "s")], [])))))
    assert info.startswith('gpugauge_gpu_pod_info{namespace="s",pod="p",gpu_namespace="s",gpu_pod="p",gpu_pod_uid="')


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3"),
        ("Tesla-T4-SHARED", "Tesla-T4"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-A100-SXM4-40GB"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me", "NVIDIA-A100-SXM4-40GB"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", "NVIDIA-A100-SXM4-40GB"),
        ("NVIDIA-A100-SXM4-40GB-MIG-INVALID", "NVIDIA-A100-SXM4-40GB"),
        ("", ""),
    ],
)
def test_a_model_is_the_board_without_how_it_is_shared(product, expected):
    assert model({"nvidia.com/gpu.product": product}) == expected


def test_records_are_small_and_share_their_strings():
    one, other = (pod(waiting(name)) for name in ("a", "b"))
    assert one.namespace is other.namespace
    assert one.scheduled is not None
    assert other.scheduled is not None
    assert one.scheduled.message is other.scheduled.message
    assert msgspec.structs.replace(one) == one
