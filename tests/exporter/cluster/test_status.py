"""The status page of the watcher says what its families say, and stays small however large the cluster is."""

from dataclasses import replace
from pathlib import Path

import pytest

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.objects.overrides import malformed
from exporter.cluster.kubernetes.watching.reasons import SyncReason
from exporter.cluster.kubernetes.watching.store import StoreView
from exporter.cluster.leadership.reasons import LEASE_SOURCE, LeaseReason
from exporter.cluster.metrics.families import families
from exporter.cluster.metrics.leadership import leader_family
from exporter.cluster.metrics.pending import DEVICES, PODS, REASON
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.cluster.status import cluster_page
from exporter.collection_loop import Collected
from exporter.metric import Family, Kind, Labels
from exporter.snapshot import Snapshot, SourceHealth
from exporter.status_page.content import MAX_ROWS
from simulators import objects
from tests.exporter.cluster.fixture import NOW, view
from tests.exporter.cluster.metrics.test_families import GPU, H100, cluster, pending
from tests.exporter.status_page.pages import HOSTILE, check_harmless, recorded, rows_of, written

GOLDEN = Path(__file__).parents[2] / "golden" / "status"
UP = SourceHealth("kubernetes", True, 0.1)
DASH = "\N{EN DASH}"


def snapshot_of(given, health=UP):
    ignored = malformed(given.pods or (), (), (), NOW)
    return Snapshot(NOW, tuple(families(given, ClusterConfig(), ignored)), (health,))


def page_of(given, health=UP):
    return cluster_page(Collected(1, None, snapshot_of(given, health)))


def unreachable():
    """A watcher that was never answered."""
    stores = tuple(StoreView(name, None, None, {}, 0, 0.0, None) for name in ("pods", "nodes"))
    down = SourceHealth("kubernetes", False, 0.0, SyncReason.CONNECTING, "https://10.0.0.1 is not known yet")
    return page_of(replace(view(), stores=stores), down)


def standby():
    """A replica that does not lead, and may not use the lease."""
    reason = LeaseReason.FORBIDDEN
    health = (UP, SourceHealth(LEASE_SOURCE, False, 0.1, reason, "https://10.0.0.1"))
    return cluster_page(Collected(1, None, Snapshot(NOW, (leader_family(leads=False),), health)))


