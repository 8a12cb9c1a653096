"""What nobody may achieve by what they set on pods, namespaces, nodes and other objects: see docs/threat-model.md."""

import io
import logging

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.objects.overrides import EXEMPTION, MAINTENANCE, THRESHOLD, WORKLOAD_CLASS, malformed
from exporter.cluster.kubernetes.objects.records import Namespace
from exporter.cluster.metrics.families import families
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.view import view_of
from exporter.exposition.render import render
from exporter.log import LogfmtFormatter, OnceLog
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, exposed
from tests.exporter.cluster.store_views import listed

GPU = "nvidia.com/gpu"
H100 = objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)
NODE = objects.node("n1", {GPU: 8}, H100)
FULL = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def series(**kinds):
    """What is exposed of these objects, by series."""
    kinds = {"namespaces": [], "pods": [], "nodes": [NODE], **kinds}
    view = view_of(NOW, GPUS, listed(NOW, **kinds), ClusterHistory())
    return exposed(families(view, ClusterConfig(), []))


def of_team_a(found):
    """The series about team-a, and those about nodes alone."""
    return {
        key: value
        for key, value in found.items()
        if 'gpu_namespace="team-a"' in key or ('namespace="' not in key and 'node="' in key)
    }


def pending(name, namespace="team-a", **more):
    given = objects.pod(name, namespace, {GPU: 4}, created=NOW - 3000, **more)
    return objects.unschedulable(given, FULL, NOW - 2999)


def event(namespace, reason, uid, message=""):
    return {
        "metadata": {"name": f"{reason}.{uid}", "namespace": namespace, "creationTimestamp": objects.stamp(NOW - 30)},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "p", "uid": uid},
        "reason": reason,
        "message": message,
    }


def test_an_event_of_another_namespace_changes_no_reason():
    full = [objects.running(objects.pod("busy", "team-a", {GPU: 8}), "n1")]
    bound = objects.bound(objects.pod("bound", "team-a", {GPU: 4}), "n1", NOW - 100)
    pods = [*full, pending("p"), bound]
    uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in pods}

    def events(namespace):
        return [
            event(namespace, "TriggeredScaleUp", uids["p"]),
            event(namespace, "FailedMount", uids["bound"]),
        ]

    before = series(pods=pods, events=[])
    assert series(pods=pods, events=events("team-b")) == before
    assert series(pods=pods, events=events("team-a")) != before


def test_an_event_of_another_namespace_blocks_no_work():
    template = {"spec": objects.pod("x", requests={GPU: 2})["spec"]}
    meta = {"name": "j", "namespace": "team-a", "uid": "u", "creationTimestamp": objects.stamp(NOW - 500)}
    job = {"metadata": meta, "spec": {"template": template}, "status": {}}

    def blocked(namespace):
        found = series(jobs=[job], events=[event(namespace, "FailedCreate", "u", "exceeded quota: q")])
        return [value for key, value in found.items() if key.startswith("gpugauge_pending_workloads{")]

    assert blocked("team-a") == [1]
    assert blocked("team-b") == []


HOSTILE = 'x"} evil{a="\n# HELP evil \\ <script>alert(1)</script>\u202e\x00\x1b[2J{{ 1 }}'


def hostile_workload(queue):
    """A Workload with this queue, which waits."""
    template = {"spec": objects.pod("x", requests={GPU: 2})["spec"]}
    meta = {"name": "w", "namespace": "team-b", "uid": "w", "creationTimestamp": objects.stamp(NOW - 500)}
    owner = objects.owner("RayCluster", "ray", "team-b")
    pod_sets = [{"name": "main", "count": 1, "template": template}]
    return {"metadata": {**meta, "ownerReferences": [owner]}, "spec": {"queueName": queue, "podSets": pod_sets}}


def hostile_pod():
    """A pod with hostile texts wherever it can have texts."""
    texts = (HOSTILE, WORKLOAD_CLASS, EXEMPTION, THRESHOLD, "gpu-fraction", "gpu-fraction-num-devices")
    given = objects.pod(
        HOSTILE,
        "team-b",
        {f"nvidia.com/gpu-{HOSTILE[:20]}": 1, GPU: 1},
        owned_by=objects.owner(HOSTILE, HOSTILE, "team-b"),
        created=NOW - 3000,
        labels=dict.fromkeys((*texts, "kueue.x-k8s.io/pod-group-name", "notebook-name", "pod-template-hash"), HOSTILE),
        annotations=dict.fromkeys(texts, HOSTILE),
    )
    given["spec"] |= {"priorityClassName": HOSTILE, "nodeSelector": {"nvidia.com/gpu.product": HOSTILE}}
    return objects.unschedulable(given, HOSTILE, NOW - 2999)


