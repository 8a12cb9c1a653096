"""The thread that writes the audit log: what waits, what is lost, what is reported, and what is written at the end."""

import threading
from dataclasses import replace

from exporter.backoff import LONGEST_PAUSE
from exporter.node.audit.lines import AllocationEnded, AllocationStarted, Checkpoint, LogBegun, ObservationGap
from exporter.node.audit.log_file import AuditFile
from exporter.node.audit.output import Opened
from exporter.node.audit.writer import HUNG_SECONDS, MAX_WAITING, SYNC_SECONDS, AuditWriter
from tests.clock import Clock
from tests.exporter.node.audit.days import BEGIN, INTERVAL, LONGEST, decoded, given, observed, of_event
from tests.waiting import until


class Memory:
    """An output in memory, which fails or waits while a test wants that."""

    name = "memory"

    def __init__(self):
        self.content = b""
        self.failure = None
        self.free = threading.Event()
        self.free.set()
        self.syncs = 0

    def open(self):
        return Opened(None)

    def changed(self):
        return False

    def append(self, lines):
        self.free.wait()
        if self.failure is not None:
            raise self.failure
        self.content += lines

    def sync(self):
        self.syncs += 1

    def full(self):
        return False

    def rotate(self, seq): ...

    def close(self): ...


def writer_of(output, clock=None):
    clock = clock or Clock(BEGIN)
    return AuditWriter(output, "node-1", LONGEST, clock=clock, wall=clock)


def events(output):
    return [type(line) for line in decoded(output.content)]


def test_what_was_observed_while_nothing_could_be_written_is_written_afterwards_with_its_own_times():
    output, clock = Memory(), Clock(BEGIN)
    writer = writer_of(output, clock)
    output.failure = OSError(28, "No space left on device")
    for number in range(50):
        clock.now = BEGIN + number * INTERVAL
        writer.put(observed([given(f"pod-{number // 10}")], clock.now))
        writer.step()
    (problem,) = writer.problems()
    assert (problem.reason, problem.message) == ("unwritable", "memory cannot be written: No space left on device")
    assert writer.failures > 40
    assert (writer.wrote_at, output.content) == (None, b"")
    output.failure = None
    clock.now += LONGEST_PAUSE
    writer.step()
    assert writer.problems() == ()
    assert writer.wrote_at == clock.now
    lines = decoded(output.content)
    assert [each.at for each in of_event(lines, AllocationStarted)] == [BEGIN + n * 300 for n in range(5)]
    assert of_event(lines, ObservationGap) == []


def test_a_failure_is_followed_by_a_pause():
    output, clock = Memory(), Clock(BEGIN)
    writer = writer_of(output, clock)
    output.failure = OSError(5, "Input/output error")
    for _ in range(100):
        writer.put(observed([], clock.now))
        writer.step()
        clock.now += 0.1
    assert writer.failures < 6


def test_what_does_not_fit_in_the_queue_is_lost_and_a_gap():
    output, clock = Memory(), Clock(BEGIN)
    writer = writer_of(output, clock)
    output.failure = OSError(28, "No space left on device")
    for number in range(MAX_WAITING + 100):
        clock.now = BEGIN + number
        writer.put(observed([given("a" if number < MAX_WAITING else "lost")], clock.now))
    writer.step()
    assert [problem.reason for problem in writer.problems()] == ["unwritable", "lost"]
    output.failure = None
    clock.now += LONGEST_PAUSE
    writer.step()
    writer.put(observed([given("b")], clock.now))
    writer.step()
    assert writer.problems() == ()
    lines = decoded(output.content)
    (gap,) = of_event(lines, ObservationGap)
    assert (gap.reason, gap.since.timestamp(), gap.until.timestamp()) == ("lost", BEGIN + MAX_WAITING - 1, clock.now)
    assert [each.pod for each in of_event(lines, AllocationStarted, AllocationEnded)] == ["a", "a", "b"]


def test_a_write_that_hangs_is_reported_and_costs_the_collection_loop_nothing():
    output, clock = Memory(), Clock(BEGIN)
    writer = writer_of(output, clock)
    output.free.clear()
    writer.start()
    try:
        for number in range(2 * MAX_WAITING):
            writer.put(observed([given("a")], BEGIN + number))
        until(lambda: writer._busy_since is not None)
        clock.now += HUNG_SECONDS + 1
        assert [problem.reason for problem in writer.problems()] == ["unwritable", "lost"]
        assert "has not ended" in writer.problems()[0].message
    finally:
        output.free.set()
    until(lambda: not writer._waiting)
    writer.close()
    assert events(output)[:2] == [LogBegun, AllocationStarted]


def test_the_thread_writes_soon_and_at_the_end_that_it_was_stopped(tmp_path):
    path = tmp_path / "audit.jsonl"
    writer = AuditWriter(AuditFile(path, 1 << 20, 0), "node-1", LONGEST)
    writer.start()
    for number in range(3):
        writer.put(observed([given("a")], BEGIN + number * INTERVAL))
    until(lambda: path.exists() and path.read_bytes().count(b"\n") >= 3)
    writer.close()
    last = decoded(path.read_bytes())[-1]
    assert isinstance(last, Checkpoint)
    assert (last.stopped, last.at) == (True, BEGIN + 2 * INTERVAL)
    assert [usage.observed_seconds for usage in last.allocations] == [60]
    assert not writer._thread.is_alive()


def test_lines_are_brought_to_the_disk_at_a_pace_and_without_further_observations():
    output, clock = Memory(), Clock(BEGIN)
    writer = writer_of(output, clock)
    for pod in "ab":
        writer.put(observed([given(pod)], clock.now))
        writer.step()
        assert output.syncs == 1
        clock.now += 1
    assert writer._pause() == SYNC_SECONDS - 2
    clock.now += SYNC_SECONDS
    assert writer._pause() == 0
    writer.step()
    assert (output.syncs, writer._pause()) == (2, None)


def test_a_defect_costs_one_observation_and_not_the_thread(caplog):
    output, clock = Memory(), Clock(BEGIN)
    writer = writer_of(output, clock)
    for node in ("what no collection gives", observed([given("a")]).node):
        writer.put(replace(observed([]), at=clock.now, node=node))
        writer.step()
        clock.now += LONGEST_PAUSE
    assert "defect" in caplog.text
    assert (writer.failures, writer.problems()) == (1, ())
    assert AllocationStarted in events(output)


def test_an_observation_that_waits_does_not_change():
    output = Memory()
    writer = writer_of(output)
    observation = observed([given("a")])
    writer.put(observation)
    assert observation == replace(observation, lost=False)
    assert list(writer._waiting) == [observation]
