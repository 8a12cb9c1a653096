"""Every place that names the version names the same one; docs/releasing.md tells a maintainer to run this."""

import json
import re
from pathlib import Path

import pytest
import yaml

from exporter import VERSION

ROOT = Path(__file__).parents[1]
PLACES = {
    "pyproject.toml": r'^version = "(.+)"$',
    "Dockerfile": r"^ARG VERSION=(.+)$",
    "deploy/helm/gpugauge/Chart.yaml": r"^(?:appV|v)ersion: (.+)$",
    "deploy/kustomization.yaml": r"^#? *newTag: (.+)$",
    "deploy/manifests/daemonset.yaml": r"^ *image: gpugauge:(.+)$",
    "deploy/manifests/watcher.yaml": r"^ *image: gpugauge:(.+)$",
    "docs/doctor.md": r"^ *image: gpugauge:(.+)$",
}
"""By file, what is before the version, as often as it is there."""
ANY_VERSION = re.compile(r"gpugauge:\d+\.\d+\.\d+")


@pytest.mark.parametrize("name", PLACES)
def test_the_version_is_that_of_the_code(name):
    found = re.findall(PLACES[name], (ROOT / name).read_text(), re.MULTILINE)
    assert found
    assert set(found) == {VERSION}


def test_no_manifest_names_another_image():
    named = {word for path in (ROOT / "deploy").rglob("*.y*ml") for word in ANY_VERSION.findall(path.read_text())}
    assert named == {f"gpugauge:{VERSION}"}


def test_the_bill_of_materials_is_of_this_version():
    document = json.loads((ROOT / "deploy/generated/sbom.cdx.json").read_text())
    assert document["metadata"]["component"]["version"] == VERSION


def test_chart_and_program_have_one_version():
    chart = yaml.safe_load((ROOT / "deploy/helm/gpugauge/Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == VERSION


def test_the_commands_of_the_recipe_name_this_version():
    recipe = (ROOT / "docs/releasing.md").read_text()
    assert set(re.findall(r"\bv?(\d+\.\d+\.\d+)\b", recipe)) == {VERSION}
