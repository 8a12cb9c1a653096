"""Autoscaling: one series per pod, and objects that name metrics which exist."""

import re
import subprocess

import kubernetes_validate
import pytest
import yaml

from alerts import GROUPS
from alerts.rules.rule import Recording
from exporter.commands.metrics import sections
from tests.alerts.promtool import tool
from tests.deploy.manifests import ROOT
from tests.promql import selectors

FOLDER = ROOT / "deploy/autoscaling"
OWN = yaml.safe_load((FOLDER / "rules.yaml").read_text())["groups"][0]["rules"]
RECORDED = {rule.name for group in GROUPS for rule in group.rules if isinstance(rule, Recording)}
PER_POD = {rule["record"] for rule in OWN} | {name for name in RECORDED if name.startswith("pod:")}
EXPOSED = {metric.name for section in sections() for metric in section.metrics}
ADAPTER = yaml.safe_load((FOLDER / "prometheus-adapter-values.yaml").read_text())["rules"]["custom"]
HPA = yaml.safe_load((FOLDER / "hpa.yaml").read_text())
KEDA = yaml.safe_load((FOLDER / "keda.yaml").read_text())


def names(expression):
    return {name for name, _ in selectors(expression)}


def test_the_rules_read_what_is_exposed():
    for rule in OWN:
        assert names(rule["expr"]) <= EXPOSED | {"vllm:num_requests_waiting"}


@pytest.mark.parametrize("rule", ADAPTER, ids=lambda rule: rule["name"]["as"])
def test_the_adapter_serves_series_that_are_recorded_per_pod(rule):
    query = rule["metricsQuery"].replace("<<.GroupBy>>", "pod").replace("<<.LabelMatchers>>", 'namespace="a",pod="b"')
    (series,) = names(query)
    assert names(rule["seriesQuery"]) == {series} <= PER_POD
    assert re.fullmatch(rule["name"]["matches"], series)
    assert set(rule["resources"]["overrides"]) == {"namespace", "pod"}


def test_the_autoscaler_is_valid_and_names_metrics_of_the_adapter():
    kubernetes_validate.validate(HPA, "1.37", strict=True)
    served = {rule["name"]["as"] for rule in ADAPTER}
    assert {metric["pods"]["metric"]["name"] for metric in HPA["spec"]["metrics"]} <= served


@pytest.mark.parametrize("trigger", KEDA["spec"]["triggers"], ids=lambda each: each["metadata"]["query"])
def test_keda_asks_for_series_that_are_recorded_per_pod(trigger):
    assert names(trigger["metadata"]["query"]) <= PER_POD
    assert float(trigger["metadata"]["threshold"]) > float(trigger["metadata"]["activationThreshold"])


LABELS = 'UUID="GPU-1",GPU_I_ID="",gpu_namespace="ml",gpu_pod="llm-1"'
SERIES = [
    (f'gpugauge_allocation_memory_used_bytes{{node="n1",instance="a",{LABELS}}}', 40),
    (f'gpugauge_allocation_memory_used_bytes{{node="n1",instance="b",{LABELS}}}', 40),
    (f'gpugauge_allocation_memory_used_bytes{{node="n1",instance="a",{LABELS.replace("GPU-1", "GPU-2")}}}', 20),
    ('gpugauge_device_memory_total_bytes{node="n1",instance="a",UUID="GPU-1",GPU_I_ID=""}', 80),
    ('gpugauge_device_memory_total_bytes{node="n1",instance="b",UUID="GPU-1",GPU_I_ID=""}', 80),
    ('gpugauge_device_memory_total_bytes{node="n1",instance="a",UUID="GPU-2",GPU_I_ID=""}', 80),
    ('gpugauge_device_memory_total_bytes{node="n1",instance="a",UUID="GPU-3",GPU_I_ID=""}', 80),
    ('vllm:num_requests_waiting{namespace="ml",pod="llm-1",model_name="a"}', 3),
    ('vllm:num_requests_waiting{namespace="ml",pod="llm-1",model_name="b"}', 2),
]


@pytest.mark.prometheus
def test_there_is_one_series_per_pod_also_with_two_exporters_of_a_node(tmp_path):
    expected = {"pod:gpu_memory_used:ratio": 0.375, "pod:vllm_requests_waiting:sum": 5}
    document = {
        "rule_files": [str(FOLDER / "rules.yaml")],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": "30s",
                "input_series": [{"series": name, "values": f"{value}x4"} for name, value in SERIES],
                "promql_expr_test": [
                    {
                        "expr": name,
                        "eval_time": "1m",
                        "exp_samples": [{"labels": f'{name}{{namespace="ml",pod="llm-1"}}', "value": value}],
                    }
                    for name, value in expected.items()
                ],
            }
        ],
    }
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump(document))
    done = subprocess.run([tool("promtool"), "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
