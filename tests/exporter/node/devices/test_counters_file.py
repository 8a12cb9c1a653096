"""The counters file: every spelling of a row that is accepted, and one message for each row that is not."""

import csv
import io
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.devices.counters.counters_file import decode, parse

TEMP = "DCGM_FI_DEV_GPU_TEMP"


@pytest.mark.parametrize(
    ("line", "name", "help_"),
    [
        (f"{TEMP}, gauge, Degrees.", TEMP, "Degrees."),
        (f"{TEMP} ,gauge,Degrees.", TEMP, "Degrees."),
        (f"  {TEMP},\tGauge ,  Degrees, in C.", TEMP, "Degrees, in C."),
        (f'{TEMP}, gauge, "Degrees, ""in"" C."', TEMP, 'Degrees, "in" C.'),
        (f'"{TEMP}","gauge","  Degrees, in C.  "', TEMP, "Degrees, in C."),
        (f'{TEMP}, gauge, "In" degrees, "C"', TEMP, '"In" degrees, "C"'),
        (f"{TEMP}, gauge,", TEMP, ""),
        (f'{TEMP}, gauge, ""', TEMP, ""),
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
        (
            "DCGM_EXP_CLOCK_EVENTS_COUNT, label, x",
            "f.csv, line 2: DCGM_EXP_CLOCK_EVENTS_COUNT is computed and cannot be",
        ),
        ("DCGM_EXP_NO_SUCH, gauge, x", "f.csv, line 2: unknown field 'DCGM_EXP_NO_SUCH'"),
        (f'{TEMP}, gauge, "open', "f.csv, line 2: a quote is not closed in '\"open'"),
        (f'"{TEMP}, gauge, x', f"f.csv, line 2: a quote is not closed in '\"{TEMP}'"),
        (f'{TEMP}, "gau\nge", x', "f.csv, line 2: type 'gau\\nge' of DCGM_FI_DEV_GPU_TEMP is not one of "),
        ("N" * 1000 + ", gauge, x", f"f.csv, line 2: unknown field '{'N' * 80}…'"),
        ("N" * 1000, f"f.csv, line 2: expected 'name, type, help', found '{'N' * 80}…'"),
    ],
)
def test_a_bad_row_is_reported_and_all_others_are_used(line, message):
    counters = parse(f"DCGM_FI_DEV_SM_CLOCK, gauge, x\n{line}\n{TEMP}, gauge, y", "f.csv")
    assert {"DCGM_FI_DEV_SM_CLOCK", TEMP} >= {row.name for row in counters.rows} >= {"DCGM_FI_DEV_SM_CLOCK"}
    (problem,) = counters.problems
    assert problem.startswith(message)


def test_a_row_of_a_computed_metric_is_accepted_and_what_it_needs_is_read():
    counters = parse(f"{TEMP}, gauge, x\nDCGM_EXP_CLOCK_EVENTS_COUNT, counter, y", "f")
    assert counters.problems == ()
    assert counters.usable == 2
    assert [(row.name, row.help) for row in counters.computed] == [("DCGM_EXP_CLOCK_EVENTS_COUNT", "y")]
    assert [field.id for field in counters.fields] == [150]
    assert {150, 112} <= {field.id for field in counters.wanted}


def test_without_a_row_that_can_be_used_nothing_is_read():
    assert parse("# nothing", "f").wanted == ()
    assert parse("DCGM_EXP_CLOCK_EVENTS_TOTAL, counter, y", "f").wanted


@pytest.mark.parametrize(
    ("file", "metrics", "labels"),
    [("default-counters.csv", 25, 1), ("dcp-metrics-included.csv", 25, 1), ("1.x-compatibility-metrics.csv", 22, 0)],
)
def test_every_row_of_the_shipped_files_can_be_used(file, metrics, labels):
    counters = parse(files("exporter.node.devices").joinpath("defaults", file).read_text(), file)
    assert counters.problems == ()
    assert [row.type == "label" for row in counters.rows].count(False) == metrics
    assert [row.type == "label" for row in counters.rows].count(True) == labels


