"""`gpugauge doctor` as text, on a terminal and as JSON, and its exit status."""

import io
import json
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.commands.doctor.command import as_json, as_text
from exporter.commands.doctor.lines import rows
from exporter.commands.doctor.screen import draw
from exporter.node.attribution.matching.device_lookup import UnmatchedReason
from exporter.node.doctor.finding import CheckResult, DoctorReport, failed, note, ok, skipped
from exporter.node.doctor.label_reasons import PodLabelReason
from exporter.node.doctor.reasons import DoctorReason

HOSTILE = "GPU-\x1b[31mred\x07\r\n[bold]x[/bold] \u202e of team-a/train"
REPORT = DoctorReport(
    "node-\x1b1",
    "auto",
    (
        CheckResult("driver", "kernel module", ok("nvidia 570.133.20")),
        CheckResult("sources", "source", failed(DoctorReason.ENGINE_MUTE, "host engine: no answer")),
        CheckResult("sources", "GPUs", skipped("no source works")),
        CheckResult("kubernetes", "allocations", failed(UnmatchedReason.NO_SUCH_GPU, HOSTILE)),
        CheckResult("kubernetes", "allocations", failed(UnmatchedReason.NO_SUCH_GPU, "again")),
        CheckResult("serving", "port", note(":9400", DoctorReason.NOT_ROOT)),
    ),
    read=True,
)


def test_the_text_is_printable_whatever_others_have_named():
    lines = as_text(REPORT).split("\n")
    assert lines.pop() == ""
    assert all(line.isprintable() for line in lines)
    assert any("GPU- [31mred   [bold]x[/bold]" in line for line in lines)


@given(st.text(st.characters()))
def test_no_text_of_others_reaches_a_terminal_unescaped(text):
    report = DoctorReport(text, "auto", (CheckResult("driver", "kernel module", ok(text)),), read=True)
    assert as_text(report).replace("\n", "").isprintable()
    output = io.StringIO()
    draw(report, output, width=200)
    assert re.sub(r"\x1b\[[0-9;]*m|\n", "", output.getvalue()).isprintable()


def test_an_area_is_named_and_a_reason_explained_once_with_its_remedy():
    shown = list(rows(REPORT))
    assert [row.area for row in shown if row.area] == ["driver", "sources", "kubernetes", "serving"]
    texts = [row.text for row in shown if not row.status]
    assert texts == [
        f"{DoctorReason.ENGINE_MUTE.meaning} [engine_mute]",
        f"-> {DoctorReason.ENGINE_MUTE.remedy}",
        f"{UnmatchedReason.NO_SUCH_GPU.meaning} [no_such_gpu]",
        f"-> {UnmatchedReason.NO_SUCH_GPU.remedy}",
        f"{DoctorReason.NOT_ROOT.meaning} [not_root]",
        f"-> {DoctorReason.NOT_ROOT.remedy}",
    ]


def test_a_note_has_a_remedy_only_where_there_is_one():
    result = CheckResult("kubernetes", "pod labels", note("1 of 2: GPU 0", PodLabelReason.SHARED))
    assert [row.text for row in rows(DoctorReport("node", "auto", (result,), read=True))] == [
        "1 of 2: GPU 0",
        f"{PodLabelReason.SHARED.meaning} [shared]",
    ]


def test_checks_that_were_skipped_for_the_same_cause_are_one_line():
    skips = tuple(CheckResult("kubernetes", name, skipped("why")) for name in ("kubelet", "allocations"))
    other = CheckResult("serving", "port", skipped("why"))
    shown = list(rows(DoctorReport("node", "auto", (*skips, other), read=True)))
    assert [tuple(row) for row in shown] == [
        ("kubernetes", "skipped", "", "kubelet, allocations: why"),
        ("serving", "skipped", "port", "why"),
    ]


def test_the_text_ends_with_one_verdict_and_one_next_step():
    *_, verdict, next_step = as_text(REPORT).splitlines()
    assert verdict.startswith(f"Verdict: {DoctorReason.ENGINE_MUTE.meaning}")
    assert next_step.startswith(f"Next step: {DoctorReason.ENGINE_MUTE.remedy} Then run this again: ")


def test_json_has_every_text_as_it_is():
    document = json.loads(as_json(REPORT))
    assert (document["works"], document["node"]) == (False, "node-\x1b1")
    assert document["next_step"].startswith(DoctorReason.ENGINE_MUTE.remedy)
    assert document["findings"][3] == {
        "area": "kubernetes",
        "check": "allocations",
        "status": "failed",
        "detail": HOSTILE,
        "reason": "no_such_gpu",
        "meaning": UnmatchedReason.NO_SUCH_GPU.meaning,
        "remedy": UnmatchedReason.NO_SUCH_GPU.remedy,
    }
    assert as_json(REPORT).isascii()


def test_a_terminal_gets_colors_and_no_control_character_or_markup_of_others():
    output = io.StringIO()
    draw(REPORT, output, width=100)
    shown = output.getvalue()
    assert "\x1b[1;31mfailed" in shown
    assert "\x1b[32mok" in shown
    assert "[bold]x[/bold]" in shown
    assert "\x1b[31mred" not in shown
    assert "\x07" not in shown
    assert max(map(len, shown.splitlines())) < 200


def gpugauge(*words, **environment):
    needed = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("COVERAGE")}
    command = [sys.executable, "-m", "exporter", "doctor", *words]
    return subprocess.run(command, env={**needed, **environment}, capture_output=True, text=True, check=False)


@pytest.mark.process
def test_a_configuration_that_works_is_exit_status_0():
    done = gpugauge("--source", "simulated", "--address", "127.0.0.1:0", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["works"] is True


@pytest.mark.process
def test_something_that_is_missing_is_exit_status_1(tmp_path):
    socket = str(tmp_path / "kubelet.sock")
    done = gpugauge("--source=simulated", "-k", "--pod-resources-kubelet-socket", socket, DCGM_EXPORTER_LISTEN=":0")
    assert (done.returncode, done.stderr) == (1, "")
    verdict = done.stdout.splitlines()[-2]
    assert verdict.startswith("Verdict: The kubelet's PodResources socket is not there, or is not a socket. (kubelet: ")
    assert socket in verdict


@pytest.mark.process
def test_a_wrong_flag_is_exit_status_2():
    done = gpugauge("--colour")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gpugauge: unknown flag '--colour'; see gpugauge doctor --help\n"
