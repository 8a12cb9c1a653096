"""The reader keeps working whatever its process does. Every reader process here is a real one."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import replace

import msgspec
import pytest

from exporter.node.devices.fields.device_source import ReaderConfig, SourceChoice
from exporter.node.devices.fields.validity import readings_age_limit
from exporter.node.reader.process import KILL_SECONDS
from exporter.node.reader.supervisor import COMMAND, STEADY_SECONDS, Reader, ReaderTimings
from exporter.source import SourceError
from tests.exporter.node.reader.fake_readers import (
    FAKE_PROCESS,
    FIELDS,
    LIMIT_SECONDS,
    PATIENT,
    UUID,
    eventually,
    failure,
    gone,
    process_that,
    settled,
    simulated,
)
from tests.waiting import until

pytestmark = pytest.mark.process

NEVER = 3600.0
"""Seconds: longer than any test."""


class Clock:
    """Shows the time that a test sets, so that no pause between two processes is over by itself."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def reader_of(clock):
    readers = []

    def make(config, timings=PATIENT, command=COMMAND):
        readers.append(Reader(config, timings, command, clock))
        return readers[-1]

    yield make
    for reader in readers:
        reader.close()


def until_failure(reader, seconds=LIMIT_SECONDS):
    """The first SourceError of a reader that answers so far."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            reader.read()
        except SourceError as error:
            return error
        time.sleep(0.02)
    raise AssertionError("the reader goes on answering")


def test_readings_come_out_of_another_process(reader_of, tmp_path):
    reader = reader_of(simulated(tmp_path))
    assert reader.pid is None, "nothing is started before the first read"
    readings = eventually(reader.read)
    assert readings.inventory[0].uuid == UUID
    assert [column for batch in readings.batches for column in batch.columns] == [(41,), (70.5,)]
    assert reader.pid not in (None, os.getpid())
    assert reader.name == "simulated"
    assert reader.restarts == 0


def test_every_read_uses_the_same_process(reader_of, tmp_path):
    reader = reader_of(simulated(tmp_path))
    eventually(reader.read)
    pid = reader.pid
    assert [reader.read().source for _ in range(20)] == ["simulated"] * 20
    assert reader.pid == pid


def test_a_process_that_hangs_is_killed_and_a_new_one_answers(reader_of, clock, tmp_path):
    timings = ReaderTimings(deadline=4.0, opening=LIMIT_SECONDS)
    reader = reader_of(simulated(tmp_path), timings, process_that(FAKE_PROCESS, tmp_path))
    eventually(reader.read)
    pid = reader.pid
    (tmp_path / "hang").touch()
    assert until_failure(reader).reason == "hung"
    assert gone(pid)
    (tmp_path / "hang").unlink()
    clock.now += timings.longest_pause
    assert eventually(reader.read).source == "simulated"
    assert reader.pid not in (None, pid)
    assert reader.restarts == 1


def test_a_call_that_hangs_in_the_source_is_killed(reader_of, tmp_path):
    hang = {"event": "call", "function": "read", "hang": True}
    reader = reader_of(simulated(tmp_path, hang), ReaderTimings(deadline=LIMIT_SECONDS, opening=1.0))
    assert settled(reader.read).reason == "hung"
    assert reader.pid is None


def test_a_process_that_aborts_is_replaced(reader_of, clock, tmp_path):
    reader = reader_of(simulated(tmp_path))
    eventually(reader.read)
    pid = reader.pid
    os.kill(pid, signal.SIGABRT)
    error = failure(reader.read)
    assert error.reason == "crashed"
    assert "SIGABRT" in str(error)
    assert failure(reader.read).reason == "restarting"
    clock.now += PATIENT.first_pause
    assert eventually(reader.read).inventory
    assert reader.pid != pid


def test_a_crash_in_native_code_during_a_read_has_a_reason(reader_of, tmp_path):
    reader = reader_of(simulated(tmp_path, {"event": "call", "function": "read", "crash": True}))
    error = settled(reader.read)
    assert error.reason == "crashed"
    assert "SIGABRT" in str(error)


def test_the_pause_before_a_new_process_doubles_up_to_its_limit(reader_of, clock, tmp_path):
    timings = replace(PATIENT, first_pause=10.0, longest_pause=40.0)
    reader = reader_of(simulated(tmp_path), timings, process_that("import sys; sys.exit(3)"))
    for pause in (10, 20, 40, 40):
        error = settled(reader.read)
        assert error.reason == "crashed"
        assert "status 3" in str(error)
        error = failure(reader.read)
        assert error.reason == "restarting"
        assert f"starts in {pause} s" in str(error)
        clock.now += pause - 1
        assert failure(reader.read).reason == "restarting"
        clock.now += 1
    assert reader.restarts == 3


def test_a_process_that_ran_for_long_is_replaced_after_the_first_pause_again(reader_of, clock, tmp_path):
    timings = replace(PATIENT, first_pause=10.0, longest_pause=40.0)
    reader = reader_of(simulated(tmp_path), timings, process_that(FAKE_PROCESS, tmp_path))
    for ran, pause in ((1.0, 10), (1.0, 20), (STEADY_SECONDS, 10)):
        eventually(reader.read)
        clock.now += ran
        os.kill(reader.pid, signal.SIGKILL)
        assert until_failure(reader).reason == "crashed"
        assert f"starts in {pause} s" in str(failure(reader.read))
        clock.now += pause


@pytest.mark.parametrize(
    "written",
    [
        b"\\xff\\xff\\xff\\xff",
        b"\\x00\\x00\\x00\\x03abc",
        b"Traceback (most recent call last):\\n" * 4,
    ],
)
def test_bytes_that_are_no_reply_end_the_process(reader_of, tmp_path, written):
    code = f"import os,time; os.write(1, b'{written.decode()}'); time.sleep({NEVER})"
    reader = reader_of(simulated(tmp_path), command=process_that(code))
    assert settled(reader.read).reason == "garbled"
    assert reader.pid is None


def test_a_reply_to_another_request_ends_the_process(reader_of, tmp_path):
    code = (
        "import msgspec, os, time; from exporter.node.reader.protocol import *;"
        f"write_frame(1, msgspec.msgpack.encode(ReaderReply(7, reason='x'))); time.sleep({NEVER})"
    )
    reader = reader_of(simulated(tmp_path), command=process_that(code))
    error = settled(reader.read)
    assert error.reason == "garbled"
    assert "replied to request 7" in str(error)
    assert reader.pid is None


def test_a_process_that_cannot_be_started_has_a_reason(reader_of, tmp_path):
    reader = reader_of(simulated(tmp_path), command=("/nowhere/python",))
    assert failure(reader.read).reason == "crashed"
    assert failure(reader.read).reason == "restarting"


def test_what_a_native_library_prints_does_not_reach_the_pipe(reader_of, tmp_path):
    source = tmp_path / "noisy.c"
    source.write_text(
        "#include <stdio.h>\n#include <string.h>\n"
        'static void noise(void) { puts("DCGM prints a line"); fflush(stdout); }\n'
        "__attribute__((constructor)) static void loaded(void) { noise(); }\n"
        "int dcgmInit(void) { noise(); return -7; }\n"
    )
    library = tmp_path / "libnoisy.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    reader = reader_of(ReaderConfig("dcgm", FIELDS, 100.0, libdcgm=str(library)))
    error = settled(reader.read)
    assert error.reason == "engine_error"
    assert "dcgmInit answered -7" in str(error)


def test_a_slow_opening_keeps_the_parent_process_answering_and_the_reader_process_alive(reader_of, tmp_path):
    slow = {"event": "call", "function": "read", "delay": NEVER}
    reader = reader_of(simulated(tmp_path, slow, interval=0.25), ReaderTimings(deadline=0.5, opening=NEVER))
    reasons, pid = {failure(reader.read).reason}, reader.pid
    for _ in range(8):
        began = time.monotonic()
        reasons.add(failure(reader.read).reason)
        assert time.monotonic() - began < LIMIT_SECONDS
    assert reasons == {"starting"}
    assert reader.pid == pid


def test_a_read_does_not_wait_longer_than_its_interval_for_a_slow_reply(reader_of, tmp_path):
    reader = reader_of(
        simulated(tmp_path, interval=0.2), replace(PATIENT, deadline=NEVER), process_that(FAKE_PROCESS, tmp_path)
    )
    until_replies(reader, tmp_path, 1)
    pid = reader.pid
    (tmp_path / "delay").write_text(str(NEVER))
    assert until_failure(reader).reason == "slow"
    began = time.monotonic()
    assert failure(reader.read).reason == "slow"
    assert time.monotonic() - began < LIMIT_SECONDS
    assert reader.pid == pid


def outcomes(reader, tmp_path, delay, count):
    """When each read began, and its readings or why it failed, until a slow process has replied so often."""
    (tmp_path / "delay").write_text(str(delay))
    found = []
    end = time.monotonic() + LIMIT_SECONDS
    while replies(tmp_path) < count:
        assert time.monotonic() < end
        try:
            found.append((time.monotonic(), reader.read()))
        except SourceError as error:
            found.append((time.monotonic(), error.reason))
    return found


def test_what_a_slow_process_read_is_returned_late_with_the_problem_slow(reader_of, tmp_path):
    timings = replace(PATIENT, deadline=NEVER)
    reader = reader_of(simulated(tmp_path, interval=0.4), timings, process_that(FAKE_PROCESS, tmp_path))
    found = outcomes(reader, tmp_path, delay=0.6, count=6)
    late = [(began, each) for began, each in found if not isinstance(each, str) and each.problems]
    assert late
    for began, readings in late:
        assert [reason for reason, _ in readings.problems] == ["slow"]
        assert began - readings.taken_at <= readings_age_limit(0.4)
    (tmp_path / "delay").unlink()
    until(lambda: eventually(reader.read).problems == ())


@pytest.mark.slow
def test_late_readings_are_not_returned_when_they_are_older_than_their_limit(reader_of, tmp_path):
    interval = 0.1
    timings = replace(PATIENT, deadline=NEVER)
    reader = reader_of(simulated(tmp_path, interval=interval), timings, process_that(FAKE_PROCESS, tmp_path))
    found = outcomes(reader, tmp_path, delay=readings_age_limit(interval) + 0.5, count=1)
    assert {each for _, each in found} <= {"starting", "slow"}
    assert failure(reader.read).reason == "slow"


def test_a_late_failure_has_its_own_reason_and_not_slow(reader_of, tmp_path):
    (tmp_path / "reason").write_text("connection_lost")
    timings = replace(PATIENT, deadline=NEVER)
    reader = reader_of(simulated(tmp_path, interval=0.4), timings, process_that(FAKE_PROCESS, tmp_path))
    found = outcomes(reader, tmp_path, delay=0.6, count=6)
    assert "connection_lost" in {each for _, each in found}


def test_the_xids_of_replies_that_came_too_late_are_in_the_next_readings(reader_of, tmp_path):
    reader = reader_of(
        simulated(tmp_path, interval=0.2), replace(PATIENT, deadline=NEVER), process_that(FAKE_PROCESS, tmp_path)
    )
    (tmp_path / "delay").write_text("1.0")
    found = []

    def read():
        with contextlib.suppress(SourceError):
            found.extend(report.code for report in reader.read().xids)

    until(lambda: (read(), replies(tmp_path) >= 3)[1])
    (tmp_path / "delay").unlink()
    until(lambda: (read(), len(found) > 3)[1])
    assert found == list(range(1, len(found) + 1)), "each once, in order, none missing"


def replies(folder):
    """How many replies the fake reader process has sent."""
    try:
        return int((folder / "replies").read_text() or "0")
    except FileNotFoundError:
        return 0


def until_replies(reader, folder, count):
    """Read until the fake reader process has sent so many replies, whether the reads answer or not."""
    end = time.monotonic() + LIMIT_SECONDS
    while replies(folder) < count:
        assert time.monotonic() < end
        try:
            reader.read()
        except SourceError as error:
            assert error.reason in {"starting", "slow"}  # noqa: PT017 - both are expected


def test_a_reason_of_the_source_is_passed_on_and_the_process_stays(reader_of, tmp_path):
    reader = reader_of(simulated(tmp_path, {"event": "disconnect", "at": 0.0}))
    first = settled(reader.read)
    pid = reader.pid
    assert first.reason == failure(reader.read).reason == "connection_lost"
    assert reader.pid == pid is not None


@pytest.mark.parametrize("reason", ["driver_mismatch", "no_devices", "engine_dead"])
def test_a_reason_that_only_a_new_process_ends_replaces_the_process(reader_of, clock, tmp_path, reason):
    (tmp_path / "reason").write_text(reason)
    reader = reader_of(simulated(tmp_path), command=process_that(FAKE_PROCESS, tmp_path))
    assert settled(reader.read).reason == reason
    assert reader.pid is None
    restarting = failure(reader.read)
    assert restarting.reason == "restarting"
    assert "asked for by the test" in str(restarting)
    (tmp_path / "reason").unlink()
    clock.now += PATIENT.first_pause
    assert eventually(reader.read).source == "simulated"


def test_an_unexpected_exception_of_a_source_is_a_reason_and_no_crash(reader_of):
    reader = reader_of(ReaderConfig("simulated", FIELDS, 100.0, scenario="/nowhere/scenario.json"))
    error = settled(reader.read)
    assert error.reason == "internal"
    assert "ScenarioError" in str(error)
    assert reader.pid is not None


def test_closing_during_a_hang_kills_the_process_and_ends_the_read(reader_of, tmp_path):
    hang = {"event": "call", "function": "read", "hang": True}
    reader = reader_of(simulated(tmp_path, hang, interval=NEVER), ReaderTimings(deadline=NEVER, opening=NEVER))
    reasons = []
    reading = threading.Thread(target=lambda: reasons.append(failure(reader.read).reason))
    reading.start()
    end = time.monotonic() + LIMIT_SECONDS
    while reader.pid is None and time.monotonic() < end:
        time.sleep(0.01)
    pid = reader.pid
    time.sleep(0.3)  # so that the process has mostly reached its hang; closing works without it too
    began = time.monotonic()
    reader.close()
    assert time.monotonic() - began < LIMIT_SECONDS / 2
    reading.join(LIMIT_SECONDS)
    assert reasons == ["closed"]
    assert gone(pid)
    assert failure(reader.read).reason == "closed"


def test_the_time_for_closing_is_at_most_two_seconds():
    assert ReaderTimings().grace + KILL_SECONDS < 2.0


def test_closing_twice_and_without_a_process_does_nothing(tmp_path):
    reader = Reader(simulated(tmp_path))
    reader.close()
    reader.close()
    assert reader.pid is None


def test_the_name_with_auto_is_the_first_choice_until_a_source_answers(reader_of):
    assert reader_of(ReaderConfig("auto", FIELDS, 5.0)).name == "dcgm"


def test_other_fields_reach_the_running_process_and_the_next_one(reader_of, clock, tmp_path):
    reader = reader_of(simulated(tmp_path))
    eventually(reader.read)
    pid = reader.pid
    reader.want(FIELDS[:1])
    readings = reader.read()
    assert [batch.fields for batch in readings.batches] == [(FIELDS[0].id,)]
    assert reader.pid == pid
    os.kill(pid, signal.SIGKILL)
    assert until_failure(reader).reason == "crashed"
    clock.now += NEVER
    readings = eventually(reader.read)
    assert [batch.fields for batch in readings.batches] == [(FIELDS[0].id,)]
    assert reader.pid != pid


CHOOSING = """
import sys, time
from pathlib import Path
import msgspec
from exporter.node.devices.fields.device_source import ReaderConfig, SourceChoice
from exporter.node.devices.readings.readings import Readings
from exporter.node.reader.protocol import ReaderReply, ReaderRequest, read_frame, write_frame
config = msgspec.msgpack.decode(read_frame(0), type=ReaderConfig)
Path(sys.argv[1], "begun").write_bytes(msgspec.json.encode(config.choice))
while (body := read_frame(0)) is not None:
    request = msgspec.msgpack.decode(body, type=ReaderRequest).id
    choice = SourceChoice("host engine", "tcp://localhost:5555")
    write_frame(1, msgspec.msgpack.encode(ReaderReply(request, Readings("dcgm", 0.0, ()), choice=choice)))
"""


def test_the_next_process_begins_with_what_auto_had_chosen_suspect_since_the_last_one_ended(reader_of, clock, tmp_path):
    reader = reader_of(ReaderConfig("auto", FIELDS, 100.0), command=process_that(CHOOSING, tmp_path))
    eventually(reader.read)
    assert (tmp_path / "begun").read_text() == "null"
    os.kill(reader.pid, signal.SIGKILL)
    assert until_failure(reader).reason == "crashed"
    since = clock.now
    clock.now += NEVER
    eventually(reader.read)
    begun = msgspec.json.decode((tmp_path / "begun").read_bytes(), type=SourceChoice)
    assert begun == SourceChoice("host engine", "tcp://localhost:5555", suspect_since=since)
