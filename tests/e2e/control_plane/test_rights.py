"""The shipped roles on a real API server: exactly the rights of the table, and what follows where they are missing."""

import os
import re
import urllib.error

import pytest
import yaml

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.watching.api import ApiError, open_api
from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.cluster.kubernetes.watching.permissions import LEASE_PARTS, WATCHED
from exporter.gpu_names import gpu_resources
from tests.deploy.manifests import ROOT, kustomized
from tests.e2e.control_plane import processes
from tests.e2e.control_plane.shipped import (
    DEPLOY,
    OF_THE_OPERATOR,
    apply_rights,
    documents,
    rights,
    rights_of_two_replicas,
)

pytestmark = processes.needs("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")

COMPONENTS = [
    path.parent.name for path in sorted(DEPLOY.glob("*/kustomization.yaml")) if "kind: Component" in path.read_text()
]
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
OFF = re.compile(r'^gpugauge_watch_off\{object="(\w+)",reason="forbidden"\} 1$', re.MULTILINE)


@pytest.fixture(scope="module")
def token(plane):
    return plane.token("gpugauge", "gpugauge-cluster")


@pytest.fixture(scope="module")
def of_everyone(plane):
    """What an account may do to which nobody has given anything."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "plain", "namespace": "gpugauge"}}
    plane.apply(account)
    return allowed(plane, plane.token("gpugauge", "plain"), "gpugauge")


def allowed(plane, token, namespace):
    """What an account may do in a namespace, as (group, resource, verb, object names)."""
    given = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    return {
        (group, resource, verb, tuple(rule.get("resourceNames", ())))
        for rule in plane.call("POST", REVIEW, given, token=token)["status"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def rights_of(parts):
    return {
        (part.group, resource, verb, part.object_names)
        for part in parts
        for resource in part.resources
        for verb in part.verbs
    }


def test_the_watcher_has_exactly_the_rights_of_the_table(plane, token, of_everyone):
    for namespace in ("default", "gpugauge"):
        assert allowed(plane, token, namespace) - of_everyone == rights_of(WATCHED)


def test_two_replicas_have_the_lease_of_their_namespace_beside_it(plane, token, of_everyone):
    made = [plane.path_of(each) + f"/{each['metadata']['name']}" for each in rights_of_two_replicas()]
    for each in rights_of_two_replicas():
        plane.apply(each)
    try:
        assert allowed(plane, token, "gpugauge") - of_everyone == rights_of(WATCHED) | rights_of(LEASE_PARTS)
        assert allowed(plane, token, "default") - of_everyone == rights_of(WATCHED)
    finally:
        for path in made:
            plane.delete(path, {})


def test_the_node_exporter_has_no_rights(plane, of_everyone):
    assert allowed(plane, plane.token("gpugauge", "gpugauge-node"), "gpugauge") == of_everyone


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/configmaps"),
        ("GET", "/api/v1/namespaces/kube-system/configmaps"),
        ("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"),
        ("GET", "/api/v1/nodes/n1/proxy/metrics"),
        ("GET", "/api/v1/namespaces/default/pods/p/log"),
        ("POST", "/api/v1/namespaces/default/pods"),
        ("DELETE", "/api/v1/namespaces/default/pods/p"),
        ("PATCH", "/api/v1/nodes/n1"),
        ("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases"),
    ],
)
def test_nothing_else_is_allowed(plane, token, method, path):
    with pytest.raises(urllib.error.HTTPError) as refused:
        plane.call(method, path, None if method == "GET" else {}, "application/merge-patch+json", token)
    assert refused.value.code == 403


def test_of_configmaps_the_autoscalers_status_alone_can_be_listed(plane, token):
    (kind,) = (kind for kind in object_kinds(gpu_resources()) if kind.name == "configmaps")
    status = {"metadata": {"name": "cluster-autoscaler-status"}, "data": {"status": "autoscalerStatus: Running"}}
    plane.create("/api/v1/namespaces/kube-system/configmaps", status)
    api = open_api(ClusterConfig(kubeconfig=plane.kubeconfig("configmaps", token)))
    try:
        assert len(kind.codec.page(api.page(kind.paths[0], kind.query)).records) == 1
        with pytest.raises(ApiError, match="403"):
            api.page(kind.paths[0], {})
    finally:
        api.close()
        plane.delete("/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status", {})


def test_without_the_optional_rules_the_watcher_is_ready_and_reads_them_once_they_are_back(plane, request):
    (role,) = (each for each in rights() if each["kind"] == "ClusterRole")
    optional = {name for part in WATCHED if not part.needed for name in part.resources}
    plane.apply({**role, "rules": role["rules"][:1]})
    try:
        watcher = request.getfixturevalue("watcher")
        plane.until(lambda: set(OFF.findall(watcher.get("/metrics")[1])) == optional)
        assert watcher.get("/readyz")[0] == 200
        assert 'gpugauge_source_up{source="kubernetes"} 1' in watcher.get("/metrics")[1]
    finally:
        apply_rights(plane)
    plane.until(lambda: not OFF.findall(watcher.get("/metrics")[1]))


@pytest.mark.parametrize("folder", ["deploy/manifests", "deploy"])
def test_the_api_server_accepts_every_object_of_the_manifests(plane, folder):
    for each in kustomized(ROOT / folder):
        if each["kind"] not in OF_THE_OPERATOR:
            plane.apply(each, dry_run=True)


@pytest.mark.parametrize("component", COMPONENTS)
def test_the_api_server_accepts_every_option_of_the_manifests(plane, component, tmp_path):
    overlay = {
        "resources": [os.path.relpath(ROOT / "deploy/manifests", tmp_path)],
        "components": [os.path.relpath(ROOT / "deploy" / component, tmp_path)],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    for each in kustomized(tmp_path):
        plane.apply(each, dry_run=True)


@pytest.mark.parametrize(
    ("option", "rights"),
    [
        ("pod-metadata", {("", "pods", verb, ()) for verb in ("list", "watch")}),
        ("pod-metadata-kubelet", {("", "nodes/pods", "get", ())}),
    ],
)
def test_an_option_gives_the_node_exporter_what_it_reads_and_nothing_else(plane, of_everyone, option, rights):
    given = documents(f"{option}/rbac.yaml")
    for each in given:
        plane.apply(each)
    try:
        token = plane.token("gpugauge", "gpugauge-node")
        assert allowed(plane, token, "default") - of_everyone == rights
    finally:
        for each in given:
            plane.delete(f"{plane.path_of(each)}/{each['metadata']['name']}", {})
