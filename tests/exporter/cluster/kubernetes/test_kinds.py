"""The kinds that are watched, the table of permissions, and the roles that are made of it."""

from pathlib import Path

import yaml

from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.cluster.kubernetes.watching.permissions import WATCHED
from tests.exporter.cluster.fixture import GPUS

ROLE = Path(__file__).parents[4] / "deploy" / "manifests" / "cluster-role.yaml"


def rules():
    return yaml.safe_load(ROLE.read_text(encoding="utf-8"))["rules"]


def group_of(path):
    """The API group of a path: `/apis/batch/v1/jobs` is of `batch`, `/api/v1/pods` of the core group."""
    parts = path.split("/")
    return parts[2] if parts[1] == "apis" else ""


def test_the_manifests_allow_to_list_and_watch_exactly_the_kinds_that_are_watched():
    allowed = {(group, name) for rule in rules() for group in rule["apiGroups"] for name in rule["resources"]}
    assert allowed == {(group_of(path), kind.name) for kind in object_kinds(GPUS) for path in kind.paths}
    assert all(rule["verbs"] == ["list", "watch"] for rule in rules())


def test_every_part_has_a_rule_of_its_own_and_no_resource_two():
    assert [rule["resources"] for rule in rules()] == [list(part.resources) for part in WATCHED]
    named = [(part.group, name) for part in WATCHED for name in part.resources]
    assert len(named) == len(set(named))


def test_a_resource_without_its_form_is_a_defect_that_every_start_would_show():
    assert [kind.name for kind in object_kinds(GPUS)] == [name for part in WATCHED for name in part.resources]


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
