"""The audit log of an exporter that runs: disks that cannot be written, kills, and standard output."""

import subprocess
from contextlib import contextmanager

import pytest

from exporter.node.audit.lines import AllocationStarted, Checkpoint, LogBegun, ObservationGap
from tests.exporter.node.audit.checked import allocated, chained
from tests.exporter.node.audit.days import of_event
from tests.exporter.node.exporter_process import running_exporter
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.slow]


@contextmanager
def small_disk(folder, size):
    """A file system of this size (bytes); skips where none may be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk):
    (disk / "filler").write_bytes(b"x" * (64 << 10))


def make_read_only(disk):
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


def mend(disk):
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    (disk / "filler").unlink(missing_ok=True)


@pytest.mark.parametrize("spoil", [fill, make_read_only])
def test_a_file_system_that_is_full_or_read_only_is_the_same_fault(tmp_path, spoil):
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        spoil(disk)
        file, folder = disk / "audit.jsonl", tmp_path / "node"
        folder.mkdir()
        with running_exporter(folder, "dcgm", "--audit-log", str(file)) as node:
            node.wait_for(lambda scrape: scrape.reasons("audit_log") == {"unwritable"}, "cannot be written")
            mend(disk)
            node.wait_for(lambda scrape: not scrape.reasons("audit_log"), "written")
            assert node.scraper.faults == []
        assert allocated(file)


def test_a_killed_exporter_has_written_all_and_the_next_one_goes_on(tmp_path):
    file = tmp_path / "audit.jsonl"
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        with running_exporter(folder, "dcgm", "--audit-log", str(file)) as node:
            seen = until(lambda number=attempt: closed_gaps(file) == number and allocated(file))
            node.process.kill()
            node.process.wait()
    lines = chained(file.read_bytes())
    assert len(seen) == len(of_event(lines, AllocationStarted))
    assert [line.reason for line in of_event(lines, LogBegun)] == ["started"] * 3
    assert not any(line.stopped for line in of_event(lines, Checkpoint))


def closed_gaps(file):
    """How many gaps between two processes have ended."""
    lines = chained(file.read_bytes()) if file.exists() else []
    return sum(gap.reason == "not_running" and gap.until is not None for gap in of_event(lines, ObservationGap))


def test_a_log_shipper_reads_lines_and_nothing_else_from_standard_output(tmp_path):
    with running_exporter(tmp_path, "dcgm", "--audit-log", "-", apart=True) as node:
        shipped = tmp_path / "stdout"
        until(lambda: shipped.read_bytes().count(b"\n") > 2)
        node.process.terminate()
        node.process.wait()
    lines = chained(shipped.read_bytes())
    assert of_event(lines, AllocationStarted)
    assert lines[-1].stopped
    assert b"serving on port" in (tmp_path / "log").read_bytes()
