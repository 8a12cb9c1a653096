"""The values files for the GPU Operator: what they render, and that the document names what there is."""

import re

import pytest
import yaml

from tests.deploy.helm.chart import NEEDS_HELM, container, merged, nested, pod, rendered
from tests.deploy.helm.test_privileges import PODS, privileges
from tests.deploy.manifests import ROOT
from tests.deploy.test_manifests import matches

pytestmark = NEEDS_HELM

FOLDER = ROOT / "deploy/helm/values"
LABEL = "nvidia.com/gpu.deploy.dcgm-exporter"


def given(*names):
    return merged(*(yaml.safe_load((FOLDER / f"{name}.yaml").read_text()) for name in names))


def test_the_exporter_uses_the_runtime_class_and_goes_with_the_operators_own():
    objects = rendered(given("gpu-operator"))
    assert pod(objects)["runtimeClassName"] == "nvidia"
    affinity = pod(objects)["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    for key in (LABEL, f"{LABEL}-dra"):
        for value in ("paused-for-driver-upgrade", "paused-for-mig-change", "false"):
            assert not any(matches(term, {"nvidia.com/gpu.present": "true", key: value}) for term in terms)
        assert any(matches(term, {key: "true"}) for term in terms)


def test_with_the_operators_host_engine_there_is_no_capability():
    objects = rendered(given("gpu-operator", "gpu-operator-host-engine"))
    assert privileges(objects) == {"user 0", f"read {PODS}"}
    assert "--remote-hostengine-info=nvidia-dcgm.gpu-operator.svc:5555" in container(objects)["args"]


def test_in_dra_mode_the_gpus_come_from_a_claim_with_admin_access():
    objects = rendered(given("gpu-operator-dra"))
    assert "runtimeClassName" not in pod(objects)
    (claim,) = pod(objects)["resourceClaims"]
    template = objects["ResourceClaimTemplate", claim["resourceClaimTemplateName"]]
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"] == {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All", "adminAccess": True}
    assert container(objects)["resources"]["claims"] == [{"name": claim["name"]}]


def test_beside_the_operators_exporter_nothing_runs_and_no_image_is_needed():
    objects = rendered(merged(given("side-by-side"), nested(image__repository="")))
    assert {kind for kind, _ in objects} == {"ConfigMap", "PrometheusRule"}
    rules = {name for kind, name in objects if kind == "PrometheusRule"}
    assert rules == {"gpugauge", "gpugauge-dcgm-exporter", "gpugauge-kube-state-metrics"}


def test_counters_of_the_operators_config_map_are_read_by_their_key():
    existing = {"name": "metrics-config", "key": "dcgm-metrics.csv"}
    (volume,) = [
        each
        for each in pod(rendered(nested(counters__existingConfigMap=existing)))["volumes"]
        if each["name"] == "counters"
    ]
    items = [{"key": "dcgm-metrics.csv", "path": "counters.csv"}]
    assert volume["configMap"] == {"name": "metrics-config", "items": items}


@pytest.mark.parametrize("document", ["docs/gpu-operator.md", "deploy/helm/gpugauge/README.md", "README.md"])
def test_documents_name_values_and_files_that_there_are(document):
    text = (ROOT / document).read_text()
    for name in re.findall(r"deploy/helm/values/[\w.-]+", text):
        assert (ROOT / name).exists()
    defaults = yaml.safe_load((ROOT / "deploy/helm/gpugauge/values.yaml").read_text())
    of_the_operator = {"dcgmExporter", "dcgm", "daemonsets", "operator", "hostPaths"}
    for path in re.findall(r"`([a-z]\w+(?:\.\w+)+)(?:=\S*)?`", text):
        found = defaults
        for name in path.split("."):
            if path.partition(".")[0] not in of_the_operator:
                found = found[name]
