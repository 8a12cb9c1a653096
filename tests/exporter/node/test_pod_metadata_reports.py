"""What users of GPU exporters reported, as tests: what pod metadata changes. A test is named after its report."""

from exporter.node.service_account.reasons import KEEP_SECONDS
from tests.exporter.node.pod_node import INFO, UTIL, pod, pod_node, uuid
from tests.waiting import until

CONFLICTS, PODS = "gpugauge_devices_with_conflicting_allocations", "gpugauge_device_allocated_pods"


def test_report_4_a_finished_job_no_longer_has_its_gpu(tmp_path):
    with pod_node(tmp_path, "--pod-metadata=api") as node:
        node.put(pod("job-1", phase="Succeeded"), pod("svc-1"))
        node.kubelet.rows = [("job-1", uuid(0)), ("svc-1", uuid(0))]
        assert node.labels(UTIL)[0]["pod"] == "svc-1"
        assert [labels["gpu_pod"] for labels in node.labels(INFO)] == ["svc-1"]
        assert node.values(CONFLICTS) == {}
        assert node.values(PODS) == {uuid(0): 1, uuid(1): 0}
        node.kubelet.rows = [("job-1", uuid(0))]
        node.api.put("pods", pod("job-1", phase="Failed"))
        assert node.values(PODS) == {uuid(0): 0, uuid(1): 0}
        assert node.labels(UTIL)[0]["pod"] == ""


def test_report_4_without_a_phase_the_conflict_is_reported(tmp_path):
    with pod_node(tmp_path) as node:
        node.kubelet.rows = [("job-1", uuid(0)), ("svc-1", uuid(0))]
        assert list(node.values(CONFLICTS).values()) == [1]
        assert node.labels(UTIL)[0]["pod"] == ""


def test_report_54_one_list_and_one_watch_of_this_node_however_often_metrics_are_made(tmp_path):
    with pod_node(tmp_path, "--kubernetes-enable-pod-labels") as node:
        for number in range(500):
            node.api.put("pods", pod(f"far-{number}", node=f"node-{2 + number % 9}"))
        node.put(*(pod(f"near-{number}", labels={"app": "x"}) for number in range(50)))
        node.kubelet.rows = [("near-1", uuid(0))]
        for _ in range(100):
            node.exposed()
        assert [each.watch for each in node.api.requests] == [False, True]
        assert {each.query["fieldSelector"] for each in node.api.requests} == {"spec.nodeName=node-1"}


def test_report_54_collections_go_on_while_the_api_server_is_away(tmp_path):
    with pod_node(tmp_path, "--pod-labels=app") as node:
        node.put(pod("a", labels={"app": "x"}))
        node.kubelet.rows = [("a", uuid(0))]
        node.exposed()
        node.api.stop(keep_port=True)
        down = until(lambda: [labels for name, labels, _ in node.exposed() if name == "gpugauge_source_problem"])
        assert [(labels["source"], labels["reason"]) for labels in down] == [("kubernetes", "unreachable")]
        assert node.labels(UTIL)[0]["app"] == "x"
        assert node.labels(INFO)[0]["gpu_pod_uid"] == "uid-of-a"
        assert KEEP_SECONDS == 600
        node.known.kept_seconds = 0.0
        assert "app" not in node.labels(UTIL)[0]
        assert node.labels(INFO)[0]["gpu_pod"] == "a"


def test_report_27_at_most_15_labels_by_default_and_pod_labels_only_where_they_are_asked_for(tmp_path):
    labels = {f"label-{number}": "x" for number in range(23)} | {"pod-template-hash": "7f9c", "job-uid": "u"}
    with pod_node(tmp_path, "--pod-metadata=api") as node:
        node.put(pod("a", labels=labels))
        node.kubelet.rows = [("a", uuid(0))]
        assert len(node.labels(UTIL)[0]) <= 15
    with pod_node(tmp_path, "--kubernetes-enable-pod-labels") as node:
        node.put(pod("a", labels=labels))
        node.kubelet.rows = [("a", uuid(0))]
        assert len(node.labels(UTIL)[0]) <= 15 + 24
        assert [value for name, _, value in node.exposed() if name == "gpugauge_pod_labels_limited"] == [1]


def test_report_75_the_annotation_of_hami_names_the_gpu_where_the_kubelet_recorded_another(tmp_path):
    note = {"hami.io/vgpu-devices-allocated": f"{uuid(1)},NVIDIA,3000,30:;"}
    with pod_node(tmp_path, "--pod-metadata=api") as node:
        node.put(pod("train", annotations=note))
        node.kubelet.rows = [("train", f"{uuid(0)}-3")]
        assert node.values(PODS) == {uuid(0): 0, uuid(1): 1}
        assert [(labels["UUID"], labels["sharing"]) for labels in node.labels(INFO)] == [(uuid(1), "fraction")]
