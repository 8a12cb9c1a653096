"""Rules, dashboards and counters of the chart are the generated files, with what the values change."""

import csv
import gzip
import io
import json
import subprocess
import tarfile

import pytest
import yaml

from alerts.__main__ import files
from alerts.rules.rule import Links
from dashboards import DASHBOARDS
from dashboards.__main__ import files as dashboard_files
from tests.deploy.helm.chart import CHART, HELM, NEEDS_HELM, container, nested, pod, rendered
from tests.deploy.manifests import ROOT

pytestmark = NEEDS_HELM

GENERATED = ROOT / "deploy/generated"
RULES = {
    "gpugauge": ({}, "prometheusrule.yaml"),
    "gpugauge-dcgm-exporter": (nested(rules__adapters__dcgmExporter=True), "prometheusrule-dcgm-exporter.yaml"),
    "gpugauge-kube-state-metrics": (
        nested(rules__adapters__kubeStateMetrics=True, watcher__enabled=False),
        "prometheusrule-kube-state-metrics.yaml",
    ),
}


def spec(text):
    return yaml.safe_load(text)["spec"]


@pytest.mark.parametrize("name", RULES)
def test_rules_are_the_generated_ones_and_adapters_come_with_their_value(name):
    values, file = RULES[name]
    objects = rendered(values)
    assert objects["PrometheusRule", name]["spec"] == spec((GENERATED / file).read_text())
    assert {found for kind, found in objects if kind == "PrometheusRule"} == {"gpugauge", name}


@pytest.mark.parametrize("name", RULES)
def test_the_cluster_label_gets_the_same_name_as_from_the_generator(name):
    values, file = RULES[name]
    expected = spec(files(cluster_label="k8s_cluster")[file])
    assert rendered({**values, "clusterLabel": "k8s_cluster"})["PrometheusRule", name]["spec"] == expected


def test_dashboards_with_another_cluster_label_are_those_of_the_generator():
    objects = rendered({**nested(dashboards__enabled=True), "clusterLabel": "k8s_cluster"})
    for name, text in dashboard_files(DASHBOARDS, "k8s_cluster").items():
        if name.endswith(".json"):
            file = name.removeprefix("dashboards/")
            (data,) = [each["data"] for each in objects.values() if file in each.get("data", {})]
            assert data[file] == text


def test_runbook_and_dashboards_have_the_addresses_of_the_values():
    links = Links("https://runbooks.example/gpu.md", "https://grafana.example/sub")
    values = nested(rules__runbookUrl=links.runbook, rules__grafanaUrl=f"{links.grafana}/")
    assert rendered(values)["PrometheusRule", "gpugauge"]["spec"] == spec(files(links)["prometheusrule.yaml"])


def test_a_threshold_is_recorded_under_the_name_of_overrides():
    values = nested(rules__thresholds={"GPUWorkloadPending": 7200, "GPUPodLowUtilization": 0.15})
    (group,) = rendered(values)["PrometheusRule", "gpugauge-thresholds"]["spec"]["groups"]
    record = "global:gpugauge_threshold_override:value"
    assert group["rules"] == [
        {"record": record, "expr": "vector(0.15)", "labels": {"alert": "GPUPodLowUtilization"}},
        {"record": record, "expr": "vector(7200)", "labels": {"alert": "GPUWorkloadPending"}},
    ]


def test_routes_are_the_generated_ones_with_the_secret_and_the_label_of_the_values():
    text = (GENERATED / "alertmanager/alertmanagerconfig.yaml").read_text()
    plain = rendered(nested(alertmanagerConfig__enabled=True))["AlertmanagerConfig", "gpugauge"]["spec"]
    assert plain == spec(text)
    values = nested(alertmanagerConfig__enabled=True, alertmanagerConfig__existingSecret="ours", clusterLabel="k8s")
    changed = rendered(values)["AlertmanagerConfig", "gpugauge"]["spec"]
    expected = text.replace("gpugauge-alertmanager", "ours").replace("- cluster\n", "- k8s\n")
    assert changed == spec(expected)
    assert ("AlertmanagerConfig", "gpugauge") not in rendered()


def test_the_label_of_clusters_is_nowhere_else_in_the_routes():
    text = (GENERATED / "alertmanager/alertmanagerconfig.yaml").read_text()
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert body.count("cluster") == body.count("- cluster\n")


def test_the_grafana_operator_reads_the_config_maps_and_the_sidecar_does_not():
    operator = nested(dashboards__grafanaOperator__enabled=True, dashboards__namespace="grafana")
    objects = rendered(operator)
    expected = yaml.safe_load_all((GENERATED / "grafana-dashboards.yaml").read_text())
    for each in expected:
        name = each["metadata"]["name"]
        made = objects["GrafanaDashboard", name]
        assert (made["spec"], made["metadata"]["namespace"]) == (each["spec"], "grafana")
        config_map = objects["ConfigMap", name]
        assert config_map["metadata"]["namespace"] == "grafana"
        assert "grafana_dashboard" not in config_map["metadata"]["labels"]
        file = each["spec"]["configMapRef"]["key"]
        assert config_map["data"] == {file: (GENERATED / "dashboards" / file).read_text()}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (nested(counters__csv="DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature.\n"), ["DCGM_FI_DEV_GPU_TEMP"]),
        (nested(counters__extra="DCGM_FI_DEV_FAN_SPEED, gauge, Fan speed.\n"), None),
    ],
)
def test_counters_of_the_values_are_read_from_where_they_are_mounted(values, expected):
    objects = rendered(values)
    text = objects["ConfigMap", "gpugauge-counters"]["data"]["counters.csv"]
    names = [row[0].strip() for row in csv.reader(io.StringIO(text)) if row and not row[0].startswith("#")]
    default = (ROOT / "exporter/node/devices/defaults/default-counters.csv").read_text()
    added = [row[0].strip() for row in csv.reader(io.StringIO(default)) if row and not row[0].startswith("#")]
    assert names == (expected or [*added, "DCGM_FI_DEV_FAN_SPEED"])
    (volume,) = [each for each in pod(objects)["volumes"] if each["name"] == "counters"]
    (mount,) = [each for each in container(objects)["volumeMounts"] if each["name"] == "counters"]
    path = f"{mount['mountPath']}/{volume['configMap']['items'][0]['path']}"
    assert f"--collectors={path}" in container(objects)["args"]


def test_a_release_fits_the_secret_in_which_helm_keeps_it():
    """Helm stores chart and rendered objects, compressed and in base64 twice, in a Secret of at most 1 MiB."""
    files = {str(path): path.read_text() for path in CHART.rglob("*") if path.is_file()}
    files |= {path.name: path.read_text() for path in (CHART / "files/dashboards").iterdir()}
    everything = rendered(nested(rules__adapters__dcgmExporter=True, dashboards__grafanaOperator__enabled=True))
    stored = gzip.compress(json.dumps([files, yaml.safe_dump_all(everything.values())]).encode())
    assert len(stored) * 16 / 9 < 700_000


def test_the_archive_of_the_chart_has_files_in_place_of_links(tmp_path):
    command = [HELM, "package", str(CHART), "--destination", str(tmp_path)]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as packed:
        members = {each.name: each for each in packed}
        assert all(each.isfile() for each in members.values())
        for path in sorted((CHART / "files").rglob("*")) + sorted((CHART / "files/dashboards").iterdir()):
            if path.is_file():
                packed_file = packed.extractfile(members[f"gpugauge/{path.relative_to(CHART)}"])
                assert packed_file.read() == path.read_bytes()
