"""Each way of importing dashboards into Grafana carries the same bytes: files, ConfigMaps, the grafana-operator."""

import json
from pathlib import Path

import pytest
import yaml

from dashboards import DASHBOARDS
from dashboards.__main__ import files
from tests.deploy.manifests import ROOT, kustomized

GENERATED = ROOT / "deploy/generated"
RESOURCES = GENERATED / "grafana-dashboards.yaml"
BYTES = {path.name: path.read_bytes() for path in (GENERATED / "dashboards").iterdir()}
"""What is imported by hand, or read from a folder, by the name of the file."""


@pytest.fixture(scope="module")
def config_maps():
    """The data of the ConfigMaps, as `kubectl apply -k` sends them, by name."""
    return {
        each["metadata"]["name"]: {key: text.encode() for key, text in each["data"].items()}
        for each in kustomized(ROOT / "deploy")
        if each["kind"] == "ConfigMap"
    }


@pytest.fixture(scope="module")
def operator_resources():
    return list(yaml.safe_load_all(RESOURCES.read_text()))


def test_the_folder_has_every_dashboard_and_nothing_else():
    assert set(BYTES) == {f"{each.uid}.json" for each in DASHBOARDS}
    assert {json.loads(text)["uid"] for text in BYTES.values()} == {each.uid for each in DASHBOARDS}


def test_the_sidecar_gets_the_bytes_of_the_files(config_maps):
    assert {key: text for data in config_maps.values() for key, text in data.items()} == BYTES
    assert all(len(data) == 1 for data in config_maps.values())


def test_the_grafana_operator_gets_the_bytes_of_the_files(config_maps, operator_resources):
    references = [each["spec"]["configMapRef"] for each in operator_resources]
    assert {each["key"]: config_maps[each["name"]][each["key"]] for each in references} == BYTES
    assert len(references) == len(BYTES)


def test_a_grafana_dashboard_has_the_fields_of_its_definition_and_no_uid_of_its_own(operator_resources):
    for each in operator_resources:
        assert (each["apiVersion"], each["kind"]) == ("grafana.integreatly.org/v1beta1", "GrafanaDashboard")
        assert each["spec"].keys() == {"instanceSelector", "allowCrossNamespaceImport", "folder", "configMapRef"}
        assert each["spec"]["instanceSelector"] == {"matchLabels": {"dashboards": "grafana"}}


def test_the_provider_reads_a_folder_and_shows_it_under_the_same_name_as_the_others(operator_resources):
    (provider,) = yaml.safe_load((ROOT / "deploy/grafana/provisioning.yaml").read_text())["providers"]
    whole = yaml.safe_load((ROOT / "deploy/kustomization.yaml").read_text())
    folders = {each["spec"]["folder"] for each in operator_resources}
    folders |= {each["options"]["annotations"]["grafana_folder"] for each in whole["configMapGenerator"]}
    assert (provider["type"], {provider["folder"]}) == ("file", folders)
    assert "foldersFromFilesStructure" not in provider["options"]


def test_the_resources_are_offered_in_the_kustomization():
    offered = f"#  - {RESOURCES.relative_to(ROOT / 'deploy')}"
    assert offered in Path(ROOT / "deploy/kustomization.yaml").read_text().splitlines()
    assert RESOURCES.read_text() == files(DASHBOARDS)["grafana-dashboards.yaml"]
