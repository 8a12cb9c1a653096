"""The file of an audit log: torn ends, files of others, rotation, and what is on the disk after a crash."""

import errno
import os
from itertools import pairwise

import pytest

from exporter.node.audit.chain import digest
from exporter.node.audit.file_operations import FileOperations
from exporter.node.audit.lines import LogBegun, decode
from exporter.node.audit.log_file import AuditFile
from exporter.node.audit.output import AuditStream
from exporter.node.audit.reasons import AuditLogError
from exporter.node.audit.rotated import rotated_files
from exporter.node.audit.writer import SYNC_SECONDS
from tests.exporter.node.audit.checked import chained, content_of
from tests.exporter.node.audit.days import BEGIN, INTERVAL, given, observed, of_event
from tests.exporter.node.audit.killed import Life


@pytest.fixture
def path(tmp_path):
    return tmp_path / "audit.jsonl"


def written(path, observations=3, begin=BEGIN, **more):
    """A process that has noted a pod so often, and was killed."""
    life = Life(path, begin, **more)
    for number in range(observations):
        assert life.note(observed([given("a")], begin + number * INTERVAL))
        assert life.writer.problems() == ()
    life.operations.end()
    return path.read_bytes()


def begun(path):
    return of_event(chained(content_of(path)), LogBegun)


@pytest.mark.parametrize("torn", [b'{"event":"start","sch', b"\0" * 512, b"{", b'{"event":"checkpoint"\0\0\0'])
def test_a_torn_last_line_is_cut_off_and_that_is_written(path, torn):
    before = written(path)
    path.write_bytes(before + torn)
    after = written(path, begin=BEGIN + 900)
    assert after.startswith(before)
    assert begun(path)[-1].repaired_bytes == len(torn)


@pytest.mark.parametrize("torn", [b'{"event":"beg', b"\0" * 512, b""])
def test_a_first_line_that_is_torn_is_written_anew(path, torn):
    path.write_bytes(torn)
    written(path)
    assert [each.repaired_bytes for each in begun(path)] == [len(torn)]


@pytest.mark.parametrize("content", [b"port: 9400\n", b"no line break", b'{"event":"else"}\n', b"\n\n{}\n"])
def test_a_file_that_is_no_audit_log_is_left_as_it_is(path, content):
    path.write_bytes(content)
    life = Life(path, BEGIN)
    life.note(observed([given("a")]))
    (problem,) = life.writer.problems()
    assert (problem.source, problem.reason) == ("audit_log", "unreadable")
    assert str(path) in problem.message
    assert path.read_bytes() == content
    assert not life.operations.opened


def test_a_whole_line_of_others_stays_and_the_log_goes_on_after_it(path):
    before = written(path)
    path.write_bytes(before + b"somebody's note\n")
    assert written(path, begin=BEGIN + 900).startswith(before + b"somebody's note\n")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_a_problem(path, make):
    make(path)
    life = Life(path, BEGIN)
    life.note(observed([]))
    assert [str(path) in problem.message for problem in life.writer.problems()] == [True]


def test_a_log_that_another_process_writes_is_left_to_it_and_taken_over_when_it_has_ended(path):
    one, two = Life(path, BEGIN), Life(path, BEGIN)
    one.note(observed([given("a")]))
    before = path.read_bytes()
    two.note(observed([given("a")]))
    assert [problem.reason for problem in two.writer.problems()] == ["in_use"]
    assert path.read_bytes() == before
    one.operations.end()
    two.note(observed([given("a")], BEGIN + INTERVAL))
    assert two.writer.problems() == ()
    assert [each.reason for each in begun(path)] == ["started", "started"]


def test_a_full_file_is_rotated_and_the_oldest_ones_are_removed(path):
    life = Life(path, BEGIN, max_bytes=3000, max_rotated=2)
    for number in range(60):
        life.note(observed([given(f"pod-{number}")], BEGIN + number * INTERVAL))
    assert life.writer.problems() == ()
    files = rotated_files(path)
    assert len(files) == 2
    assert all(3000 <= each.stat().st_size < 6000 for each in files)
    lines = chained_from_the_middle(content_of(path))
    assert [int(each.name.rpartition(".")[2]) for each in files] == [
        each.seq - 1 for each in of_event(lines, LogBegun)[1:]
    ]


