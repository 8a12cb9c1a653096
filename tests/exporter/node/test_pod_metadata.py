"""What the API server knows of the pods of a node becomes labels, over real HTTP, as far as flags ask for it."""

import pytest

from exporter import cli
from exporter.node.config import node_config
from exporter.node.program import NodeProgram
from tests.exporter.node.pod_node import GPU, INFO, UTIL, pod, pod_node, uuid
from tests.waiting import until

OWNED = {"owner": ("ReplicaSet", "llm-7f9c"), "labels": {"app": "llm", "pod-template-hash": "7f9c"}}
UP = "gpugauge_source_up"


def test_by_default_nothing_is_asked_of_the_api_server(tmp_path):
    with pod_node(tmp_path) as node:
        node.api.put("pods", pod("llm-0", **OWNED))
        node.kubelet.rows = [("llm-0", uuid(0))]
        assert node.known is None
        series = node.exposed()
        assert node.api.requests == ()
        assert not any({"workload", "gpu_pod_uid", "app", "pod_uid"} & labels.keys() for _, labels, _ in series)
        assert {labels["source"] for name, labels, _ in series if name == UP} == {"simulated", "kubelet"}


def test_with_pod_metadata_an_allocation_has_uid_and_workload_and_device_series_nothing_more(tmp_path):
    with pod_node(tmp_path, "--pod-metadata=api") as node:
        node.put(pod("llm-0", **OWNED), pod("bare"))
        node.kubelet.rows = [("llm-0", uuid(0)), ("bare", uuid(1))]
        first, second = node.labels(INFO)
        assert (first["gpu_pod_uid"], first["workload"], first["workload_type"]) == (
            "uid-of-llm-0",
            "llm",
            "deployment",
        )
        assert (second["gpu_pod_uid"], second["workload"], second["workload_type"]) == ("uid-of-bare", "bare", "pod")
        assert not any({"app", "pod_uid", "workload"} & labels.keys() for labels in node.labels(UTIL))
        assert [value for name, labels, value in node.exposed() if labels.get("source") == "kubernetes"] != []
        assert node.values("gpugauge_pod_metadata_last_sync_timestamp_seconds")[""] > 1e9


def test_labels_and_uid_of_the_pod_that_alone_has_a_device_are_on_its_series(tmp_path):
    flags = ("--kubernetes-enable-pod-labels", "--kubernetes-enable-pod-uid")
    with pod_node(tmp_path, *flags) as node:
        node.put(pod("llm-0", **OWNED))
        node.kubelet.rows = [("llm-0", uuid(0))]
        used, unused = node.labels(UTIL)
        assert (used["app"], used["pod_template_hash"], used["pod_uid"]) == ("llm", "7f9c", "uid-of-llm-0")
        assert not {"app", "pod_uid"} & unused.keys()
        node.kubelet.rows = [("llm-0", f"{uuid(0)}::0"), ("other", f"{uuid(0)}::1")]
        assert not any({"app", "pod_uid"} & labels.keys() for labels in node.labels(UTIL))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--kubernetes-enable-pod-labels",), {"app", "app_kubernetes_io_name", "team_x"}),
        (("--kubernetes-enable-pod-labels", "--kubernetes-pod-label-allowlist-regex=^app,nothing"),
         {"app", "app_kubernetes_io_name"}),
        (("--kubernetes-enable-pod-labels", "--kubernetes-pod-label-allowlist-regex", "name$"),
         {"app_kubernetes_io_name"}),
        (("--kubernetes-pod-label-allowlist-regex", "app", "--pod-metadata", "api"), set()),
        (("--pod-labels=app",), {"app"}),
        (("--pod-labels=app.*",), {"app", "app_kubernetes_io_name"}),
        (("--pod-labels=app|b",), {"app"}),
        (("--pod-annotations=cost/center", "--pod-labels=team.x"), {"cost_center", "team_x"}),
    ],
)  # fmt: skip
def test_only_labels_and_annotations_that_are_allowed_are_written(tmp_path, flags, expected):
    names = {"app": "llm", "app.kubernetes.io/name": "x", "team-x": "ml"}
    with pod_node(tmp_path, *flags) as node:
        node.put(pod("llm-0", labels=names, annotations={"cost/center": "7", "other": "no"}))
        node.kubelet.rows = [("llm-0", uuid(0))]
        without, used = node.labels(UTIL)[1], node.labels(UTIL)[0]
        assert used.keys() - without.keys() == expected


def test_series_change_with_labels_and_with_the_uid_of_a_pod_that_was_made_again(tmp_path):
    with pod_node(tmp_path, "--pod-labels=app", "--kubernetes-enable-pod-uid") as node:
        node.put(pod("db-0", uid="first", labels={"app": "a"}))
        node.kubelet.rows = [("db-0", uuid(0))]
        before, info = node.labels(UTIL)[0], node.labels(INFO)[0]
        node.api.delete("pods", "db-0", "team")
        node.put(pod("db-0", uid="second", labels={"app": "b", "more": "x"}))
        after = node.labels(UTIL)[0]
        assert (before["pod_uid"], before["app"], info["gpu_pod_uid"]) == ("first", "a", "first")
        assert (after["pod_uid"], after["app"], node.labels(INFO)[0]["gpu_pod_uid"]) == ("second", "b", "second")