SHIPPED = sorted(files("exporter.node.devices").joinpath("defaults").iterdir(), key=lambda path: path.name)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_dcgm_exporter_can_read_every_row_of_the_shipped_files_those_offered_too(path):
    """It wants three columns, and takes a quote only at the beginning of a column."""
    offered = path.read_text(encoding="utf-8").replace("# DCGM_FI", "DCGM_FI").replace("# dcgm_", "dcgm_")
    lines = [line for line in offered.splitlines() if line and not line.startswith("#")]
    assert len(lines) > 20
    assert [row for row in csv.reader(lines, strict=True) if len(row) != 3] == []
    assert '"' not in "".join(lines)


def test_the_file_under_the_gpu_operators_name_has_the_rows_of_the_default_one():
    """The GPU Operator refers to dcp-metrics-included.csv, so that file is a copy of default-counters.csv."""
    folder = files("exporter.node.devices").joinpath("defaults")
    default, copy = (
        parse(folder.joinpath(name).read_text(encoding="utf-8"), name).rows
        for name in ("default-counters.csv", "dcp-metrics-included.csv")
    )
    assert copy == default
    assert len(default) == 26


CLOCK = "DCGM_FI_DEV_SM_CLOCK"
POWER = "DCGM_FI_DEV_POWER_USAGE"


@pytest.mark.parametrize("start", ["\ufeff", "\ufeff# Format: name, type, help\r\n"])
def test_a_byte_order_mark_at_the_start_is_dropped(start):
    counters = parse(decode(f"{start}{TEMP}, gauge, T\r\n{CLOCK}, gauge, C\r\n".encode()), "f")
    assert [(row.name, row.help) for row in counters.rows] == [(TEMP, "T"), (CLOCK, "C")]
    assert counters.problems == ()


def test_bytes_that_are_not_utf8_cost_their_row_and_nothing_in_a_comment():
    text = f"# 20 \xb0C\n{CLOCK}, gauge, C\n{TEMP}, gauge, In \xb0C.\n{POWER}, gauge, P\n".encode("latin-1")
    counters = parse(decode(text), "f.csv")
    assert [row.name for row in counters.rows] == [CLOCK, POWER]
    assert counters.problems == (rf"f.csv, line 3: not UTF-8: '{TEMP}, gauge, In \xb0C.'",)


@pytest.mark.parametrize(
    ("encoding", "rejected"), [("utf-8", 0), ("utf-16", 2), ("utf-16-le", 2), ("utf-16-be", 2), ("utf-32", 2)]
)
def test_no_row_of_another_encoding_is_read_as_utf8(encoding, rejected):
    counters = parse(decode(f"{TEMP}, gauge, T\n{CLOCK}, gauge, C".encode(encoding)), "f")
    assert (len(counters.rows), len(counters.problems)) == (2 - rejected, rejected)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quotes_keep_line_breaks_commas_and_comment_signs_in_one_row(end):
    lines = [f'{TEMP}, gauge, "Degrees,', "# in C,", "", ' as ""read""."', f"{CLOCK}, gauge, C", "no row"]
    counters = parse(end.join(lines), "f")
    assert [(row.name, row.help) for row in counters.rows] == [
        (TEMP, 'Degrees,\n# in C,\n\n as "read".'),
        (CLOCK, "C"),
    ]
    assert counters.problems == ("f, line 6: expected 'name, type, help', found 'no row'",)


