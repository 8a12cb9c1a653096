"""All metric families of the watcher, from a view of the cluster."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import msgspec
import pytest

from exporter.cluster.config import ClusterConfig, SeriesLimits
from exporter.cluster.kubernetes.converting.controllers import Controller
from exporter.cluster.kubernetes.nodes.node_description import model
from exporter.cluster.kubernetes.objects.overrides import EXEMPTION, THRESHOLD, WORKLOAD_CLASS, malformed
from exporter.cluster.kubernetes.objects.records import Load, OtherPod, Overrides, ResourceQuota
from exporter.cluster.kubernetes.watching.store import StoreView
from exporter.cluster.metrics.families import METRICS, families
from exporter.cluster.metrics.leadership import LEADER
from exporter.cluster.prices.price import Price, PriceList, PricesInUse
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.scheduling.keeping.waits import Waits
from exporter.cluster.view import with_pending
from exporter.identity_labels import POD
from exporter.metric import Kind
from simulators import objects
from tests.exporter.cluster.fixture import NOW, exposed, pod, view

GOLDEN = Path(__file__).parents[3] / "golden" / "watcher.txt"
GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"
H100 = objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)
T4 = objects.gpu_labels("Tesla T4-SHARED", 1, "time-slicing", 4)
FULL = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
CONFIG = ClusterConfig(
    node_labels={"zone": "topology.kubernetes.io/zone", "rack": "example.com/rack"}, limits=SeriesLimits(waits=1)
)


def series_of(given, config=CONFIG):
    """Values by series, as the exposition of this view has them."""
    history = ClusterHistory()
    history.rejections.update(())
    history.failures.update(())
    history.failed_workloads.update((), NOW)
    made = with_pending(replace(given, pending=(), pending_since={}, rejections={}, failures={}), history)
    given = replace(made, waits=given.waits if given.pods is not None else {})
    ignored = malformed(given.pods or (), (), given.nodes or (), NOW)
    return exposed(families(given, config, ignored))


def only(metric, series):
    return {key: value for key, value in series.items() if key.partition("{")[0] == metric}


def pending(name, in_namespace="team-a", count=4, created=NOW - 1000, **more):
    return objects.unschedulable(
        objects.pod(name, in_namespace, {GPU: count}, created=created, **more), FULL, created + 1
    )


def marked(node):
    """The node as NVSentinel marks it."""
    node["status"]["conditions"].append({"type": "GpuMemWatch", "status": "True"})
    return node


def cluster():
    """Three nodes, and a pod in every state."""
    nodes = [
        objects.node(
            "h1", {GPU: 8}, {**H100, "eks.amazonaws.com/nodegroup": "big", "topology.kubernetes.io/zone": "z1"}
        ),
        objects.node("m1", {MIG: 7, GPU: 0}, objects.gpu_labels("NVIDIA-A100-SXM4-80GB", 1, mig="mixed")),
        marked(objects.cordoned(objects.node("t1", {"nvidia.com/gpu.shared": 4}, T4))),
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
                {THRESHOLD: "10pct", EXEMPTION: "until-2027-01-20"},
            ),
            "h1",
            NOW - 89_990,
        ),
        pending("train-0", owned_by=objects.owner("Job", "train", "team-a")),
        pending("train-1", owned_by=objects.owner("Job", "train", "team-a"), created=NOW - 30),
        objects.gated(objects.pod("gated", "team-b", {GPU: 2}, created=NOW - 7200), "kueue.x-k8s.io/admission"),
        objects.bound(objects.pod("pull", "team-b", {MIG: 1, GPU: 0}, created=NOW - 500), "m1", NOW - 499),
        objects.pod("new", "team-b", created=NOW - 5, annotations={WORKLOAD_CLASS: "batch"}),
    ]
    queued = Controller("Workload", "team-b", "job-x", "uid-x", ((GPU, 16),), NOW - 60, True, "big", "", ("Job", "x"))
    names = ("pods", "nodes", "namespaces")
    stores = (
        *(StoreView(name, (), NOW - 1, {"expired": 2}, 1, 0.5, None) for name in names),
        StoreView("events", None, None, {}, 0, 0.0, None, optional=True, off="forbidden"),
    )
    namespaces = {
        "team-a": Overrides(workload_class="serving"),
        "team-b": Overrides(exemption="disabled", threshold="50pct"),
    }
    rejected = msgspec.structs.replace(pod(objects.bound(objects.pod("rejected", "team-b"), "m1")), rejected=True)
    failed = msgspec.structs.replace(pod(objects.running(objects.pod("failed", "team-b"), "h1")), failure="error")
    return replace(
        view(pods, nodes, namespaces),
        stores=stores,
        controllers=(queued,),
        rejected=(rejected,),
        failed=(failed,),
        owners={"team-a": ("vision", "cc-7", "")},
        waits={
            ("team-a", "nvidia_com_gpu", "2-4"): Waits([1, 0, 2, 0, 0, 0, 0, 1], 100_600.5),
            ("team-a", "nvidia_com_gpu", "9+"): Waits([1, 0, 0, 0, 0, 0, 0, 0], 5.5),
        },
        other_pods=(OtherPod("m1", Load(cpu=500_000, memory=2**30)),),
        node_chunks=None,
        prices=PricesInUse(
            PriceList((Price("NVIDIA-H100-80GB-HBM3", "big", "spot", "EUR", 2.35, date(2027, 1, 1)),), ("one",)),
            successful=True,
        ),
        quotas=(ResourceQuota("team-b", "gpus", ((GPU, 16),), ((GPU, 3),)),),
    )


def test_the_series_of_a_cluster_are_as_recorded(golden):
    golden("".join(f"{key} {value!r}\n" for key, value in series_of(cluster()).items()), GOLDEN)


def test_every_metric_is_recorded():
    """But that of a replica with a lease, which says nothing of the cluster."""
    lines = GOLDEN.read_text().splitlines()
    assert {metric.name for metric in METRICS} - {LEADER.name} == {line.partition("{")[0].split()[0] for line in lines}


def test_counters_end_in_total_and_no_metric_has_a_hostname():
    for metric in METRICS:
        assert metric.name.endswith("_total") == (metric.kind == Kind.COUNTER)
        assert not {"hostname", "container", "gpu_container"} & set(metric.schema.names)


def test_free_devices_are_those_that_no_pod_requests():
    series = series_of(cluster())
    assert series['gpugauge_node_gpu_free{node="h1",resource="nvidia_com_gpu",model="NVIDIA-H100-80GB-HBM3"}'] == 2
    assert series['gpugauge_node_gpu_requested{node="h1",resource="nvidia_com_gpu",model="NVIDIA-H100-80GB-HBM3"}'] == 6


def test_free_devices_are_zero_when_fewer_are_healthy_than_requested():
    unhealthy = objects.node("h1", {GPU: 8}, H100)
    unhealthy["status"]["allocatable"][GPU] = "4"
    found = view([objects.running(objects.pod("p", requests={GPU: 6}), "h1")], [unhealthy])
    labels = '{node="h1",resource="nvidia_com_gpu",model="NVIDIA-H100-80GB-HBM3"}'
    series = series_of(found)
    assert series["gpugauge_node_gpu_capacity" + labels] == 8
    assert series["gpugauge_node_gpu_allocatable" + labels] == 4
    assert series["gpugauge_node_gpu_requested" + labels] == 6
    assert series["gpugauge_node_gpu_free" + labels] == 0


def test_requests_for_a_resource_that_the_node_no_longer_lists_are_exposed():
    found = view([objects.running(objects.pod("p", requests={MIG: 1}), "h1")], [objects.node("h1", {}, H100)])
    series = only("gpugauge_node_gpu_requested", series_of(found))
    assert list(series.values()) == [1]
    assert "nvidia_com_mig_1g_10gb" in next(iter(series))


def test_resources_with_the_same_label_value_add_up():
    found = view([], [objects.node("n", {"nvidia.com/mig-1g.10gb": 1, "nvidia.com/mig-1g-10gb": 2}, H100)])
    assert list(only("gpugauge_node_gpu_capacity", series_of(found)).values()) == [3]


def test_while_pods_are_unknown_neither_they_nor_free_devices_are_exposed():
    names = {key.partition("{")[0] for key in series_of(replace(cluster(), pods=None))}
    assert {name for name in names if "pending" in name or "_pod_" in name} == {
        "gpugauge_pending_workloads",
        "gpugauge_pending_workload_devices",
    }
    assert not {"gpugauge_node_gpu_requested", "gpugauge_node_gpu_free"} & names
    assert "gpugauge_node_gpu_allocatable" in names


def test_while_nodes_are_unknown_pods_are_exposed():
    series = series_of(replace(cluster(), nodes=None))
    assert not {key for key in series if key.startswith("gpugauge_node")}
    assert only("gpugauge_pending_pods", series)


def test_while_namespaces_are_unknown_only_a_workload_class_that_the_pod_sets_is_exposed():
    series = series_of(replace(cluster(), namespaces=None))
    infos = only("gpugauge_gpu_pod_info", series)
    assert infos
    assert all(',workload_class=""' in key for key in infos if 'pod="new"' not in key)
    assert not only("gpugauge_namespace_alert_exemption", series)


def test_the_oldest_pods_of_the_workloads_pending_longest_have_series_of_their_own():
    gang, other = (objects.owner("Job", name, "team-a") for name in ("gang", "other"))
    pods = [
        *(pending(f"gang-{number}", owned_by=gang, created=NOW - 2000 + number) for number in range(100)),
        pending("other-0", owned_by=other, created=NOW - 1000),
        pending("same-name", "team-b", owned_by=objects.owner("Job", "gang", "team-b"), created=NOW - 900),
        pending("not-long-enough", owned_by=objects.owner("Job", "new", "team-a"), created=NOW - 30),
    ]

    def named(workloads):
        series = series_of(view(pods, []), ClusterConfig(tracked_workloads=workloads))
        own = only("gpugauge_pending_pod_since_timestamp_seconds", series)
        assert len(own) == len(only("gpugauge_pending_pod_reason", series))
        names = {key.split('gpu_pod="')[1].split('"')[0] for key in own}
        return names, series["gpugauge_pending_workloads_untracked"]

    gang_pods = {"gang-0", "gang-1", "gang-2"}
    assert named(0) == (set(), 3)
    assert named(1) == (gang_pods, 2)
    assert named(2) == ({*gang_pods, "other-0"}, 1)
    assert named(3) == ({*gang_pods, "other-0", "same-name"}, 0)


def test_every_workload_that_is_pending_long_enough_has_a_series_of_its_own():
    train = objects.owner("Job", "train", "team-a")
    pods = [
        pending("train-0", owned_by=train, created=NOW - 100),
        pending("train-1", owned_by=train, created=NOW - 300),
        pending("bare", created=NOW - 30),
    ]
    series = only(
        "gpugauge_pending_workload_since_timestamp_seconds",
        series_of(view(pods, []), ClusterConfig(tracked_workloads=0)),
    )
    labels = 'namespace="team-a",gpu_namespace="team-a",workload="train",workload_type="job",resource="nvidia_com_gpu"'
    assert series == {f'gpugauge_pending_workload_since_timestamp_seconds{{{labels},model="any"}}': NOW - 300}


def test_a_pending_workload_has_the_model_that_its_selectors_demand():
    given = pending("one")
    given["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED"}
    (name,) = only("gpugauge_pending_workload_since_timestamp_seconds", series_of(view([given], [])))
    assert 'model="NVIDIA-H100-80GB-HBM3"' in name


def test_a_pod_has_series_of_its_own_after_a_minute_but_not_while_gated():
    series = series_of(cluster())
    names = {key.split('gpu_pod="')[1].split('"')[0] for key in only("gpugauge_pending_pod_reason", series)}
    assert names == {"train-0", "pull"}


def test_the_series_that_alerts_run_on_does_not_change_with_the_reason():
    before = only("gpugauge_pending_pod_since_timestamp_seconds", series_of(view([pending("p")], [])))
    other = objects.unschedulable(pending("p"), "0/1 nodes are available: 1 Insufficient cpu.", NOW)
    assert only("gpugauge_pending_pod_since_timestamp_seconds", series_of(view([other], []))) == before


def test_no_label_has_the_text_of_the_scheduler():
    secret = objects.unschedulable(objects.pod("p", created=NOW - 1000), "0/1 nodes are available: 1 xyzzy.")
    assert "xyzzy" not in "".join(series_of(view([secret], [])))


def test_a_pod_with_two_resources_is_counted_under_both():
    both = objects.unschedulable(objects.pod("p", requests={GPU: 1, MIG: 2}, created=NOW - 1000), FULL)
    both["status"]["conditions"][0]["lastTransitionTime"] = objects.stamp(NOW - 900)
    series = series_of(view([both], []))
    assert sorted(only("gpugauge_pending_devices", series).values()) == [1, 2]
    assert len(only("gpugauge_pending_pod_since_timestamp_seconds", series)) == 2
    assert len(only("gpugauge_pending_pod_reason", series)) == 1


def test_pod_series_name_the_pod_twice():
    assert POD == ("namespace", "pod", "gpu_namespace", "gpu_pod", "gpu_pod_uid")
    info = next(iter(only("gpugauge_gpu_pod_info", series_of(view([objects.pod("p", "s")], [])))))
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
def test_a_model_has_no_suffix_for_mig_or_sharing(product, expected):
    assert model({"nvidia.com/gpu.product": product}) == expected


def test_records_share_their_strings():
    one, other = (pod(pending(name)) for name in ("a", "b"))
    assert one.namespace is other.namespace
    assert one.scheduled is not None
    assert other.scheduled is not None
    assert one.scheduled.message is other.scheduled.message
    assert msgspec.structs.replace(one) == one
