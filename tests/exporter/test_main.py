"""The command as a process: exit codes, and signals that arrive before a program runs."""

import json
import os
import subprocess
import sys

import pytest

from exporter.__main__ import RUNNERS
from exporter.flags.table import COMMANDS

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


def gpugauge(*arguments, **environment):
    """What the command does with these arguments and variables, and no others."""
    needed = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("COVERAGE")}
    command = [sys.executable, "-m", "exporter", *arguments]
    return subprocess.run(command, env={**needed, **environment}, capture_output=True, text=True, check=False)


def test_signals_are_handled_before_a_program_has_handlers_of_its_own():
    done = subprocess.run([sys.executable, "-c", SIGNALED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "still running"


def test_a_mistake_is_one_message_and_exit_code_2():
    done = gpugauge("node", "--collect-interval", "fast")
    assert done.returncode == 2
    assert done.stderr == "gpugauge: --collect-interval: 'fast' is not a whole number\n"


def test_a_mistake_in_a_variable_is_one_message_and_exit_code_2():
    done = gpugauge(GPUGAUGE_SOURCE="dcgmm")
    assert done.returncode == 2
    assert done.stderr == "gpugauge: GPUGAUGE_SOURCE: 'dcgmm' is none of auto, dcgm, nvml, simulated\n"


def test_a_malformed_address_of_a_host_engine_is_one_message_and_exit_code_2():
    problem = "'[::1' is none of host:port, tcp://host:port, [IPv6]:port, unix:///path and vsock://cid:port\n"
    for origin, done in (
        ("-r", gpugauge("-r", "[::1")),
        ("DCGM_REMOTE_HOSTENGINE_INFO", gpugauge(DCGM_REMOTE_HOSTENGINE_INFO="[::1")),
    ):
        assert (done.returncode, done.stderr) == (2, f"gpugauge: {origin}: {problem}")


def test_a_watcher_that_knows_no_api_server_says_so_once_and_ends(tmp_path):
    done = gpugauge("cluster", "--address", "127.0.0.1:0", HOME=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == (
        "gpugauge: no API server is known: run in a cluster or give --kubeconfig (variable KUBECONFIG)\n"
    )


def test_the_help_begins_with_the_commands():
    done = gpugauge("--help")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Commands")
    assert [line.split()[:2] for line in lines[1 : 1 + len(COMMANDS)]] == [["gpugauge", name] for name in COMMANDS]


def test_what_is_ignored_or_changed_is_in_the_log_in_its_format():
    # A web configuration file that is not there ends the program once the log was set up.
    flags = ("-kubernetes", "-c", "3", "--fake-gpus", "--source=simulated", "--web-config-file=/nowhere/web.yml")
    done = gpugauge(*flags, "stray", DCGM_EXPORTER_LOG_FORMAT="JSON", DCGM_EXPORTER_DUMP_RETENTION="1")
    assert done.returncode == 2
    records = [json.loads(line) for line in done.stderr.splitlines()[:-1]]
    messages = [record["msg"] for record in records if record["level"] == "WARN"]
    assert messages[:3] == [
        "ignored for compatibility: --fake-gpus, DCGM_EXPORTER_DUMP_RETENTION",
        "words after the flags are ignored: stray",
        "a collection interval of 3 ms is too short: 100 ms are used",
    ]
    assert messages[3].startswith("NODE_NAME is not set")


def test_every_command_of_the_command_line_can_be_run():
    assert tuple(RUNNERS) == tuple(COMMANDS)


def test_a_gpu_that_cannot_be_forgotten_is_one_message_and_exit_code_2(tmp_path):
    done = gpugauge("forget", "GPU-1", GPUGAUGE_STATE_FILE=str(tmp_path / "state.json"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"gpugauge: {tmp_path}/state.json: there is no such state file\n"
