"""The reader survives whatever its child does. Every child here is a real process."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from exporter.node.devices.readings import ReaderConfig
from exporter.node.reader.supervisor import COMMAND, Patience, Reader
from exporter.source import SourceError
from tests.exporter.node.reader.fake_readers import FIELDS, UUID, eventually, failure, gone, settled, simulated

QUICK = Patience(deadline=1.0, opening=10.0, first_pause=0.05, longest_pause=0.1)


@pytest.fixture
def reader_of():
    readers = []

    def make(config, patience=QUICK, command=COMMAND):
        readers.append(Reader(config, patience, command))
        return readers[-1]

    yield make
    for reader in readers:
        reader.close()


def child_that(code):
    return (sys.executable, "-c", code)


def test_readings_come_out_of_another_process(reader_of, tmp_path):
    reader = reader_of(simulated(tmp_path))
    assert reader.pid is None, "nothing is started before the first read"
    readings = eventually(reader.read)
    assert readings.inventory[0].uuid == UUID
    assert [column for block in readings.blocks for column in block.columns] == [(41,), (70.5,)]
    assert reader.pid not in (None, os.getpid())
    assert reader.name == "simulated"
    assert reader.restarts == 0


def test_every_pass_uses_the_same_child(reader_of, tmp_path):
    reader = reader_of(simulated(tmp_path))
    eventually(reader.read)
    pid = reader.pid
    assert [reader.read().source for _ in range(20)] == ["simulated"] * 20
    assert reader.pid == pid


def test_a_child_that_hangs_is_killed_and_a_new_one_answers(reader_of, tmp_path):
    hang = {"event": "call", "function": "read", "at": 0.8, "for": 0.4, "hang": True}
    reader = reader_of(simulated(tmp_path, hang))
    eventually(reader.read)
    pid = reader.pid
    reason = until_failure(reader).reason
    assert reason == "hung"
    assert gone(pid)
    assert eventually(reader.read).inventory
    assert reader.pid != pid
    assert reader.restarts == 1


def test_a_child_that_aborts_is_replaced(reader_of, tmp_path):
    reader = reader_of(simulated(tmp_path))
    eventually(reader.read)
    pid = reader.pid
    os.kill(pid, signal.SIGABRT)
    error = failure(reader.read)
    assert error.reason == "crashed"
    assert "SIGABRT" in str(error)
    assert failure(reader.read).reason == "restarting"
    assert eventually(reader.read).inventory
    assert reader.pid != pid


def test_a_crash_in_native_code_during_a_read_is_a_reason(reader_of, tmp_path):
    reader = reader_of(simulated(tmp_path, {"event": "call", "function": "read", "crash": True}))
    error = settled(reader.read)
    assert error.reason == "crashed"
    assert "SIGABRT" in str(error)


def test_the_pause_before_a_new_child_doubles_up_to_its_limit(reader_of, tmp_path):
    patience = Patience(first_pause=0.1, longest_pause=0.4)
    reader = reader_of(simulated(tmp_path), patience, child_that("import sys; sys.exit(3)"))
    times = []
    end = time.monotonic() + 10
    while len(times) < 5 and time.monotonic() < end:
        error = settled(reader.read)
        if error.reason == "crashed":
            assert "status 3" in str(error)
            times.append(time.monotonic())
        else:
            assert error.reason == "restarting"
        time.sleep(0.005)
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert all(pause >= least for pause, least in zip(pauses, (0.1, 0.2, 0.4, 0.4), strict=True))
    assert reader._pause == 0.4
    assert reader.restarts == 4


@pytest.mark.parametrize(
    "said",
    [
        b"\\xff\\xff\\xff\\xff",
        b"\\x00\\x00\\x00\\x03abc",
        b"Traceback (most recent call last):\\n" * 4,
    ],
)
def test_garbage_on_the_pipe_ends_the_child(reader_of, tmp_path, said):
    code = f"import os,time; os.write(1, b'{said.decode()}'); time.sleep(60)"
    reader = reader_of(simulated(tmp_path), command=child_that(code))
    assert settled(reader.read).reason == "garbled"
    assert reader.pid is None


def test_an_answer_to_another_question_is_garbage(reader_of, tmp_path):
    code = (
        "import msgspec, os, time; from exporter.node.reader.protocol import *;"
        "write_frame(1, msgspec.msgpack.encode(Answer(7, reason='x'))); time.sleep(60)"
    )
    reader = reader_of(simulated(tmp_path), command=child_that(code))
    assert settled(reader.read).reason == "garbled"


def test_a_child_that_cannot_be_started_is_a_reason(reader_of, tmp_path):
    reader = reader_of(simulated(tmp_path), command=("/nowhere/python",))
    assert failure(reader.read).reason == "crashed"
    assert failure(reader.read).reason == "restarting"


def test_what_a_native_library_prints_does_not_reach_the_pipe(reader_of, tmp_path):
    source = tmp_path / "noisy.c"
    source.write_text(
        "#include <stdio.h>\n#include <string.h>\n"
        'static void noise(void) { puts("DCGM says hello"); fflush(stdout); }\n'
        "__attribute__((constructor)) static void loaded(void) { noise(); }\n"
        "int dcgmInit(void) { noise(); return -7; }\n"
    )
    library = tmp_path / "libnoisy.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    reader = reader_of(ReaderConfig("dcgm", FIELDS, 5.0, library=str(library)))
    error = settled(reader.read)
    assert error.reason == "engine_error"
    assert "dcgmInit answered -7" in str(error)


# In the next two the delay is far longer than what is asserted: a busy machine must not look like a slow reader.


def test_a_slow_opening_keeps_the_parent_answering_and_the_child_alive(reader_of, tmp_path):
    slow = {"event": "call", "function": "read", "delay": 5.0, "for": 30.0}
    reader = reader_of(simulated(tmp_path, slow, interval=0.25), Patience(deadline=0.5, opening=60.0))
    first, pid = failure(reader.read), reader.pid
    for _ in range(8):
        began = time.monotonic()
        assert failure(reader.read).reason == first.reason == "starting"
        assert time.monotonic() - began < 2.0
    assert reader.pid == pid


def test_a_read_slower_than_the_interval_is_not_waited_for_and_its_old_answer_not_shown(reader_of, tmp_path):
    slow = {"event": "call", "function": "read", "at": 1.5, "delay": 1.5, "for": 60.0}
    reader = reader_of(simulated(tmp_path, slow, interval=0.2), Patience(deadline=30.0))
    eventually(reader.read)
    pid = reader.pid
    assert until_failure(reader).reason == "slow"
    end = time.monotonic() + 3.5
    while time.monotonic() < end:
        began = time.monotonic()
        assert failure(reader.read).reason == "slow"
        assert time.monotonic() - began < 1.2
        time.sleep(0.05)
    assert reader.pid == pid


def until_failure(reader, seconds=10.0):
    """The first SourceError of a reader that answers so far."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            reader.read()
        except SourceError as error:
            return error
        time.sleep(0.02)
    raise AssertionError("the reader goes on answering")


