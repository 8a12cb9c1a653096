"""The option of process metrics: what it adds to the node exporter, and nothing else."""

import shutil

import pytest
import yaml

from exporter.flags.processes import CONTAINER_LOG_LINKS, PROCESSES
from tests.deploy.manifests import MANIFESTS, ROOT, container, kustomized, one

FOLDER = ROOT / "deploy/process-metrics"


def added():
    patch = yaml.safe_load((FOLDER / "node.yaml").read_text())
    target = one(patch["kind"], patch["metadata"]["name"])
    assert patch["metadata"].items() <= target["metadata"].items()
    return patch["spec"]["template"]["spec"]


def test_the_patch_turns_the_flag_on_in_the_pid_namespace_of_the_node():
    spec = added()
    (only,) = spec["containers"]
    assert only["name"] == container("DaemonSet", "gpugauge-node")["name"]
    assert only["env"] == [{"name": PROCESSES[0].variable, "value": "true"}]
    assert spec["hostPID"] is True
    assert spec.keys() == {"hostPID", "containers", "volumes"}
    assert only.keys() == {"name", "env", "volumeMounts"}


def test_the_links_to_logs_are_mounted_read_only_where_they_are_looked_for_and_no_log_is():
    (volume,), ((mount,),) = added()["volumes"], [each["volumeMounts"] for each in added()["containers"]]
    assert volume["hostPath"] == {"path": CONTAINER_LOG_LINKS, "type": "Directory"}
    assert mount == {"name": volume["name"], "mountPath": CONTAINER_LOG_LINKS, "readOnly": True}


@pytest.mark.slow
def test_kustomize_adds_it_to_the_daemonset(tmp_path):
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    shutil.copytree(FOLDER, tmp_path / "process-metrics")
    kustomization = tmp_path / "manifests/kustomization.yaml"
    kustomization.write_text(kustomization.read_text() + "\ncomponents: [../process-metrics]\n")
    (spec,) = (
        each["spec"]["template"]["spec"] for each in kustomized(tmp_path / "manifests") if each["kind"] == "DaemonSet"
    )
    before = container("DaemonSet", "gpugauge-node")
    (after,) = spec["containers"]
    assert spec["hostPID"] is True
    assert {each["name"] for each in after["env"]} == {"NODE_NAME", "GPUGAUGE_PROCESS_METRICS"}
    assert after["args"] == before["args"]
    assert len(after["volumeMounts"]) == len(before["volumeMounts"]) + 1
