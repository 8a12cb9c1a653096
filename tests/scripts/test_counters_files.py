"""The counters files at dcgm-exporter's other two paths follow from the default one, and are current."""

import subprocess
import sys

from exporter.node.devices.counters.counters_file import parse
from scripts.counters_files import DEFAULTS, generated

ROOT = DEFAULTS.parents[3]
NAMES = {"dcp-metrics-included.csv", "1.x-compatibility-metrics.csv"}


def test_the_committed_files_are_current():
    for name, text in generated().items():
        assert text == (DEFAULTS / name).read_text(encoding="utf-8"), f"{name}: run 'make generate'"


def test_running_the_script_writes_them(tmp_path):
    subprocess.run([sys.executable, "-m", "scripts.counters_files", str(tmp_path)], cwd=ROOT, check=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == generated()
    assert generated().keys() == NAMES


def test_a_field_has_the_same_type_and_help_under_its_old_name():
    default, old = (
        {row.field.id: (row.type, row.help) for row in parse((DEFAULTS / name).read_text(), name).rows}
        for name in ("default-counters.csv", "1.x-compatibility-metrics.csv")
    )
    common = default.keys() & old.keys()
    assert len(common) == 20
    assert [number for number in common if default[number] != old[number]] == []