def test_a_reason_of_the_source_passes_through_and_the_child_stays(reader_of, tmp_path):
    down = {"event": "disconnect", "at": 0.0}
    reader = reader_of(simulated(tmp_path, down))
    first = settled(reader.read)
    pid = reader.pid
    assert first.reason == failure(reader.read).reason == "connection_lost"
    assert reader.pid == pid is not None


def test_a_reason_that_only_a_new_process_cures_brings_one(reader_of, tmp_path):
    code = (
        "import msgspec; from exporter.node.reader.protocol import *; read_frame(0);"
        "number = msgspec.msgpack.decode(read_frame(0), type=Request).id;"
        "write_frame(1, msgspec.msgpack.encode(Answer(number, reason='driver_mismatch', message='new driver')));"
        "read_frame(0)"
    )
    reader = reader_of(simulated(tmp_path), command=child_that(code))
    assert settled(reader.read).reason == "driver_mismatch"
    assert reader.pid is None
    assert "new driver" in str(failure(reader.read))


def test_a_source_that_fails_in_an_unknown_way_is_a_reason_not_a_crash(reader_of):
    reader = reader_of(ReaderConfig("simulated", FIELDS, 5.0, scenario="/nowhere/scenario.json"))
    error = settled(reader.read)
    assert error.reason == "internal"
    assert "ScenarioError" in str(error)
    assert reader.pid is not None


def test_closing_during_a_hang_takes_less_than_two_seconds_and_ends_the_read(reader_of, tmp_path):
    hang = {"event": "call", "function": "read", "hang": True}
    reader = reader_of(simulated(tmp_path, hang, interval=60.0), Patience(deadline=60.0, opening=60.0))
    reasons = []
    reading = threading.Thread(target=lambda: reasons.append(failure(reader.read).reason))
    reading.start()
    end = time.monotonic() + 5
    while reader.pid is None and time.monotonic() < end:
        time.sleep(0.01)
    pid = reader.pid
    time.sleep(0.3)  # let the child reach its hang
    began = time.monotonic()
    reader.close()
    assert time.monotonic() - began < 2.0
    reading.join(1.0)
    assert reasons == ["closed"]
    assert gone(pid)
    assert failure(reader.read).reason == "closed"


def test_closing_twice_and_without_a_child_is_fine(tmp_path):
    reader = Reader(simulated(tmp_path))
    reader.close()
    reader.close()
    assert reader.pid is None


def test_the_name_with_auto_is_the_first_choice_until_something_answers(reader_of):
    assert reader_of(ReaderConfig("auto", FIELDS, 5.0)).name == "dcgm"
