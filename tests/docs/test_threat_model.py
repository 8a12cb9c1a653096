"""Every row of the threat model names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADS = ("what must not happen", "---")


def rows():
    """The cells of each row of the document's tables."""
    text = (ROOT / "docs/threat-model.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return [each for each in cells if each[0] not in HEADS]


def test_every_row_says_what_prevents_it_and_names_tests_that_exist():
    existing = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    found = rows()
    assert len(found) > 20
    for threat, prevention, tests in found:
        named = re.findall(r"`(\w+)`", tests)
        assert named, threat
        assert prevention, threat
        assert set(named) <= existing, threat


def test_no_two_rows_are_about_the_same():
    threats = [each[0] for each in rows()]
    assert len(set(threats)) == len(threats)
