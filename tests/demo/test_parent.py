"""A process that the demo starts ends when the demo does, however that ends."""

import os
import subprocess
import sys

import pytest

from demo.parent import ends_with_this_process
from tests.exporter.node.exporter_process import LIMIT_SECONDS, wait_until_ended

pytestmark = pytest.mark.process

SLEEP = [sys.executable, "-c", "import time; print('runs', flush=True); time.sleep(600)"]
PARENT = """
import os, signal, subprocess, sys
from demo.parent import ends_with_this_process
child = subprocess.Popen(ends_with_this_process(sys.argv[1:]), stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
"""Starts a child process and, once that runs, is killed."""


def test_the_command_runs_in_the_process_that_was_started():
    command = ends_with_this_process([sys.executable, "-c", "import os; print(os.getpid())"])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        out, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert int(out) == process.pid


def test_a_process_ends_when_its_parent_process_is_killed():
    command = [sys.executable, "-c", PARENT, *SLEEP]
    parent = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS, check=False)
    wait_until_ended([int(parent.stdout)])


def test_a_process_whose_parent_process_has_ended_already_does_not_run():
    command = ends_with_this_process(SLEEP)
    command[command.index(str(os.getpid()))] = "999999999"
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == -15
    assert done.stdout == ""
