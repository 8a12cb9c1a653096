"""The child process itself: how it ends, what it ignores, what it loads."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from exporter.node.reader.protocol import Answer, Request, read_frame, write_frame
from tests.exporter.node.reader.fake_readers import gone, simulated

ASK_AND_DIE = """
import os, sys, time, signal
from exporter.node.reader.supervisor import Reader
from tests.exporter.node.reader.fake_readers import simulated, eventually
from pathlib import Path
hang = {"event": "call", "function": "read", "at": 0.0 if sys.argv[2] == "hang" else 1e9, "hang": True}
reader = Reader(simulated(Path(sys.argv[1]), hang, interval=0.5))
try:
    reader.read()
except Exception:
    pass
print(reader.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def child(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "exporter.node.reader"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    write_frame(process.stdin.fileno(), msgspec.msgpack.encode(simulated(tmp_path)))
    yield process
    process.stdin.close()
    process.stdout.close()
    process.kill()
    process.wait()


def ask(child, number):
    write_frame(child.stdin.fileno(), msgspec.msgpack.encode(Request(number)))
    return msgspec.msgpack.decode(read_frame(child.stdout.fileno()), type=Answer)


def test_each_request_is_answered_by_its_number(child):
    assert [ask(child, number).id for number in (5, 6, 7)] == [5, 6, 7]


def test_signals_meant_for_the_parent_do_not_end_it(child):
    ask(child, 1)
    for number in (signal.SIGINT, signal.SIGTERM):
        child.send_signal(number)
    assert ask(child, 2).readings is not None


def test_the_end_of_the_pipe_ends_it_well(child):
    ask(child, 1)
    child.stdin.close()
    assert child.wait(5) == 0


@pytest.mark.parametrize("state", ["idle", "hang"])
def test_the_death_of_the_parent_ends_it_whatever_it_is_doing(tmp_path, state):
    parent = subprocess.run(
        [sys.executable, "-c", ASK_AND_DIE, str(tmp_path), state],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert parent.returncode == -signal.SIGKILL
    assert gone(int(parent.stdout), 5.0)


def test_it_loads_nothing_that_only_the_parent_needs(child):
    ask(child, 1)
    heavy = ("grpc", "prometheus_client", "uvicorn", "kubernetes", "pynvml", "yaml")
    code = (
        "import sys, exporter.node.reader.__main__, exporter.node.dcgm.source;"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_it_is_small_before_a_library_is_loaded(tmp_path):
    code = (
        "import exporter.node.reader.__main__, exporter.node.dcgm.source;"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmRSS')))"
    )
    bare = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=bare)
    assert int(answer.stdout) < 24 * 1024


def test_it_answers_soon_after_its_start(tmp_path):
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "exporter.node.reader"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    write_frame(process.stdin.fileno(), msgspec.msgpack.encode(simulated(tmp_path)))
    assert ask(process, 1).readings is not None
    assert time.monotonic() - began < 5.0
    process.stdin.close()
    process.wait(5)
    process.stdout.close()
