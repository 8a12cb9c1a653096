"""The kinds that are watched, and the permissions that the manifests give for them."""

from pathlib import Path

import yaml

from exporter.cluster.kubernetes.kinds import object_kinds
from tests.exporter.cluster.fixture import GPUS

RBAC = Path(__file__).parents[4] / "deploy" / "manifests" / "rbac.yaml"


def rules():
    documents = yaml.safe_load_all(RBAC.read_text(encoding="utf-8"))
    return next(each["rules"] for each in documents if each["kind"] == "ClusterRole")


def group_of(path):
    """The API group of a path: `/apis/batch/v1/jobs` is of `batch`, `/api/v1/pods` of the core group."""
    parts = path.split("/")
    return parts[2] if parts[1] == "apis" else ""


def test_the_manifests_allow_to_list_and_watch_exactly_the_kinds_that_are_watched():
    allowed = {(group, name) for rule in rules() for group in rule["apiGroups"] for name in rule["resources"]}
    assert allowed == {(group_of(path), kind.name) for kind in object_kinds(GPUS) for path in kind.paths}
    assert all({"list", "watch"} <= set(rule["verbs"]) <= {"get", "list", "watch"} for rule in rules())


def test_optional_kinds_have_rules_of_their_own():
    optional = {kind.name for kind in object_kinds(GPUS) if kind.optional}
    for rule in rules():
        assert set(rule["resources"]) <= optional or not set(rule["resources"]) & optional


def test_only_pods_nodes_and_namespaces_are_needed():
    assert [kind.name for kind in object_kinds(GPUS) if not kind.optional] == ["pods", "nodes", "namespaces"]


def test_the_objects_of_one_namespace_have_a_path_of_their_own():
    kinds = {kind.name: kind for kind in object_kinds(GPUS)}
    assert kinds["pods"].paths_in("a") == ("/api/v1/namespaces/a/pods",)
    assert kinds["jobs"].paths_in("a") == ("/apis/batch/v1/namespaces/a/jobs",)
    of_cluster = {name for name, kind in kinds.items() if not kind.namespaced}
    assert of_cluster == {"nodes", "namespaces", "resourceslices", "deviceclasses", "nodepools", "configmaps"}


def test_of_configmaps_only_the_autoscalers_status_may_be_and_is_read():
    (rule,) = (rule for rule in rules() if "configmaps" in rule["resources"])
    (kind,) = (kind for kind in object_kinds(GPUS) if kind.name == "configmaps")
    assert rule["resourceNames"] == ["cluster-autoscaler-status"]
    assert kind.query == {"fieldSelector": "metadata.name=cluster-autoscaler-status"}
    assert kind.paths == ("/api/v1/namespaces/kube-system/configmaps",)
    assert sum("resourceNames" in each for each in rules()) == 1
