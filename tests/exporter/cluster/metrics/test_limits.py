"""Series are limited by what their labels name, what is left out is counted, and no namespace hides another."""

from dataclasses import replace

import pytest

from exporter.cluster.config import ClusterConfig, SeriesLimits
from exporter.cluster.kubernetes.objects.records import Overrides, ResourceQuota
from exporter.cluster.metrics.families import METRICS, families
from exporter.cluster.metrics.limits import fairest, limited
from exporter.cluster.metrics.pods import WAIT
from exporter.cluster.scheduling.keeping.waits import Waits
from exporter.identity_labels import namespace_labels
from exporter.metric import Family, Kind, metric
from simulators import objects
from tests.exporter.cluster.fixture import NOW, exposed, view

GPU = "nvidia.com/gpu"
LEFT_OUT = "gpugauge_series_left_out"
FULL = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
OF_NAMESPACES = [
    each for each in METRICS if "gpu_namespace" in each.schema.names and "gpu_pod" not in each.schema.names
]


def pending(name, namespace, count=1, age=1000):
    given = objects.pod(name, namespace, {GPU: count}, created=NOW - age)
    given["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": name}
    return objects.unschedulable(given, FULL, NOW - age)


def series(given, **limits):
    return exposed(families(given, ClusterConfig(limits=SeriesLimits(**limits)), []))


def left_out(found):
    """How many series are left out by metric."""
    return {key.split('"')[1]: value for key, value in found.items() if key.startswith(LEFT_OUT)}


def having(found, name, label):
    """The values of a label of the metric's series."""
    return [key.split(f'{label}="')[1].split('"')[0] for key in found if key.partition("{")[0] == name]


def test_every_namespace_keeps_its_first_before_another_keeps_its_second():
    given = [("a", 9), ("a", 8), ("b", 1), ("a", 7), ("c", 3), ("b", 2)]

    def kept(most):
        return fairest(given, most, lambda each: each[0], lambda each: (-each[1], each[0]))

    assert kept(6) == given
    assert kept(3) == [("a", 9), ("c", 3), ("b", 2)]
    assert kept(4) == [("a", 9), ("a", 8), ("c", 3), ("b", 2)]
    assert kept(1) == [("a", 9)]
    assert kept(0) == []


def test_one_namespace_with_many_models_queues_and_workloads_hides_no_other():
    greedy = [pending(f"m{number}", "team-b", count=8, age=5000) for number in range(50)]
    found = series(view([pending("mine", "team-a"), *greedy], []), of_namespaces=10)
    for name in (
        "gpugauge_pending_pods",
        "gpugauge_pending_devices",
        "gpugauge_pending_workload_since_timestamp_seconds",
    ):
        namespaces = having(found, name, "gpu_namespace")
        assert len(namespaces) == 10
        assert namespaces.count("team-a") == 1
    assert left_out(found) == {
        "gpugauge_pending_pods": 41,
        "gpugauge_pending_devices": 41,
        "gpugauge_pending_workload_since_timestamp_seconds": 41,
    }


def test_of_too_many_workloads_those_that_are_pending_longest_are_kept():
    pods = [pending(f"p{number}", "team-a", age=1000 + number) for number in range(5)]
    found = series(view(pods, []), of_namespaces=2)
    assert having(found, "gpugauge_pending_workload_since_timestamp_seconds", "workload") == ["p4", "p3"]


def test_of_too_many_quotas_the_largest_are_kept():
    quotas = tuple(ResourceQuota(f"team-{number}", "q", ((GPU, number),), ()) for number in range(5))
    found = series(replace(view([], []), quotas=quotas), of_namespaces=2)
    assert having(found, "gpugauge_quota_hard", "gpu_namespace") == ["team-3", "team-4"]
    assert left_out(found) == {"gpugauge_quota_hard": 3}


def test_exemptions_owners_and_waits_of_namespaces_are_limited():
    names = [f"team-{number}" for number in range(5)]
    given = replace(
        view([], [], {name: Overrides(exemption="disabled") for name in names}),
        owners=dict.fromkeys(names, ("x", "", "")),
        waits={(name, "nvidia_com_gpu", "1"): Waits([number] + [0] * 7) for number, name in enumerate(names)},
        rejections={(name, "n1", "w"): number for number, name in enumerate(names)},
    )
    found = series(given, of_namespaces=2, waits=3)
    assert left_out(found) == {
        "gpugauge_namespace_alert_exemption": 3,
        "gpugauge_namespace_info": 3,
        "gpugauge_pod_admission_failures_total": 3,
        "gpugauge_pod_scheduling_wait_seconds": 2,
    }
    assert having(found, WAIT.name, "gpu_namespace") == ["team-2", "team-3", "team-4"]


def test_of_too_many_pods_the_oldest_of_each_namespace_have_series():
    ages = {"a0": 10, "a1": 20, "a2": 30}
    pods = [objects.running(objects.pod(name, "team-a", created=NOW - age), "n1") for name, age in ages.items()]
    pods.append(objects.running(objects.pod("b0", "team-b", created=NOW - 1), "n1"))
    found = series(view(pods, []), pods=2)
    assert having(found, "gpugauge_gpu_pod_info", "gpu_pod") == ["a2", "b0"]
    assert left_out(found) == {"gpugauge_gpu_pod_info": 2}


def test_of_too_many_nodes_those_with_the_most_gpus_have_series_and_all_count_for_reasons():
    nodes = [objects.node(f"n{number}", {GPU: number}) for number in range(1, 5)]
    found = series(view([pending("p", "team-a")], nodes), nodes=2)
    assert having(found, "gpugauge_node_gpu_free", "node") == ["n3", "n4"]
    assert left_out(found) == {"gpugauge_node_info": 2}


@pytest.mark.parametrize("given", OF_NAMESPACES, ids=[each.name for each in OF_NAMESPACES])
def test_every_metric_that_names_a_namespace_is_limited(given):
    if given.kind == Kind.HISTOGRAM:
        return
    others = [name for name in given.schema.names if "namespace" not in name]
    samples = [
        given.sample(number, **namespace_labels(f"team-{number}"), **dict.fromkeys(others, "")) for number in range(6)
    ]
    found = limited(Family(given, samples), SeriesLimits(of_namespaces=4))
    assert (len(list(found.samples)), found.left_out) == (4, 2)


def test_a_metric_that_names_nothing_of_a_tenant_has_no_limit():
    few = metric("gpugauge_x", Kind.GAUGE, "x", "object")
    family = Family(few, [few.ordered(1, str(number)) for number in range(10)])
    assert limited(family, SeriesLimits(0, 0, 0, 0)) is family
