"""The option of pod metadata: valid, in both sets, with exactly the permissions that the node exporter uses."""

import os
from dataclasses import replace

import kubernetes_validate
import pytest
import yaml

from exporter import cli
from exporter.node.config import node_config
from exporter.node.program import NodeProgram
from exporter.node.service_account.account import ServiceAccount
from simulators.api_server import SimulatedApiServer
from tests.deploy.manifests import ROOT, container, kustomized, offered_components, one
from tests.waiting import until

FOLDER, KUBELET = ROOT / "deploy/pod-metadata", ROOT / "deploy/pod-metadata-kubelet"
NODE = ("DaemonSet", "gpugauge-node")


def documents(name, folder=FOLDER):
    return list(yaml.safe_load_all((folder / name).read_text()))


@pytest.mark.parametrize(
    ("folder", "resource", "verbs"), [(FOLDER, "pods", ["list", "watch"]), (KUBELET, "nodes/pods", ["get"])]
)
def test_the_role_allows_to_read_pods_and_nothing_else(folder, resource, verbs):
    role, binding = documents("rbac.yaml", folder)
    for document in (role, binding):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    assert role["rules"] == [{"apiGroups": [""], "resources": [resource], "verbs": verbs}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    spec = one(*NODE)["spec"]["template"]["spec"]
    subjects = [(each["name"], each["namespace"]) for each in binding["subjects"]]
    assert subjects == [(spec["serviceAccountName"], "gpugauge")]


@pytest.mark.slow
@pytest.mark.parametrize("option", [FOLDER, KUBELET])
@pytest.mark.parametrize("whole", ["deploy", "deploy/manifests"])
def test_it_is_an_option_of_both_sets_that_mounts_the_token_and_sets_variables(whole, option, tmp_path):
    assert option in offered_components(ROOT / whole)
    overlay = {
        "resources": [os.path.relpath(ROOT / whole, tmp_path)],
        "components": [os.path.relpath(each, tmp_path) for each in (ROOT / "deploy/two-replicas", option)],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    rendered = {(each["kind"], each["metadata"]["name"]): each for each in kustomized(tmp_path)}
    plain = {(each["kind"], each["metadata"]["name"]): each for each in kustomized(ROOT / whole)}
    assert {(each["kind"], each["metadata"]["name"]) for each in documents("rbac.yaml", option)} <= rendered.keys()
    before, after = (each[NODE]["spec"]["template"]["spec"] for each in (plain, rendered))
    assert (before["automountServiceAccountToken"], after["automountServiceAccountToken"]) == (False, True)
    (given,) = documents("node.yaml", option)
    added = [each for each in after["containers"][0]["env"] if each not in before["containers"][0]["env"]]
    assert added == given["spec"]["template"]["spec"]["containers"][0]["env"]
    kubernetes_validate.validate(rendered[NODE], kubernetes_validate.latest_version(), strict=True)


def test_the_variables_of_the_kubelets_option_ask_the_kubelet_of_the_node():
    (patch,) = documents("node.yaml", KUBELET)
    (patched,) = patch["spec"]["template"]["spec"]["containers"]
    variables = {each["name"]: each.get("value", "10.0.0.7") for each in patched["env"]}
    options = node_config(cli.parse(container(*NODE)["args"], variables), {**variables, "NODE_NAME": "n"}).pods
    assert (options.source, options.kubelet.url) == ("kubelet", "https://10.0.0.7:10250")


def test_the_node_exporter_requests_exactly_what_the_role_allows(tmp_path):
    (patch,) = documents("node.yaml")
    (patched,) = patch["spec"]["template"]["spec"]["containers"]
    variables = {each["name"]: each["value"] for each in patched["env"]}
    arguments = cli.parse([*container(*NODE)["args"], "--source=simulated"], variables)
    (tmp_path / "token").write_text("secret")
    server = SimulatedApiServer(token="secret")
    server.start()
    try:
        config = replace(
            node_config(arguments, {**variables, "NODE_NAME": "n"}),
            service_account=ServiceAccount(server.url, tmp_path),
        )
        program = NodeProgram(config)
        try:
            until(lambda: len(server.requests) > 1)
            assert [(each.kind, each.watch) for each in server.requests] == [("pods", False), ("pods", True)]
        finally:
            program.close()
    finally:
        server.stop()
