"""The fake libdcgm answers as the real one was seen to: every question of recorded_calls.yaml, as both versions."""

import signal
import subprocess
import sys

import pytest

from tests.fakes.recorded_calls import QUESTIONS, Calls, node_of

MAJORS = (4, 3)
RETURNING = [(q, major) for q in QUESTIONS for major in q.get("majors", MAJORS) if not q.get("aborts")]
ABORTING = [(number, major) for number, q in enumerate(QUESTIONS) if q.get("aborts") for major in MAJORS]


@pytest.mark.parametrize(
    ("question", "major"), RETURNING, ids=lambda value: value["question"] if isinstance(value, dict) else str(value)
)
def test_the_fake_library_answers_as_recorded(start, question, major):
    calls = Calls(start(node_of(question), major), connected=question.get("connected", True))
    assert [calls.make(step) for step in question["calls"]] == question["calls"]


@pytest.mark.parametrize(("number", "major"), ABORTING)
def test_the_fake_library_aborts_as_recorded(libraries, tmp_path, number, major):
    command = (sys.executable, "-m", "tests.fakes.recorded_calls", libraries[f"libdcgm.so.{major}"], tmp_path)
    ended = subprocess.run([*map(str, command), str(number)], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGABRT, ended.stderr.decode()