def test_a_pod_that_the_api_server_does_not_know_yet_is_named_as_the_kubelet_names_it(tmp_path):
    with pod_node(tmp_path, "--pod-metadata=api") as node:
        node.kubelet.rows = [("llm-0", uuid(0))]
        until(lambda: node.known.kept is not None)
        labels = node.labels(INFO)[0]
        assert (labels["gpu_pod"], "gpu_pod_uid" in labels, "workload" in labels) == ("llm-0", False, False)
        assert node.labels(UTIL)[0]["pod"] == "llm-0"


def test_a_malformed_pod_costs_itself_and_is_counted(tmp_path):
    with pod_node(tmp_path, "--pod-metadata=api") as node:
        broken = pod("broken")
        broken["metadata"]["labels"] = ["no", "labels"]
        node.api.put("pods", broken)
        node.put(pod("llm-0"))
        node.kubelet.rows = [("llm-0", uuid(0)), ("broken", uuid(1))]
        first, second = node.labels(INFO)
        assert ("gpu_pod_uid" in first, "gpu_pod_uid" in second) == (True, False)
        assert node.values("gpugauge_pod_metadata_malformed_total")[""] == 1


@pytest.mark.parametrize("flag", ["kubernetes-pod-label-allowlist-regex", "pod-labels", "pod-annotations"])
@pytest.mark.parametrize("text", ["(", "app,[", "[[:alpha:]]", r"\pL", r"app\z", ",", "*app", "a)|(b"])
def test_an_expression_that_cannot_be_used_ends_the_program_with_one_message(flag, text, capsys):
    with pytest.raises(cli.ConfigError) as error:
        cli.parse(["node", f"--{flag}={text}"], {})
    assert str(error.value).startswith(f"--{flag}: ")
    assert "\n" not in str(error.value)


def test_the_variables_of_dcgm_exporter_ask_for_the_same():
    variables = {
        "DCGM_EXPORTER_KUBERNETES": "true",
        "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS": "true",
        "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID": "1",
        "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX": "^app$",
    }
    options = node_config(cli.parse(["node"], variables), {"NODE_NAME": "n"}).pods
    assert (options.source, options.uid) == ("api", True)
    assert ("app" in options.labels, "apps" in options.labels) == (True, False)


@pytest.mark.parametrize(
    ("flags", "source", "warning"),
    [
        (("--pod-labels=app",), "off", "--pod-labels has no effect without --kubernetes"),
        (("--pod-metadata=api",), "off", "--pod-metadata has no effect without --kubernetes"),
        (("--kubernetes", "--pod-metadata=off", "--pod-labels=app"), "off",
         "--pod-labels has no effect with --pod-metadata=off"),
        (("--kubernetes", "--pod-labels=app"), "api", None),
        (("--kubernetes",), "off", None),
    ],
)  # fmt: skip
def test_flags_without_effect_are_named(flags, source, warning):
    config = node_config(cli.parse(["node", *flags], {}), {"NODE_NAME": "n"})
    assert config.pods.source == source
    assert list(config.warnings) == ([warning] if warning else [])


def test_the_program_reads_the_pods_where_it_is_asked_to_and_runs_without_an_api_server():
    flags = ["node", "--kubernetes", "--source", "simulated", "--pod-metadata", "api"]
    program = NodeProgram(node_config(cli.parse(flags, {}), {"NODE_NAME": "n"}))
    try:
        found = until(lambda: [each for each in program.collect().health if each.reason == "no_api_server"])
        assert [(each.source, each.message) for each in found] == [
            ("kubernetes", "pods cannot be read: KUBERNETES_SERVICE_HOST is not set")
        ]
    finally:
        program.close()


def test_without_the_kubelet_devices_are_those_that_statuses_of_pods_name_while_these_are_current(tmp_path):
    ids = [{"name": GPU, "resources": [{"resourceID": uuid(0), "health": "Healthy"}]}]
    statuses = {"containerStatuses": [{"name": "main", "allocatedResourcesStatus": ids}]}
    with pod_node(tmp_path, "--pod-metadata=api") as node:
        node.kubelet.rows = None
        node.put(pod("llm-0", status=statuses))
        assert [(labels["UUID"], labels["gpu_pod_uid"]) for labels in node.labels(INFO)] == [(uuid(0), "uid-of-llm-0")]
        assert node.values("gpugauge_device_allocated_pods") == {uuid(0): 1}
        assert node.labels(UTIL)[0]["pod"] == "llm-0"
        node.kubelet.rows = []
        assert node.values("gpugauge_device_allocated_pods") == {uuid(0): 0, uuid(1): 0}
