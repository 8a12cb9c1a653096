"""`gpugauge audit` answers from the files of three nodes: who had a GPU, GPU-hours of a month, and gaps."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest

from exporter import cli
from exporter.__main__ import RUNNERS
from exporter.commands.audit.command import run
from exporter.config import ConfigError
from exporter.node.audit.reasons import GapReason
from tests.exporter.commands.audit.logs import NodeLog
from tests.exporter.node.audit.days import given

BEGIN, END = "2027-01-15T08:00:00Z", "2027-01-15T10:00:00Z"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The logs of three nodes over two hours; of the second one in two files."""
    folder = tmp_path_factory.mktemp("logs")
    names = []
    for number in range(3):
        log = NodeLog(f"node-{number}", f"c{number}")
        own = given(f"train-{number}", f"GPU-{number}", namespace="research")
        log.note(own, times=120)
        log.note(own, given("web", f"GPU-{number + 3}", namespace="product"), times=60)
        if number == 1:
            log.note(GapReason.KUBELET, times=30)
        log.note(given("web", f"GPU-{number + 3}", namespace="product"), times=60 - 30 * (number == 1))
        log.note()
        lines = log.stop().lines
        parts = [lines] if number != 1 else [lines[: len(lines) // 2 + 5], lines[len(lines) // 2 :]]
        for part, content in enumerate(parts):
            path = folder / f"{number}-{part}.jsonl"
            path.write_bytes(b"\n".join(content) + b"\n")
            names.append(str(path))
    return names


def audit(files, *words):
    text, intact = run(cli.parse(["audit", *words, *files], {}))
    assert intact
    return text


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_gpu_hours_by_namespace_for_a_month(files):
    document = json.loads(audit(files, "--json", "--by", "namespace", "--from", "2027-01", "--to", "2027-02"))
    assert (document["from"], document["to"], document["nodes"]) == ("2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z", 3)
    hours = {row["namespace"]: (row["gpu_hours"], row["unobserved_hours"]) for row in document["rows"]}
    assert hours == {
        "product": (pytest.approx(2 + 1 - 0.2667 + 0.0083, abs=0.02), pytest.approx(0.2583, abs=0.01)),
        "research": (pytest.approx(4.5 - 0.0083, abs=0.02), pytest.approx(0.2583, abs=0.01)),
    }


def test_who_had_a_gpu_between_two_moments(files):
    words = ("--by", "allocation", "--gpu", "GPU-4", "--from", "2027-01-15T09:10:00Z", "--to", "2027-01-15T09:20:00Z")
    (row,) = rows(audit(files, "--csv", *words))
    assert (row["row"], row["node"], row["namespace"], row["pod"], row["container"]) == (
        "allocation", "node-1", "product", "web", "main",
    )  # fmt: skip
    assert (row["from"], row["gpu_hours"]) == ("2027-01-15T09:00:00Z", "0.1667")
    assert "product/web" in audit(files, *words)


def test_where_the_record_has_gaps(files):
    gaps = [row for row in rows(audit(files, "--csv")) if row["row"] == "gap"]
    assert [(gap["node"], gap["from"], gap["to"], gap["reason"]) for gap in gaps] == [
        ("node-1", "2027-01-15T09:29:30Z", "2027-01-15T09:45:00Z", "kubelet")
    ]
    text = audit(files, "--from", "2027-01-15T07:00", "--to", END)
    assert "In these times it is not known what was allocated:" in text
    assert text.count("no_record") == 3
    assert "No gaps." in audit(files[:1])


def test_compressed_files_are_read_and_a_damaged_one_is_one_message(files, tmp_path):
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(Path(files[0]).read_bytes()))
    assert audit([str(packed)]) == audit(files[:1])
    for damaged in (packed.read_bytes()[:-20], b"no gzip"):
        packed.write_bytes(damaged)
        with pytest.raises(ConfigError, match="cannot be read"):
            audit([str(packed)])


def test_a_period_without_allocations_says_so(files):
    assert "Nothing was allocated, as far as is known." in audit(files, "--from", "2026-01", "--to", "2026-02")


def test_hostile_names_are_texts_on_a_terminal_and_in_a_spreadsheet(tmp_path):
    log = NodeLog()
    log.note(given("=cmd()\x1b[2J", namespace="@x"), times=4)
    path = tmp_path / "log"
    path.write_bytes(log.stop().content)
    assert "\x1b" not in audit([str(path)], "--by", "allocation")
    (row,) = rows(audit([str(path)], "--csv", "--by", "allocation"))
    assert (row["namespace"], row["pod"][:2]) == ("'@x", "'=")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "audit needs files of audit logs"),
        (("/nowhere/a.jsonl",), "'/nowhere/a.jsonl' cannot be read: No such file or directory"),
        (("--json", "--csv", "{file}"), "--json and --csv cannot both be written"),
        (("--gpu", "GPU-99", "{file}"), "--gpu: no line has an allocation of a GPU 'GPU-99'"),
        (("--from", "2028", "{file}"), "--from: '2028' is not a time such as 2026-11"),
        (("--from", "2027-02", "--to", "2027-01", "{file}"), "--from is later than --to"),
        (("--by", "pod", "{file}"), "--by: 'pod' is none of namespace, workload, allocation"),
        ((__file__,), "there is no line of an audit log"),
    ],
)
def test_a_mistake_is_one_message(files, words, message):
    with pytest.raises(ConfigError) as error:
        audit([], *(word.format(file=files[0]) for word in words))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_exit_code_says_whether_the_lines_fit(files, tmp_path, capsys):
    assert RUNNERS["audit"](cli.parse(["audit", "--verify", *files], {})) == 0
    assert "Intact" in capsys.readouterr().out
    broken = tmp_path / "broken"
    broken.write_bytes(Path(files[0]).read_bytes().replace(b"research", b"elsewhere", 1))
    assert RUNNERS["audit"](cli.parse(["audit", "--verify", "--json", str(broken)], {})) == 1
    assert json.loads(capsys.readouterr().out)["intact"] is False
