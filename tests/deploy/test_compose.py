"""The compose stack: its files are where it mounts them, tools accept its configurations, its exporter starts."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from exporter import cli
from tests.alerts.promtool import tool
from tests.deploy.manifests import ROOT

FOLDER = ROOT / "deploy/compose"
STACK = yaml.safe_load((FOLDER / "compose.yaml").read_text())
GPU = yaml.safe_load((FOLDER / "gpu.yaml").read_text())
SERVICES = STACK["services"]


def mounts(service):
    """What is mounted of the checkout: (file or folder, place in the container)."""
    for each in SERVICES[service].get("volumes", ()):
        source, place, *_ = each.split(":")
        if source.startswith("."):
            yield (FOLDER / source).resolve(), Path(place)


@pytest.mark.parametrize("service", SERVICES)
def test_what_is_mounted_exists_and_is_read_only(service):
    for source, _ in mounts(service):
        assert source.exists(), source
    assert all(each.endswith(":ro") for each in SERVICES[service].get("volumes", ()) if each.startswith("."))


@pytest.mark.parametrize("service", SERVICES)
def test_nothing_is_reached_from_elsewhere_and_nobody_gains_privileges(service):
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[service]["ports"])
    assert SERVICES[service]["cap_drop"] == ["ALL"]
    assert SERVICES[service]["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in SERVICES[service]


@pytest.mark.parametrize("service", ["exporter", "watcher"])
def test_our_programs_have_a_read_only_root_and_flags_that_exist(service):
    assert SERVICES[service]["read_only"] is True
    assert cli.parse(SERVICES[service]["command"], {}).command in {"node", "cluster"}


def test_with_gpus_the_same_exporter_has_the_devices():
    assert set(GPU["services"]) <= set(SERVICES)
    exporter = GPU["services"]["exporter"]
    assert cli.parse(exporter["command"], {}).source in {"", "auto"}
    (device,) = exporter["deploy"]["resources"]["reservations"]["devices"]
    assert device["count"] == "all"


def test_images_of_others_have_a_version():
    for name, service in SERVICES.items():
        assert re.fullmatch(r"gpugauge:local|[a-z]+/[a-z]+:v?\d+\.\d+\.\d+", service["image"]), name


@pytest.mark.prometheus
def test_prometheus_accepts_its_configuration_with_every_rule_but_the_adapters(tmp_path):
    """The configuration with the places in the container replaced by those in the checkout."""
    text = (FOLDER / "prometheus.yml").read_text()
    config = tmp_path / "prometheus.yml"
    rules = {str(place): source for source, place in mounts("prometheus")}["/etc/prometheus/rules"]
    config.write_text(text.replace('"rules/', f'"{rules}/'))
    done = subprocess.run([tool("promtool"), "check", "config", config], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    checked = set(re.findall(r"([\w-]+)\.yaml", done.stdout))
    assert checked >= {"pods", "efficiency", "pending", "exporters"}
    assert not checked & {"dcgm-exporter", "kube-state-metrics"}


@pytest.mark.prometheus
def test_alertmanager_accepts_its_configuration_and_sends_nothing():
    (config,) = [source for source, place in mounts("alertmanager") if place.name == "alertmanager.yml"]
    done = subprocess.run([tool("amtool"), "check-config", config], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(set(receiver) == {"name"} for receiver in yaml.safe_load(config.read_text())["receivers"])


def test_grafana_finds_its_data_source_and_the_dashboards_where_they_are_mounted():
    places = {place: source for source, place in mounts("grafana")}
    (provider,) = yaml.safe_load((ROOT / "deploy/grafana/provisioning.yaml").read_text())["providers"]
    dashboards = places[Path(provider["options"]["path"])]
    home = Path(SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert (dashboards / home.name).is_file()
    source = places[Path("/etc/grafana/provisioning/datasources/gpugauge.yaml")]
    (prometheus,) = yaml.safe_load(source.read_text())["datasources"]
    assert prometheus["url"] == "http://prometheus:9090"
    scrapes = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    assert prometheus["jsonData"]["timeInterval"] == scrapes["global"]["scrape_interval"]