def chained_from_the_middle(content):
    lines = content.splitlines()
    for before, after in pairwise(lines):
        assert decode(after).prev == digest(before)
    return [decode(line) for line in lines]


@pytest.mark.parametrize("leave", [None, b"", b'{"event":"sta'])
def test_a_log_that_somebody_has_moved_or_emptied_goes_on_in_a_file_of_the_same_chain(path, leave, tmp_path):
    life = Life(path, BEGIN)
    life.note(observed([given("a")]))
    moved = tmp_path / "moved"
    moved.write_bytes(path.read_bytes())
    if leave is None:
        path.unlink()
    else:
        path.write_bytes(leave)
    life.note(observed([given("b")], BEGIN + INTERVAL))
    path.write_bytes(moved.read_bytes() + path.read_bytes())
    assert [each.reason for each in begun(path)] == ["started", "continued"]


def test_after_a_crash_of_the_machine_at_most_the_last_seconds_are_missing(path):
    life = Life(path, BEGIN)
    for number in range(40):
        life.note(observed([given(f"pod-{number}")], BEGIN + number))
        synced = life.operations.synced[path.stat().st_ino]
        (last,) = {line.at for line in chained(path.read_bytes()[:synced])[-1:]}
        assert BEGIN + number - last < SYNC_SECONDS + 1
    life.operations.end()
    path.write_bytes(path.read_bytes()[:synced])
    written(path, begin=BEGIN + 900)
    chained(path.read_bytes())


class Failing(FileOperations):
    """A disk that takes `room` bytes, and then as much of a write as fits."""

    def __init__(self, room, *, truncates=True):
        self.room, self.truncates = room, truncates

    def write(self, descriptor, content):
        taken = content[: self.room]
        self.room -= len(taken)
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(descriptor, taken)

    def truncate(self, descriptor, size):
        if not self.truncates:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().truncate(descriptor, size)


@pytest.mark.parametrize("truncates", [True, False])
def test_lines_that_do_not_fit_are_written_whole_once_there_is_room(path, truncates):
    disk = Failing(10, truncates=truncates)
    file = AuditFile(path, 1 << 20, 0, disk)
    file.open()
    for _ in range(3):
        with pytest.raises(OSError, match="space" if truncates else "."):
            file.append(b'{"event":"one"}\n{"event":"two"}\n')
        disk.room += 10 if truncates else 0
    assert not file.changed()
    disk.room, disk.truncates = 1 << 20, True
    file.append(b'{"event":"one"}\n{"event":"two"}\n')
    assert path.read_bytes() == b'{"event":"one"}\n{"event":"two"}\n'
    file.close()


def test_a_stream_that_takes_a_part_gets_the_rest_and_nothing_twice():
    read, write = os.pipe()
    disk = Failing(10)
    stream = AuditStream(write, disk)
    with pytest.raises(OSError, match="space"):
        stream.append(b"one line\nanother line\n")
    disk.room = 100
    stream.append(b"one line\nanother line\n")
    stream.append(b"a third one\n")
    os.close(write)
    with os.fdopen(read, "rb") as file:
        assert file.read() == b"one line\nanother line\na third one\n"


def test_a_stream_that_is_begun_again_ends_a_line_that_it_has_in_part():
    read, write = os.pipe()
    disk = Failing(3)
    stream = AuditStream(write, disk)
    with pytest.raises(OSError, match="space"):
        stream.append(b"one line\n")
    disk.room = 100
    stream.open()
    stream.append(b"another line\n")
    os.close(write)
    with os.fdopen(read, "rb") as file:
        assert file.read() == b"one\nanother line\n"


def test_a_rotated_file_that_is_there_already_is_not_replaced(path):
    written(path)
    file = AuditFile(path, 1, 0)
    file.open()
    there = path.with_name("audit.jsonl.000000000009")
    there.write_text("x")
    with pytest.raises(AuditLogError, match="is there already"):
        file.rotate(9)
    file.close()
    assert there.read_text() == "x"