def test_a_quote_that_is_not_closed_costs_only_the_row_of_its_line():
    lines = [f'{TEMP}, gauge, "Degrees', f'{CLOCK}, gauge, "Clock, in MHz"', f"{POWER}, gauge, P", f'{TEMP}, gauge, "x']
    counters = parse("\n".join(lines), "f")
    assert [(row.name, row.help) for row in counters.rows] == [(CLOCK, "Clock, in MHz"), (POWER, "P")]
    assert [problem.partition(":")[0] for problem in counters.problems] == ["f, line 1", "f, line 4"]


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\f", "\v", "\x1c", "\x1d", "\x1e", "\r"])
def test_only_a_line_feed_ends_a_row(character):
    counters = parse(f"{TEMP}, gauge, a{character}b\nno row\n", "f")
    assert [row.help for row in counters.rows] == [f"a{character}b"]
    assert counters.problems == ("f, line 2: expected 'name, type, help', found 'no row'",)


def test_carriage_returns_end_the_rows_of_a_file_without_line_feeds():
    assert [row.name for row in parse(f"# a\r{TEMP}, gauge, T\r{CLOCK}, gauge, C", "f").rows] == [TEMP, CLOCK]


@given(st.lists(st.tuples(st.sampled_from([TEMP, CLOCK, POWER]), st.text()), unique_by=lambda row: row[0]))
def test_a_file_in_which_every_column_is_quoted_reads_as_it_was_written(rows):
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(
        (name, "gauge", help_) for name, help_ in rows
    )
    counters = parse(decode(written.getvalue().encode()), "f")
    assert counters.problems == ()
    assert [(row.name, row.help) for row in counters.rows] == [
        (name, help_.replace("\r\n", "\n").strip()) for name, help_ in rows
    ]


@given(st.text(alphabet=st.sampled_from('"", \n\r#xé\x85')) | st.text())
def test_no_text_makes_parsing_fail(text):
    counters = parse(text, "f")
    assert len(counters.rows) + len(counters.problems) <= len(text.splitlines())
    assert not any("\n" in problem for problem in counters.problems)


@given(st.binary())
def test_no_bytes_make_parsing_fail(content):
    counters = parse(decode(content), "f")
    assert all(problem.isprintable() for problem in counters.problems)


@pytest.mark.parametrize(
    ("name", "entity"),
    [
        ("DCGM_FI_DEV_CONNECTX_HEALTH", "ConnectX network adapter"),
    ],
)
def test_a_field_of_an_entity_that_is_not_read_is_accepted_reported_and_not_asked_for(name, entity):
    counters = parse(f"{TEMP}, gauge, T\n{name}, gauge, x\n", "f.csv")
    assert [row.name for row in counters.rows] == [TEMP, name]
    assert counters.problems == ()
    assert counters.unread == (f"f.csv, line 2: {name} is a field of one {entity}, of which none is read",)
    assert [field.id for field in counters.fields] == [150]
    assert counters.not_of_devices == (counters.rows[1].field.id,)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_PER_LINK_TOTAL", 1525),
        ("DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT", 858),
        ("DCGM_FI_DEV_NVSWITCH_LINK_CRC_ERRORS", 787),
        ("DCGM_FI_DEV_CPU_POWER_WATTS", 1130),
        ("DCGM_FI_DEV_CPU_UTIL_TOTAL", 1100),
        ("DCGM_FI_DEV_VGPU_MEMORY_USAGE", 525),
    ],
)
def test_a_field_of_links_vgpus_or_components_is_asked_for_but_not_every_source_has_it(name, number):
    counters = parse(f"{TEMP}, gauge, T\n{name}, counter, x\n", "f.csv")
    assert (counters.problems, counters.unread) == ((), ())
    assert [field.id for field in counters.fields] == [150, number]
    assert counters.not_of_devices == (number,)


def test_a_field_whose_values_are_structures_cannot_be_exposed():
    counters = parse("DCGM_FI_DEV_SUPPORTED_CLOCKS, gauge, x", "f.csv")
    assert counters.rows == ()
    assert counters.problems == ("f.csv, line 1: DCGM_FI_DEV_SUPPORTED_CLOCKS is a structure and cannot be exposed",)
