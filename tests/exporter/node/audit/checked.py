"""Checks that a log accounts for every allocation exactly once, whatever happened while it was written."""

from collections import defaultdict

from exporter.node.audit.chain import digest
from exporter.node.audit.lines import AllocationEnded, AllocationStarted, ObservationGap, decode
from exporter.node.audit.rotated import rotated_files
from tests.exporter.node.audit.days import INTERVAL, decoded, of_event


def content_of(path):
    """All lines, rotated files first."""
    return b"".join(each.read_bytes() for each in (*rotated_files(path), path))


def chained(content):
    """The lines, without a torn last one; each must have the number and the hash of the one before it."""
    content = content[: content.rfind(b"\n") + 1]
    seq, prev = 0, ""
    for line in content.splitlines():
        found = decode(line)
        assert (found.seq, found.prev) == (seq + 1, prev)
        seq, prev = found.seq, digest(line)
    return decoded(content)


def each_once(lines, runs, late=2 * INTERVAL):
    """Every run has begun and ended once, with times that are at most `late` seconds later than the true ones."""
    started, ended = defaultdict(list), defaultdict(list)
    for line in of_event(lines, AllocationStarted):
        started[line.uuid, line.pod].append(line)
    for line in of_event(lines, AllocationEnded):
        ended[line.uuid, line.pod].append(line)
    expected = {(run.gpu, run.pod): run for run in runs}
    assert started.keys() == ended.keys() == expected.keys()
    for key, run in expected.items():
        (begin,), (end,) = started[key], ended[key]
        assert begin.allocation == end.allocation == begin.seq
        assert 0 <= begin.at - run.begin <= late, (begin, run)
        assert 0 <= end.at - run.end <= late, (end, run)
        assert begin.not_before is None or begin.not_before.timestamp() < run.begin + 0.001
        assert run.begin <= end.last_seen.timestamp() < run.end
        assert end.observed_seconds <= end.duration_seconds + 0.002


def gap_reasons(lines):
    """Why nothing was known for a time; an exporter that starts cannot read the devices at once."""
    return {gap.reason for gap in of_event(lines, ObservationGap)}


def allocated(file):
    """The allocations that the log has, as soon as it has some."""
    found = of_event(chained(file.read_bytes()), AllocationStarted) if file.exists() else []
    return {(each.pod, each.container, each.device, each.resource) for each in found}
