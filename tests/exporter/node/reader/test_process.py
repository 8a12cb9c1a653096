"""The reader process itself: how it ends, which signals it ignores, what it loads."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from exporter.node.reader.protocol import ReaderReply, ReaderRequest, read_frame, write_frame
from exporter.node.reader.supervisor import ReaderTimings
from tests.exporter.node.reader.fake_readers import LIMIT_SECONDS, gone, simulated

pytestmark = pytest.mark.process

READ_AND_DIE = """
import os, signal, sys
from pathlib import Path
from exporter.node.reader.supervisor import Reader
from tests.exporter.node.reader.fake_readers import eventually, failure, simulated
hangs = sys.argv[2] == "hang"
hang = {"event": "call", "function": "read", "at": 0.0 if hangs else 1e9, "hang": True}
reader = Reader(simulated(Path(sys.argv[1]), hang, interval=2.0))
failure(reader.read) if hangs else eventually(reader.read)
print(reader.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def process(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "exporter.node.reader"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    write_frame(process.stdin.fileno(), msgspec.msgpack.encode(simulated(tmp_path)))
    yield process
    process.stdin.close()
    process.stdout.close()
    process.kill()
    process.wait()


def reply_to(process, number):
    write_frame(process.stdin.fileno(), msgspec.msgpack.encode(ReaderRequest(number)))
    return msgspec.msgpack.decode(read_frame(process.stdout.fileno()), type=ReaderReply)


def test_each_request_is_answered_by_its_number(process):
    assert [reply_to(process, number).id for number in (5, 6, 7)] == [5, 6, 7]


def test_signals_that_end_the_parent_process_do_not_end_it(process):
    reply_to(process, 1)
    for number in (signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
    assert reply_to(process, 2).readings is not None


def test_the_end_of_the_requests_ends_it_with_status_0(process):
    reply_to(process, 1)
    process.stdin.close()
    assert process.wait(LIMIT_SECONDS) == 0


def test_a_reply_that_nobody_can_read_ends_it_with_status_1(process):
    reply_to(process, 1)
    process.stdout.close()
    write_frame(process.stdin.fileno(), msgspec.msgpack.encode(ReaderRequest(2)))
    assert process.wait(LIMIT_SECONDS) == 1


@pytest.mark.parametrize("state", ["idle", "hang"])
def test_the_death_of_the_parent_process_ends_it_even_during_a_hang(tmp_path, state):
    parent = subprocess.run(
        [sys.executable, "-c", READ_AND_DIE, str(tmp_path), state],
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * LIMIT_SECONDS,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert parent.returncode == -signal.SIGKILL
    assert gone(int(parent.stdout))


def test_it_loads_nothing_that_only_the_parent_process_uses():
    unwanted = ("grpc", "prometheus_client", "uvicorn", "kubernetes", "pynvml", "yaml")
    code = (
        "import sys, exporter.node.reader.__main__, exporter.node.dcgm.source;"
        f"print([name for name in {unwanted!r} if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_it_takes_less_than_24_mib_before_a_library_is_loaded():
    code = (
        "import exporter.node.reader.__main__, exporter.node.dcgm.source;"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmRSS')))"
    )
    bare = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=bare)
    assert int(answer.stdout) < 24 * 1024


def test_its_first_reply_comes_within_the_time_for_opening(tmp_path):
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "exporter.node.reader"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    write_frame(process.stdin.fileno(), msgspec.msgpack.encode(simulated(tmp_path)))
    assert reply_to(process, 1).readings is not None
    assert time.monotonic() - began < ReaderTimings().opening
    process.stdin.close()
    process.wait(LIMIT_SECONDS)
    process.stdout.close()
