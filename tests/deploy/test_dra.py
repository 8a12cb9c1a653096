"""The option of DRA objects: valid, in both sets, with exactly the permissions that the node exporter uses."""

import os

import kubernetes_validate
import pytest
import yaml

from tests.deploy.manifests import ROOT, container, kustomized, one
from tests.exporter.node.dra.slices import claim_object
from tests.exporter.node.dra_node import dra_node, users

FOLDER = ROOT / "deploy/dra"
NODE = ("DaemonSet", "gpugauge-node")


def documents(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def verb(request):
    if "/namespaces/" in request.path:
        return "get"
    return "watch" if request.watch else "list"


def test_every_field_is_one_of_kubernetes():
    for document in documents("rbac.yaml"):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_the_patch_is_that_of_the_node_exporter_and_mounts_the_token():
    (patch,) = documents("daemonset.yaml")
    daemonset = one(*NODE)
    assert patch["metadata"] == {key: daemonset["metadata"][key] for key in ("name", "namespace")}
    spec = patch["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is True
    assert spec["containers"][0]["name"] == container(*NODE)["name"]
    _, binding = documents("rbac.yaml")
    account = daemonset["spec"]["template"]["spec"]["serviceAccountName"]
    assert [each["name"] for each in binding["subjects"]] == [account]


def test_the_role_allows_exactly_what_is_requested():
    (patch,) = documents("daemonset.yaml")
    (variable,) = patch["spec"]["template"]["spec"]["containers"][0]["env"]
    with dra_node(**{variable["name"]: variable["value"]}) as node:
        node.api.put("resourceclaims", claim_object(("gpu", "gpu-0"), name="c"))
        node.claim("train", "gpu-0@c")
        node.settled(lambda found: users(found) == {(0, ""): {"train"}})
        used = {(each.kind, verb(each)) for each in node.api.requests}
    role, _ = documents("rbac.yaml")
    allowed = {(kind, verb) for rule in role["rules"] for kind in rule["resources"] for verb in rule["verbs"]}
    assert used == allowed
    assert all(rule["apiGroups"] == ["resource.k8s.io"] for rule in role["rules"])


@pytest.mark.slow
@pytest.mark.parametrize("whole", ["deploy", "deploy/manifests"])
def test_it_is_an_option_of_both_sets_beside_two_replicas(whole, tmp_path):
    components = [os.path.relpath(folder, tmp_path) for folder in (FOLDER, ROOT / "deploy/two-replicas")]
    overlay = {"resources": [os.path.relpath(ROOT / whole, tmp_path)], "components": components}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    rendered = {(each["kind"], each["metadata"]["name"]): each for each in kustomized(tmp_path)}
    assert ("ClusterRole", "gpugauge-node-dra") in rendered
    kubernetes_validate.validate(rendered[NODE], kubernetes_validate.latest_version(), strict=True)
    (only,) = rendered[NODE]["spec"]["template"]["spec"]["containers"]
    assert {each["name"] for each in only["env"]} == {"NODE_NAME", "KUBERNETES_ENABLE_DRA"}
    assert {**only, "env": None} == {**container(*NODE), "env": None}
