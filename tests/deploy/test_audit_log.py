"""The option of an audit log: valid, in both sets, and it changes nothing but what the log needs."""

import os
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from exporter.flags.table import COMMANDS
from exporter.node.audit.lines import AllocationStarted
from tests.deploy.image import environment
from tests.deploy.manifests import MANIFESTS, ROOT, container, kustomized, one
from tests.deploy.running import running
from tests.exporter.node.audit.checked import chained
from tests.exporter.node.audit.days import of_event

FOLDER = ROOT / "deploy/audit-log"
NODE = ("DaemonSet", "gpugauge-node")


def patch():
    return yaml.safe_load((FOLDER / "daemonset.yaml").read_text())


def pod():
    return patch()["spec"]["template"]["spec"]


def given():
    return {each["name"]: each["value"] for each in pod()["containers"][0]["env"]}


def test_the_patch_is_that_of_the_exporter_and_sets_variables_of_flags():
    daemonset = one(*NODE)
    assert patch()["metadata"] == {key: daemonset["metadata"][key] for key in ("name", "namespace")}
    assert pod()["containers"][0]["name"] == container(*NODE)["name"]
    assert given().keys() <= {flag.variable for flag in COMMANDS["node"].flags()}


def test_the_file_is_in_the_folder_of_the_node_that_is_mounted():
    (mount,) = pod()["containers"][0]["volumeMounts"]
    (volume,) = pod()["volumes"]
    assert volume["name"] == mount["name"]
    assert str(Path(given()["GPUGAUGE_AUDIT_LOG"]).parent) == mount["mountPath"]
    assert volume["hostPath"]["type"] == "DirectoryOrCreate"


@pytest.mark.slow
@pytest.mark.parametrize("whole", ["deploy", "deploy/manifests"])
def test_it_is_an_option_of_both_sets(whole, tmp_path):
    overlay = {
        "resources": [os.path.relpath(ROOT / whole, tmp_path)],
        "components": [os.path.relpath(FOLDER, tmp_path)],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    rendered = {(each["kind"], each["metadata"]["name"]): each for each in kustomized(tmp_path)}
    plain = {(each["kind"], each["metadata"]["name"]): each for each in kustomized(ROOT / whole)}
    assert [key for key in rendered if plain.get(key) != rendered[key]] == [NODE]
    kubernetes_validate.validate(rendered[NODE], kubernetes_validate.latest_version(), strict=True)
    (only,) = rendered[NODE]["spec"]["template"]["spec"]["containers"]
    (before,) = plain[NODE]["spec"]["template"]["spec"]["containers"]
    assert {**only, "env": 0, "volumeMounts": 0} == {**before, "env": 0, "volumeMounts": 0}
    assert {each["name"] for each in only["env"]} == {*given(), *(each["name"] for each in before["env"])}
    assert len(only["volumeMounts"]) == len(before["volumeMounts"]) + 1


def test_both_sets_name_it():
    for folder in (ROOT / "deploy", MANIFESTS):
        text = (folder / "kustomization.yaml").read_text()
        (line,) = [each for each in text.splitlines() if each.endswith("audit-log")]
        assert (folder / line.removeprefix("#   - ")).resolve() == FOLDER


@pytest.mark.process
def test_the_exporter_writes_the_log_with_these_variables(tmp_path):
    file = tmp_path / "audit.jsonl"
    variables = {**environment(), **given(), "GPUGAUGE_AUDIT_LOG": str(file), "NODE_NAME": "node-7"}
    arguments = ["node", "--source=simulated", "--address=127.0.0.1:0", "--collect-interval=200"]
    with running(arguments, variables) as started:
        started.until("/metrics", 'gpugauge_audit_last_write_timestamp_seconds{node="node-7"}')
        assert started.stop() == 0
    lines = chained(file.read_bytes())
    assert of_event(lines, AllocationStarted)
    assert lines[-1].stopped