def hostile_node():
    """A node with hostile texts in every label that is read, and in its annotation."""
    keys = (*H100, "eks.amazonaws.com/nodegroup", "topology.kubernetes.io/zone")
    given = objects.node("n2", {GPU: 8}, dict.fromkeys(keys, HOSTILE))
    given["metadata"]["annotations"] = {MAINTENANCE: HOSTILE}
    return given


def hostile_objects():
    labels = dict.fromkeys(("team", EXEMPTION, THRESHOLD, WORKLOAD_CLASS), HOSTILE)
    return {
        "namespaces": [objects.namespace("team-b", labels)],
        "pods": [hostile_pod()],
        "nodes": [NODE, hostile_node()],
        "workloads": [hostile_workload(HOSTILE)],
    }


def test_hostile_texts_are_label_values_and_nothing_else():
    view = view_of(NOW, GPUS, listed(NOW, **hostile_objects()), ClusterHistory())
    config = ClusterConfig(namespace_labels={"team": "team"}, node_labels={"zone": "topology.kubernetes.io/zone"})
    made = families(view, config, [])
    text = render(made, CollectorRegistry()).text.decode()
    declared = {each.metric.name: set(each.metric.schema.names) for each in made}
    parsed = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert len(parsed) == sum(1 for family in made for _ in family.samples)
    assert all(set(each.labels) <= declared[each.name] for each in parsed)
    shown = {value for each in parsed for value in each.labels.values()}
    assert any(HOSTILE in value for value in shown)


def test_a_hostile_text_is_logged_on_one_line_and_once():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogfmtFormatter())
    logger = logging.Logger("hostile")  # noqa: LOG001 - of this test alone
    logger.addHandler(handler)
    once = OnceLog(logger)
    view = view_of(NOW, GPUS, listed(NOW, **hostile_objects()), ClusterHistory())
    namespaces = [Namespace(name, each) for name, each in view.namespaces.items()]
    for _ in range(2):
        for each in malformed(view.pods, namespaces, view.nodes, NOW):
            once.warning(f"{each.where}: {each.value!r} is not a value of {each.key} and is ignored")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 7
    assert all(line.startswith("time=") and line.isprintable() for line in lines)


def greedy_pods():
    """Pods of team-b that claim to be what those of team-a are."""
    names = {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/queue-name": "big", "notebook-name": "train"}
    train = objects.owner("Job", "train", "team-a")
    same = pending("train-0", "team-b", owned_by=train, labels=names)
    exempt = objects.pod(
        "train-1",
        "team-b",
        {GPU: 1},
        owned_by=train,
        created=1.0,
        annotations={EXEMPTION: "until-2027-01-20", THRESHOLD: "1pct", WORKLOAD_CLASS: "interactive"},
    )
    gated = objects.gated(objects.pod("train-2", "team-b", {GPU: 9}, owned_by=train, labels=names), "a/b")
    elsewhere = objects.bound(objects.pod("train-3", "team-b", {GPU: 9}, owned_by=train), "no-such-node")
    return [same, exempt, gated, elsewhere, hostile_pod()]


def test_what_a_pod_sets_changes_no_series_of_another_namespace_or_of_a_node():
    train = objects.owner("Job", "train", "team-a")
    group = {"kueue.x-k8s.io/pod-group-name": "g"}
    pods = [pending("train-0", owned_by=train, labels=group), objects.running(objects.pod("train-1", "team-a"), "n1")]
    before = of_team_a(series(pods=pods))
    after = of_team_a(series(pods=[*pods, *greedy_pods()], workloads=[hostile_workload("big")]))
    assert before == after


def test_the_labels_of_a_namespace_change_nothing_of_another():
    pods = [objects.running(objects.pod("p", "team-a"), "n1")]
    labels = {EXEMPTION: "disabled", THRESHOLD: "1pct", WORKLOAD_CLASS: "interactive", "team": "a"}
    before = of_team_a(series(pods=pods, namespaces=[objects.namespace("team-a")]))
    both = [objects.namespace("team-a"), objects.namespace("team-b", labels)]
    assert of_team_a(series(pods=pods, namespaces=both)) == before


def test_maintenance_that_is_announced_for_long_silences_nothing():
    def reasons(until):
        given = objects.node("n1", {GPU: 8}, H100)
        given["metadata"]["annotations"] = {MAINTENANCE: until}
        return [key for key in series(nodes=[given]) if key.startswith("gpugauge_node_maintenance")]

    assert len(reasons("until-2027-01-20")) == 1
    assert reasons("until-2027-12-31") == reasons("disabled") == reasons(HOSTILE) == []
