"""The bench measures everything that the design has a budget for; what it measures is not judged here."""

from dataclasses import replace

import pytest

from bench.__main__ import Size, sections
from bench.fixture import DIVIDED, WHOLE
from bench.table import Row, Section, over

TINY = Size(rounds=8, scrapes=4, passes=20, settle=0.2, starts=1)
PASS = (
    "reader: library call",
    "reader: decode records",
    "reader: encode message",
    "reader: its loop and pipe",
    "parent: ask and listen",
    "parent: decode message",
    "parent: kubelet List",
    "parent: parse the kubelet's answer",
    "parent: attribute",
    "parent: families",
    "parent: render text",
    "parent: own metrics",
    "parent: compress",
    "Python part of one pass",
    "Python part and the kubelet List",
    "whole pass",
)
SCRAPES = tuple(
    f"{connection}, {form}, {crowd}: p99"
    for connection in ("fresh", "kept")
    for form in ("plain", "gzip")
    for crowd in ("1 scraper", "10 scrapers")
)
MEMORY = tuple(
    f"{when}: {what}"
    for when in ("before libdcgm", "stand-in loaded, pages served")
    for what in (
        "resident, parent",
        "resident, reader",
        "resident, both, shared pages once",
        "proportional share, both",
    )
)
PAGE = ("start of the process to the first full page", "series on the page", "series of one")
EXPECTED = (PASS, SCRAPES, MEMORY, PAGE, PASS, SCRAPES, PAGE, ("resident memory over",))


@pytest.fixture(scope="module")
def measured():
    return list(sections(TINY, replace(WHOLE, fields=5), replace(DIVIDED, fields=4)))


@pytest.mark.slow
def test_every_row_is_there_with_a_value_and_its_verdict(measured):
    for section, expected in zip(measured, EXPECTED, strict=True):
        assert len(section.rows) == len(expected), section.title
        for row, beginning in zip(section.rows, expected, strict=True):
            assert row.what.startswith(beginning)
            assert row.cells()[3] in ({"ok", "OVER"} if row.budget else {""})


@pytest.mark.slow
def test_the_series_of_the_default_fields_keep_their_budget(measured):
    rows = [row for section in measured for row in section.rows if row.what.startswith("series of one")]
    assert [row.what for row in rows] == ["series of one GPU", "series of one MIG instance"]
    assert not [row for row in rows if row.over or row.value < 5]


@pytest.mark.slow
def test_a_whole_page_was_scraped_and_every_cell_read(measured):
    assert "40 cells." in measured[0].text()
    assert f"{56 * 4} cells." in measured[4].text()
    assert DIVIDED.series() == 56 * 40


def test_a_row_over_its_budget_is_found_and_told():
    rows = [Row("a", 2.0, "ms", 1.0), Row("b", 1.0, "ms", 1.0), Row("c", 5.0, "MiB")]
    section = Section("title", rows, ["a remark"])
    assert over([section]) == rows[:1]
    assert [line.split() for line in section.text().splitlines()[3:]] == [
        ["a", "2.00", "ms", "1.00", "ms", "OVER"],
        ["b", "1.00", "ms", "1.00", "ms", "ok"],
        ["c", "5.00", "MiB"],
        ["a", "remark"],
    ]
