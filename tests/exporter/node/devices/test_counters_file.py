"""The counters file: every spelling of a row that is accepted, and one message for each row that is not."""

from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.devices.counters_file import parse

TEMP = "DCGM_FI_DEV_GPU_TEMP"


@pytest.mark.parametrize(
    ("line", "name", "help_"),
    [
        (f"{TEMP}, gauge, Degrees.", TEMP, "Degrees."),
        (f"{TEMP} ,gauge,Degrees.", TEMP, "Degrees."),
        (f"  {TEMP},\tGauge ,  Degrees, in C.", TEMP, "Degrees, in C."),
        (f'{TEMP}, gauge, "Degrees, ""in"" C."', TEMP, 'Degrees, "in" C.'),
        (f"{TEMP}, gauge, Degrees # not a comment", TEMP, "Degrees # not a comment"),
        ("DCGM_FI_DEV_GPU_TEMP_CELSIUS, gauge, New name.", "DCGM_FI_DEV_GPU_TEMP_CELSIUS", "New name."),
        ("dcgm_gpu_temp, gauge, Old name.", "dcgm_gpu_temp", "Old name."),
    ],
)
def test_a_row_is_exposed_under_the_spelling_of_the_file(line, name, help_):
    (row,) = parse(line, "counters.csv").rows
    assert (row.name, row.type, row.help, row.field.id) == (name, "gauge", help_, 150)


def test_comments_may_be_indented_and_blank_lines_are_skipped():
    counters = parse(f"# a\n\n   # b, c\n{TEMP}, gauge, T\n", "f")
    assert [row.name for row in counters.rows] == [TEMP]
    assert counters.problems == ()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("DCGM_FI_NO_SUCH, gauge, x", "f.csv, line 2: unknown field 'DCGM_FI_NO_SUCH'"),
        (f"{TEMP}, histogram, x", "f.csv, line 2: type 'histogram' of DCGM_FI_DEV_GPU_TEMP is not one of "),
        (f"{TEMP}, gauge", "f.csv, line 2: expected 'name, type, help', found 'DCGM_FI_DEV_GPU_TEMP, gauge'"),
        ("DCGM_FI_DRIVER_VERSION, gauge, x", "f.csv, line 2: DCGM_FI_DRIVER_VERSION is text and can only be a label"),
        ("DCGM_FI_DEV_SM_CLOCK, gauge, x", "f.csv, line 2: DCGM_FI_DEV_SM_CLOCK is listed twice"),
    ],
)
def test_a_bad_row_is_reported_and_all_others_are_used(line, message):
    counters = parse(f"DCGM_FI_DEV_SM_CLOCK, gauge, x\n{line}\n{TEMP}, gauge, y", "f.csv")
    assert {"DCGM_FI_DEV_SM_CLOCK", TEMP} >= {row.name for row in counters.rows} >= {"DCGM_FI_DEV_SM_CLOCK"}
    (problem,) = counters.problems
    assert problem.startswith(message)


@pytest.mark.parametrize(
    ("file", "metrics", "labels"),
    [("default-counters.csv", 25, 1), ("dcp-metrics-included.csv", 25, 1), ("1.x-compatibility-metrics.csv", 22, 0)],
)
def test_every_row_of_the_shipped_files_can_be_used(file, metrics, labels):
    counters = parse(files("exporter.node.devices").joinpath("defaults", file).read_text(), file)
    assert counters.problems == ()
    assert [row.type == "label" for row in counters.rows].count(False) == metrics
    assert [row.type == "label" for row in counters.rows].count(True) == labels


def test_the_file_under_the_gpu_operators_name_has_the_rows_of_the_default_one():
    """The GPU Operator refers to dcp-metrics-included.csv, so that file is a copy of default-counters.csv."""
    folder = files("exporter.node.devices").joinpath("defaults")
    default, copy = (
        parse(folder.joinpath(name).read_text(encoding="utf-8"), name).rows
        for name in ("default-counters.csv", "dcp-metrics-included.csv")
    )
    assert copy == default
    assert len(default) == 26


@given(st.text())
def test_no_text_makes_parsing_fail(text):
    counters = parse(text, "f")
    assert len(counters.rows) + len(counters.problems) <= len(text.splitlines())