PAGES = {
    "cluster": lambda: page_of(cluster()),
    "cluster_idle": lambda: page_of(view([], [objects.node("h1", {GPU: 8}, H100)], {})),
    "cluster_unreachable": unreachable,
    "cluster_standby": standby,
    "cluster_first": lambda: cluster_page(Collected(0, None)),
    "cluster_defect": lambda: cluster_page(Collected(3, None)),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_as_recorded(golden, name):
    golden(recorded(PAGES[name]()), GOLDEN / f"{name}.html")


def rows_with(column, page):
    return [row for row in rows_of(page) if column in row]


def test_workloads_are_listed_with_their_reasons_the_oldest_first():
    first, second = rows_with("Workload", page_of(cluster()))
    assert (first["Pending for"], first["Workload"]) == ("16 min", "team-a/train\njob")
    assert first["Reason"] == PendingReason.INSUFFICIENT_GPU
    assert first["Remedy"] == PendingReason.INSUFFICIENT_GPU.remedy
    assert (second["Pending for"], second["Reason"]) == ("8 min", PendingReason.STARTING)


def test_pods_are_counted_by_reason_and_resource_over_all_namespaces():
    pods = [pending("a", "one"), pending("b", "two", created=NOW - 7200), objects.pod("c", "two", created=NOW - 5)]
    most, least = rows_with("Oldest", page_of(view(pods, [objects.node("h1", {GPU: 2}, H100)], {})))
    assert (most["Pods"], most["Oldest"]) == ("nvidia_com_gpu: 2 pods, 8 devices", "2 h 0 min")
    assert (least["Reason"], least["Pods"]) == (PendingReason.NOT_TRIED, "nvidia_com_gpu: 1 pod, 1 device")


def test_the_model_that_pods_demand_is_named_and_a_long_list_of_models_is_cut():
    counts = {f"model-{number}": number for number in range(1, 31)}
    labels = {"namespace": "a", "gpu_namespace": "a", "resource": "nvidia_com_gpu", "reason": "insufficient_gpu"}
    known = tuple(
        Family(metric, [metric.sample(count, **labels, model=model) for model, count in counts.items()])
        for metric in (PODS, DEVICES)
    )
    page = cluster_page(Collected(1, None, Snapshot(NOW, known, (UP,))))
    lines = rows_with("Pods", page)[0]["Pods"].splitlines()
    assert lines[0] == "nvidia_com_gpu, model-30: 30 pods, 30 devices"
    assert lines[-1] == "and 22 more"


def test_a_workload_whose_pods_have_no_series_has_no_reason():
    given = view([pending("old", created=NOW - 5000)], [objects.node("a", {GPU: 2}, H100)], {})
    snapshot = snapshot_of(given)
    without = tuple(each for each in snapshot.families if each.metric is not REASON)
    (row,) = rows_with("Workload", cluster_page(Collected(1, None, replace(snapshot, families=without))))
    assert row["Reason"] == f"{DASH}\nits pods are new, or too many are pending"


def test_free_devices_on_a_cordoned_node_are_counted_apart():
    nodes = [
        objects.node("a", {GPU: 8}, H100),
        objects.node("b", {GPU: 8}, H100),
        objects.cordoned(objects.node("c", {GPU: 8}, H100)),
    ]
    pods = [objects.running(objects.pod("p", requests={GPU: 5}), "a", NOW - 60)]
    (row,) = rows_with("Nodes", page_of(view(pods, nodes, {})))
    assert row == {
        "Model": "NVIDIA-H100-80GB-HBM3",
        "Resource": "nvidia_com_gpu",
        "Nodes": "3",
        "Allocatable": "24",
        "Requested": "5",
        "Free": "19",
        "Largest free block": "8",
        "Not schedulable": "8\ntheir nodes are cordoned or not ready",
        "Stranded": "0",
    }


def test_free_devices_that_no_pod_can_use_are_stranded_and_the_page_says_what_their_nodes_lack():
    rows = {row["Resource"]: row for row in rows_with("Nodes", page_of(cluster()))}
    assert rows["nvidia_com_mig_1g_10gb"]["Stranded"] == "6\ntheir nodes lack: cpu"
    assert rows["nvidia_com_gpu_shared"]["Stranded"] == "0"


def test_nodes_that_do_not_offer_their_gpus_are_counted():
    nodes = [objects.node("a", {GPU: 8}, H100), objects.node("b", {}, H100)]
    body = written(page_of(view([], nodes, {}))).decode()
    assert "Nodes that have GPUs by their labels and offer none: 1." in body


def test_while_the_pods_are_not_known_nothing_is_free_or_pending():
    page = page_of(view(None, [objects.node("a", {GPU: 8}, H100)], {}))
    (row,) = rows_with("Nodes", page)
    assert row["Allocatable"] == "8"
    assert {row[name] for name in ("Requested", "Free", "Largest free block")} == {f"{DASH}\nthe pods are not known"}
    assert "The pods are not known; the table of sources says why." in written(page).decode()


def test_without_an_answer_of_the_api_server_the_page_says_so_first_and_has_no_message():
    body = written(unreachable()).decode()
    assert body.index("<h2>Sources</h2>") < body.index("<h2>Pending GPU workloads")
    assert SyncReason.CONNECTING.meaning in body
    assert "10.0.0.1" not in body
    assert "not current: see the sources" in body


def test_a_standby_says_so_and_nothing_of_the_cluster():
    page = standby()
    assert [table.title for table in page.tables] == ["Sources"]
    body = written(page).decode()
    assert LeaseReason.FORBIDDEN.remedy in body
    assert "standby" in body
    assert "not known" not in body


def test_a_replica_that_leads_shows_the_cluster_and_that_it_leads():
    snapshot = snapshot_of(cluster())
    leading = cluster_page(
        Collected(1, None, replace(snapshot, families=(leader_family(leads=True), *snapshot.families)))
    )
    assert leading.tables == page_of(cluster()).tables
    assert ("Replica", "leader") in [(name, cell.lines[0]) for name, cell in leading.facts if cell.lines]


def test_optional_objects_that_are_not_read_are_named():
    (row,) = [row for row in rows_with("Object", page_of(cluster())) if row["State"] == "not read"]
    assert (row["Object"], row["Reason"]) == ("events", "forbidden")


def test_malformed_overrides_are_counted_and_not_quoted():
    rows = rows_with("Annotation or label that is ignored", page_of(cluster()))
    assert rows == [{"Annotation or label that is ignored": "gpugauge.io/workload-class", "Number": "1"}]


def test_of_very_many_workloads_the_oldest_are_listed():
    pods = [pending(f"p-{number}", created=NOW - 1000 - number) for number in range(700)]
    body = written(page_of(view(pods, [objects.node("a", {GPU: 8}, H100)], {})))
    rows = rows_with("Workload", page_of(view(pods, [objects.node("a", {GPU: 8}, H100)], {})))
    assert len(rows) == MAX_ROWS
    assert rows[0]["Workload"] == "team-a/p-699\npod"
    assert "and 500 more, which are in /metrics" in body.decode()
    assert len(body) < 200_000


def test_hostile_names_stay_texts():
    snapshot = snapshot_of(cluster())

    def hostile(labels):
        values = tuple(v if n == "reason" else HOSTILE for n, v in zip(labels.names, labels.values, strict=True))
        return Labels(labels.schema, labels.names, values)

    changed = [
        Family(each.metric, [(hostile(labels), value) for labels, value in each.samples])
        for each in snapshot.families
        if each.metric.kind is not Kind.HISTOGRAM
    ]
    found = check_harmless(written(cluster_page(Collected(1, None, replace(snapshot, families=tuple(changed))))))
    assert sum("<script>alert(1)" in text for text in found.texts) > 10
