"""`gpugauge check-config` says of each row of a file what would be done with it, and how bad that is."""

import json
import subprocess
import sys

import pytest

from exporter import cli
from exporter.commands.check_config import OK, PROBLEMS, UNUSABLE, check, report
from exporter.config import ConfigError

COUNTERS = """\
# A counters file.
DCGM_FI_DEV_GPU_TEMP, gauge, T
DCGM_FI_DEV_GPU_TMP, gauge, T
DCGM_FI_PROF_DRAM_ACTIVE, bar, x
DCGM_FI_PROF_DRAM_ACTIVE, gauge, x
DCGM_FI_DEV_GPU_TEMP, gauge, again
DCGM_FI_DEV_CONNECTX_HEALTH, gauge, y
words
DCGM_EXP_GPU_HEALTH_STATUS, gauge, z
DCGM_FI_DEV_VGPU_MEMORY_USAGE, gauge, l
DCGM_FI_DEV_MIG_ATTRIBUTES, gauge, s
"""
VERDICTS = [
    (2, "ok", ()),
    (3, "unknown_field", ()),
    (4, "wrong_type", ()),
    (5, "ok", ("needs profiling",)),
    (6, "duplicate", ()),
    (7, "not_read", ()),
    (8, "malformed", ()),
    (9, "ok", ("not with NVML",)),
    (10, "ok", ("only with NVML",)),
    (11, "wrong_type", ()),
]
FIELD = "{name: DCGM_FI_DEV_GPU_TEMP, prometheusType: gauge}"


@pytest.fixture
def checked(tmp_path):
    def run(text, name="file"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return check(cli.parse(["check-config", str(path)], {}))

    return run


def test_each_row_of_a_counters_file_has_a_verdict_with_its_true_line(checked):
    found = checked(COUNTERS)
    assert [(row.line, row.verdict, row.notes) for row in found.rows] == VERDICTS
    assert (found.kind, found.severity) == ("counters file", PROBLEMS)
    assert found.rows[1].nearest[0] == "DCGM_FI_DEV_GPU_TEMP"


def test_the_report_has_a_line_for_each_row_and_one_for_the_file(checked, tmp_path):
    lines = report(checked(COUNTERS), as_json=False).splitlines()
    assert lines[0] == "line 2: ok: DCGM_FI_DEV_GPU_TEMP"
    assert lines[1].startswith(
        "line 3: unknown_field: unknown field 'DCGM_FI_DEV_GPU_TMP'; nearest: DCGM_FI_DEV_GPU_TEMP,"
    )
    assert lines[3] == "line 5: ok: DCGM_FI_PROF_DRAM_ACTIVE; needs profiling"
    assert lines[-1] == f"{tmp_path}/file: counters file: problems, 5 of 10 rows can be used"


def test_the_report_as_json_has_the_same(checked):
    body = json.loads(report(checked(COUNTERS), as_json=True))
    assert (body["kind"], body["verdict"], body["messages"]) == ("counters file", "problems", [])
    assert [(row["line"], row["verdict"]) for row in body["rows"]] == [verdict[:2] for verdict in VERDICTS]


@pytest.mark.parametrize(
    ("text", "kind", "severity"),
    [
        ("DCGM_FI_DEV_GPU_TEMP, gauge, T", "counters file", OK),
        (f"fields:\n- {FIELD}\n", "counters file", OK),
        (f"- {FIELD}\n", "counters file", OK),
        (f"- {FIELD}\n- a\n", "counters file", PROBLEMS),
        ("- a\n", "counters file", UNUSABLE),
        ("# nothing\n", "counters file", UNUSABLE),
        ("fields: 5\n", "counters file", UNUSABLE),
        (b"DCGM_FI_DEV_GPU_TEMP, gauge, \xb0\n", "counters file", UNUSABLE),
        ("version: 1\ncollection: {interval: 5s}\n", "configuration file", OK),
        (f"version: 1\nmetrics:\n  fields:\n  - {FIELD}\n", "configuration file", OK),
        (f"version: 1\nmetrics:\n  fields:\n  - {FIELD}\n  - {FIELD}\n", "configuration file", PROBLEMS),
        ("version: 1\nmetrics:\n  fields: [a]\n", "configuration file", UNUSABLE),
        ("version: 1\ncollection: {interval: 5}\n", "configuration file", UNUSABLE),
        ("http_server_config: {http2: true}\n", "web configuration file", OK),
        ("basic_auth_users: {a: plain}\n", "web configuration file", UNUSABLE),
        ("tls_server_config: {cert_file: a, key_file: b}\n", "web configuration file", UNUSABLE),
    ],
)
def test_the_kind_of_a_file_is_told_by_its_content_and_the_severity_by_the_worst_in_it(checked, text, kind, severity):
    found = checked(text)
    assert (found.kind, found.severity) == (kind, severity), found
    assert found.severity != UNUSABLE or found.messages or any(row.message for row in found.rows)


def test_a_mistake_in_a_file_is_its_one_message(checked, tmp_path):
    found = checked("version: 1\nunknown: 2\n")
    assert found.messages == (
        f"{tmp_path}/file:2: unknown: unknown key; known: version, metrics, collection, sources, server",
    )


def test_what_a_configuration_file_says_beside_its_fields_is_named(checked, tmp_path):
    group = "collection: {watchGroups: [{name: a, interval: 5s, fields: [no]}]}\n"
    found = checked(f"version: 1\nserver: {{maxConcurrentScrapes: 1}}\nmetrics: {{fields: [{FIELD}]}}\n{group}")
    assert found.messages == (
        f"{tmp_path}/file:2: server: ignored for compatibility",
        f"{tmp_path}/file:4: no row of the counters file has a name like 'no' of 'a'",
    )
    assert checked("version: 1\nmetrics: {file: /a.csv}\n").messages == (
        "it lists no fields; its counters file is /a.csv",
    )


def test_a_file_that_cannot_be_read_is_unusable(tmp_path):
    found = check(cli.parse(["check-config", str(tmp_path / "none")], {}))
    assert (found.severity, found.messages) == (
        UNUSABLE,
        (f"{tmp_path}/none: cannot be read: No such file or directory",),
    )


@pytest.mark.parametrize("operands", [(), ("a", "b")])
def test_it_needs_one_file(operands):
    with pytest.raises(ConfigError, match="check-config needs one file"):
        check(cli.parse(["check-config", *operands], {}))


@pytest.mark.process
def test_the_exit_status_is_the_severity(tmp_path):
    (tmp_path / "a.csv").write_text(COUNTERS)
    command = [sys.executable, "-m", "exporter", "check-config", "--json", str(tmp_path / "a.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout)["verdict"] == "problems"
