"""The command as a process: exit codes, and signals that arrive before a program runs."""

import subprocess
import sys

import pytest

from exporter import cli
from exporter.__main__ import RUNNERS

pytestmark = pytest.mark.process

SIGNALED = """
import contextlib, os, signal
from exporter.__main__ import main
with contextlib.suppress(SystemExit):
    main(["--version"])
os.kill(os.getpid(), signal.SIGHUP)
print("still running")
os.kill(os.getpid(), signal.SIGTERM)
print("never printed")
"""


def test_signals_are_handled_before_a_program_has_handlers_of_its_own():
    done = subprocess.run([sys.executable, "-c", SIGNALED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "still running"


def test_a_mistake_is_one_message_and_exit_code_2():
    command = [sys.executable, "-m", "exporter", "node", "--collect-interval", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "gpugauge: --collect-interval 1 is outside 100..3600000 milliseconds\n"


def test_every_command_of_the_command_line_can_be_run():
    assert tuple(RUNNERS) == cli.COMMANDS
