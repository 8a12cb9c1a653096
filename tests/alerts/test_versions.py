"""The versions of Prometheus that evaluate the rules: the oldest that docs/rules.md names, and a current 3."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.alerts.fleet import FLAVORS, Gpu, Node, Pod, always
from tests.alerts.matrix import matrix
from tests.alerts.promtool import RuleFixture, run, tool, write_rules, write_test

pytestmark = pytest.mark.prometheus

ROOT = Path(__file__).parents[2]
VARIABLE = "GPUGAUGE_PROMETHEUS3"
"""Names a folder with promtool of Prometheus 3. Without it, one on PATH is used where it is of that version."""


def version(promtool: str) -> tuple[int, int]:
    done = subprocess.run([promtool, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"version (\d+)\.(\d+)", done.stdout + done.stderr)
    assert found, done.stdout
    return int(found[1]), int(found[2])


@pytest.fixture
def promtool3() -> str:
    """The path of promtool of Prometheus 3. Skips where there is none."""
    named = os.environ.get(VARIABLE, "")
    found = shutil.which("promtool", path=named or None)
    if found is None or version(found)[0] < 3:
        pytest.skip(f"no promtool of Prometheus 3 on PATH or in the folder that {VARIABLE} names")
    return found


def gpus_of_every_flavor() -> RuleFixture:
    fixture = RuleFixture()
    for flavor in FLAVORS:
        node = Node(fixture, flavor, "n", flavor.name)
        node.up()
        node.pod(Pod())
        node.gpu(0, Gpu(always(0.5)))
        node.gpu(1, Gpu(always(0.25)))
    fixture.expect("sum by (cluster) (pod:gpu_busy:ratio)", 20, *(({"cluster": each.name}, 0.375) for each in FLAVORS))
    fixture.expect("sum by (cluster) (node:gpus:count)", 20, *(({"cluster": each.name}, 2.0) for each in FLAVORS))
    return fixture


def test_the_rules_are_tested_with_the_oldest_version_that_the_document_names_or_a_newer_one():
    named = re.search(r"need Prometheus (\d+)\.(\d+) or newer", (ROOT / "docs/rules.md").read_text())
    assert named
    assert version(tool("promtool")) >= (int(named[1]), int(named[2]))


def test_every_flavor_of_exporter_gives_the_same_sums(tmp_path):
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [gpus_of_every_flavor()])
    assert run(path)[path] == ""


def test_prometheus_3_accepts_the_rules_and_gives_the_same_sums(tmp_path, promtool3):
    names = write_rules(tmp_path)
    subprocess.run([promtool3, "check", "rules", *names], cwd=tmp_path, check=True, capture_output=True)
    path = write_test(tmp_path / "test.json", names, [gpus_of_every_flavor()])
    assert run(path, promtool=promtool3)[path] == ""


@pytest.mark.slow
@pytest.mark.parametrize("flavor", [FLAVORS[0].name, FLAVORS[3].name])
def test_prometheus_3_gives_the_alerts_of_the_matrix(tmp_path, promtool3, flavor):
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [matrix(flavor)])
    assert run(path, promtool=promtool3)[path] == ""
