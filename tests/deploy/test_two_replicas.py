"""The option of two replicas: valid, in both sets, with exactly the permissions that the watcher uses."""

import os

import kubernetes_validate
import pytest
import yaml

from simulators.api_server import SimulatedApiServer
from tests.deploy.image import environment
from tests.deploy.manifests import MANIFESTS, ROOT, container, kustomized, offered_components, one
from tests.deploy.running import running

pytestmark = pytest.mark.slow

FOLDER = ROOT / "deploy/two-replicas"
VERBS = {"GET": "get", "POST": "create", "PUT": "update"}


def documents(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def patch():
    (only,) = documents("watcher.yaml")
    return only


def given():
    """The environment that the patch adds, as the kubelet makes it."""
    (only,) = patch()["spec"]["template"]["spec"]["containers"]
    names = {each["name"]: each.get("value", "gpugauge") for each in only["env"]}
    return {**names, "GPUGAUGE_LEASE": names["GPUGAUGE_LEASE"].replace("$(POD_NAMESPACE)", names["POD_NAMESPACE"])}


def rules():
    return documents("role.yaml")[0]["rules"]


@pytest.mark.parametrize("name", ["role.yaml", "rbac.yaml", "disruption-budget.yaml"])
def test_every_field_is_one_of_kubernetes(name):
    for document in documents(name):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
        assert document["metadata"]["namespace"] == "gpugauge"


def test_the_role_allows_one_lease_and_creating_it_alone():
    (role,), (binding,) = documents("role.yaml"), documents("rbac.yaml")
    assert role["kind"] == "Role"
    assert {(rule["apiGroups"][0], *rule["resources"]) for rule in rules()} == {("coordination.k8s.io", "leases")}
    named = {verb: rule.get("resourceNames") for rule in rules() for verb in rule["verbs"]}
    name = given()["GPUGAUGE_LEASE"].partition("/")[2]
    assert named == {"create": None, "get": [name], "update": [name]}
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    spec = one("Deployment", "gpugauge-cluster")["spec"]["template"]["spec"]
    assert [each["name"] for each in binding["subjects"]] == [spec["serviceAccountName"]]


def test_the_patch_and_the_budget_are_those_of_the_watcher():
    deployment = one("Deployment", "gpugauge-cluster")
    assert patch()["metadata"] == {key: deployment["metadata"][key] for key in ("name", "namespace")}
    assert patch()["spec"]["replicas"] == 2
    assert patch()["spec"]["template"]["spec"]["containers"][0]["name"] == container(*WATCHER)["name"]
    (budget,) = documents("disruption-budget.yaml")
    assert budget["spec"]["selector"] == deployment["spec"]["selector"]


WATCHER = ("Deployment", "gpugauge-cluster")


@pytest.mark.parametrize("whole", ["deploy", "deploy/manifests"])
def test_it_is_an_option_of_both_sets(whole, tmp_path):
    overlay = {
        "resources": [os.path.relpath(ROOT / whole, tmp_path)],
        "components": [os.path.relpath(FOLDER, tmp_path)],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    rendered = {(each["kind"], each["metadata"]["name"]): each for each in kustomized(tmp_path)}
    plain = {(each["kind"], each["metadata"]["name"]): each for each in kustomized(ROOT / whole)}
    assert rendered.keys() - plain.keys() == {
        ("Role", "gpugauge-cluster-lease"),
        ("RoleBinding", "gpugauge-cluster-lease"),
        ("PodDisruptionBudget", "gpugauge-cluster"),
    }
    assert [key for key in plain if plain[key] != rendered[key]] == [WATCHER]
    kubernetes_validate.validate(rendered[WATCHER], kubernetes_validate.latest_version(), strict=True)
    (only,) = rendered[WATCHER]["spec"]["template"]["spec"]["containers"]
    assert {**only, "env": None} == {**container(*WATCHER), "env": None}
    assert rendered[WATCHER]["spec"]["strategy"] == plain[WATCHER]["spec"]["strategy"]


def test_both_sets_say_how_to_turn_it_on():
    for folder in (ROOT / "deploy", MANIFESTS):
        assert FOLDER in offered_components(folder)


@pytest.mark.process
def test_the_watcher_requests_exactly_what_the_role_allows_and_releases_the_lease_at_its_end():
    server = SimulatedApiServer()
    server.start()
    try:
        arguments = [arg.replace("--address=:9410", "--address=127.0.0.1:0") for arg in container(*WATCHER)["args"]]
        with running([*arguments, f"--api-server={server.url}"], {**environment(), **given()}) as started:
            started.until("/metrics", "gpugauge_leader 1")
            started.until("/readyz")
            leader = server.leases.spec("gpugauge", "gpugauge-cluster")["holderIdentity"]
            assert started.stop() == 0
        assert leader
        assert server.leases.spec("gpugauge", "gpugauge-cluster")["holderIdentity"] == ""
        used = {VERBS[request.query["method"]] for request in server.requests if request.kind == "leases"}
        assert used == {verb for rule in rules() for verb in rule["verbs"]}
    finally:
        server.stop()
