"""docs/faults.md is current, and every fault test has its row in it."""

import re
import subprocess
import sys
from pathlib import Path

from exporter.commands.metrics import sections
from exporter.exposition.exporter_metrics import ConfigState, ExporterMetrics
from exporter.node.devices.fields.field import fields_by_name
from exporter.snapshot import Snapshot
from scripts.faults import SECTIONS, markdown, rows
from tests.faults.fault import parsed

ROOT = Path(__file__).parents[2]
COMMITTED = (ROOT / "docs/faults.md").read_text(encoding="utf-8")
ROWS = [row for section in SECTIONS for row in rows(section)]


def test_the_committed_document_is_current():
    assert markdown() == COMMITTED, "run 'make generate'"


def test_running_the_script_prints_the_document():
    done = subprocess.run(
        [sys.executable, "-m", "scripts.faults"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == markdown()


def test_every_module_of_fault_tests_has_a_section_and_every_test_a_row():
    modules = {path.stem for path in (ROOT / "tests/faults").glob("test_*_faults.py")}
    assert sorted(modules) == sorted(section.module for section in SECTIONS)
    for module in modules:
        text = (ROOT / f"tests/faults/{module}.py").read_text(encoding="utf-8")
        assert len(re.findall(r"^def test_", text, re.MULTILINE)) == len(re.findall(r"^@fault\(", text, re.MULTILINE))


def test_every_fault_is_there_once_and_states_what_an_operator_sees_and_when_it_is_over():
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names)) > 40
    for row in ROWS:
        assert row.shows or row.ends is not None
        assert row.collections or row.recovery
        assert f"\n| {row.name} | " in COMMITTED


def test_every_metric_of_a_row_is_one_that_the_programs_expose():
    known = {metric.name for section in sections() for metric in section.metrics} | set(fields_by_name())
    exporter_metrics = ExporterMetrics({}, config=lambda: ConfigState("0", successful=True))
    exporter_metrics.observe(Snapshot(0.0, ()))
    samples = {family.name + ("_total" if family.type == "counter" else "") for family in exporter_metrics.collect()}
    assert {parsed(sample)[0] for row in ROWS for sample in row.shows} <= known | samples
    for beginning in {beginning for row in ROWS for beginning in row.absent}:
        assert any(name.startswith(beginning) for name in known | samples)


def test_no_cell_breaks_its_table():
    for table in COMMITTED.split("\n\n"):
        assert len({row.count("|") for row in table.splitlines() if row.startswith("|")}) <= 1
