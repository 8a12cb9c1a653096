"""docs/fields.md is current and has every field under every name."""

import re
import subprocess
import sys
from pathlib import Path

from exporter.node.devices.fields.field import fields
from scripts.fields import markdown

ROOT = Path(__file__).parents[2]
COMMITTED = (ROOT / "docs/fields.md").read_text(encoding="utf-8")


def test_the_committed_document_is_current():
    assert markdown() == COMMITTED, "run 'make generate'"


def test_running_the_script_prints_the_document():
    done = subprocess.run(
        [sys.executable, "-m", "scripts.fields"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == markdown()


def test_every_field_has_one_row_with_all_of_its_names():
    rows = {int(row[1]): row[2] for row in re.finditer(r"^\| (\d+) \| ([^|]+) \|", COMMITTED, re.MULTILINE)}
    assert {number: re.findall(r"`(\w+)`", names) for number, names in rows.items()} == {
        number: [name.removeprefix("DCGM_FI_") for name in field.names] for number, field in fields().items()
    }
    assert len(re.findall(r"^\| \d+ \|", COMMITTED, re.MULTILINE)) == len(fields())


def test_a_row_says_whether_nvml_has_the_field():
    cells = {int(row[1]): row[2] for row in re.finditer(r"^\| (\d+) \|.*\| ?([^|]*?) \|$", COMMITTED, re.MULTILINE)}
    assert [cells[number] for number in (150, 172, 200, 203, 1004, 1009)] == ["yes", "yes", "", "yes", "GPM", "GPM"]


def test_no_cell_breaks_its_table():
    for table in COMMITTED.split("\n\n"):
        assert len({row.count("|") for row in table.splitlines() if row.startswith("|")}) <= 1
