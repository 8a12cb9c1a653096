"""docs/flags.md is current and has every flag and variable of every command."""

import subprocess
import sys
from pathlib import Path

from exporter.flags.table import COMMANDS
from scripts.flags import markdown

ROOT = Path(__file__).parents[2]
COMMITTED = (ROOT / "docs/flags.md").read_text(encoding="utf-8")


def test_the_committed_document_is_current():
    assert markdown() == COMMITTED, "run 'make generate'"


def test_running_the_script_prints_the_document():
    done = subprocess.run([sys.executable, "-m", "scripts.flags"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == markdown()


def test_every_flag_has_a_row_with_its_variable_in_the_section_of_its_command():
    sections = {part.partition("\n")[0]: part for part in COMMITTED.split("\n## gpugauge ")[1:]}
    assert list(sections) == list(COMMANDS)
    for name, command in COMMANDS.items():
        for flag in (*command.flags(), *command.ignored):
            names = ", ".join(f"`{each}`" for each in flag.names())
            variable = f"`{flag.variable}`" if flag.variable else ""
            assert f"\n| {names} | {variable} |" in sections[name]


def test_no_cell_breaks_its_table():
    for table in COMMITTED.split("\n\n"):
        assert len({row.count("|") for row in table.splitlines() if row.startswith("|")}) <= 1
