"""What several audit logs say together: allocations, GPU-hours and gaps, in whatever order and with overlaps."""

import random

import pytest
from hypothesis import given as holds
from hypothesis import settings
from hypothesis import strategies as st

from exporter.commands.audit.history import MISSING_LINES
from exporter.commands.audit.record import NO_RECORD
from exporter.commands.audit.usage import audit_usage, unobserved_hours
from exporter.node.audit.lines import AllocationEnded, DeviceId
from exporter.node.audit.reasons import GapReason
from tests.exporter.commands.audit.logs import NodeLog, record_of
from tests.exporter.node.audit.days import BEGIN, INTERVAL, decoded, given

HOUR = 3600.0
EVER = (BEGIN - HOUR, BEGIN + 24 * HOUR)
A, B = given("a"), given("b", "GPU-1")


def seconds_of(record, period=EVER):
    """By pod, observed and unobserved seconds."""
    found = {}
    for span in record.spans:
        known, unknown = found.get(span.key.pod, (0, 0))
        found[span.key.pod] = (
            round(known + span.gpu_seconds(period), 3),
            round(unknown + HOUR * unobserved_hours(span, period), 3),
        )
    return found


def gaps_of(record, begin=BEGIN, end=None):
    """Gaps as (since, until, reason), in seconds from BEGIN."""
    period = (begin, end or record.whole[1])
    return [(gap.since - BEGIN, gap.until - BEGIN, gap.reason) for gap in record.gaps(period)]


def test_an_allocation_counts_from_the_first_answer_with_it_to_the_first_without_it():
    log = NodeLog()
    log.note()
    log.note(A, times=4)
    log.note(times=2)
    record = record_of(log.lines)
    (span,) = record.spans
    assert (span.started, span.ended, span.last_seen) == (BEGIN + 30, BEGIN + 150, BEGIN + 120)
    assert seconds_of(record) == {"a": (120, 0)}
    assert seconds_of(record, (BEGIN + 60, BEGIN + 100)) == {"a": (40, 0)}
    assert gaps_of(record) == []


def test_an_allocation_that_goes_on_counts_to_the_last_observation():
    log = NodeLog()
    log.note(A, times=5)
    record = record_of(log.lines)
    assert seconds_of(record) == {"a": (120, 0)}
    assert record.spans[0].ended is None


def test_a_gap_is_neither_allocated_nor_unallocated():
    log = NodeLog()
    log.note(A, times=2)
    log.note(GapReason.KUBELET, times=10)
    log.note(A)
    log.note(GapReason.DEVICES, times=2)
    log.note(B, times=2)
    record = record_of(log.lines)
    assert seconds_of(record) == {"a": (30, 330 + 90), "b": (30, 0)}
    assert gaps_of(record) == [(30, 360, "kubelet"), (360, 450, "devices")]


def test_time_that_no_line_is_about_is_a_gap():
    log = NodeLog()
    log.note(A, times=3)
    log.stop()
    assert gaps_of(record_of(log.lines), BEGIN - 100, BEGIN + 160) == [(-100, 0, NO_RECORD), (60, 160, NO_RECORD)]


def test_a_kill_costs_only_the_time_until_the_next_process():
    log = NodeLog()
    log.note(A, times=8)
    log.note(A, B, times=3)  # two minutes and more since the last checkpoint
    log.restart(after=600)
    log.note(A, B, times=2)
    record = record_of(log.stop().lines)
    assert gaps_of(record) == [(240, 930, "not_running")]
    assert seconds_of(record) == {"a": (270, 690), "b": (30, 690)}


def test_a_process_that_reads_nothing_back_goes_on_with_the_same_allocation():
    log = NodeLog()
    log.note(A, times=3)
    log.stop()
    log.at += 600
    log.new_chain("c2")
    log.note(A, times=3)
    record = record_of(log.stop().lines)
    assert len(record.spans) == 1
    assert gaps_of(record) == [(60, 690, NO_RECORD)]
    assert seconds_of(record) == {"a": (120, 630)}


def test_a_pod_of_the_same_name_that_was_seen_not_to_be_there_is_another_allocation():
    log = NodeLog()
    log.note(A, times=2)
    log.note()
    log.note(A, times=2)
    log.note()
    assert [(span.started - BEGIN, span.ended - BEGIN) for span in record_of(log.lines).spans] == [(0, 60), (90, 150)]


def test_two_exporters_of_one_node_count_once():
    one, two = NodeLog(chain="c1"), NodeLog(chain="c2")
    for log in (one, two):
        log.note(A, times=6)
        log.note(B, times=3)
    alone = record_of(one.lines)
    both = record_of(one.lines, two.lines)
    assert seconds_of(both) == seconds_of(alone) == {"a": (180, 0), "b": (60, 0)}
    assert gaps_of(both) == []


def test_what_one_exporter_did_not_observe_another_one_did():
    one, two = NodeLog(chain="c1"), NodeLog(chain="c2")
    one.note(A, times=2)
    one.note(GapReason.KUBELET, times=4)
    one.note(A, times=4)
    two.note(A, times=10)
    record = record_of(one.stop().lines, two.stop().lines)
    assert gaps_of(record) == []
    assert seconds_of(record) == {"a": (270, 0)}


def test_lines_that_are_missing_are_a_gap_and_what_they_said_is_not_guessed():
    log = NodeLog()
    log.note(A, times=6)
    log.note(B, times=2)
    log.note(times=8)
    lines = [line for line in log.lines if b'"event":"end"' not in line]
    record = record_of(lines)
    assert {reason for _, _, reason in gaps_of(record)} == {MISSING_LINES}
    assert seconds_of(record)["a"][0] <= 180
    assert seconds_of(record)["b"][0] <= 60


def test_the_end_alone_says_when_it_began_and_what_it_was():
    log = NodeLog()
    log.note(A, times=20)
    log.note()
    (ended,) = [line for line in log.lines if b'"event":"end"' in line]
    record = record_of([ended])
    assert seconds_of(record) == {"a": (600, 0)}
    assert isinstance(decoded(ended)[0], AllocationEnded)


def test_a_device_of_which_it_is_not_known_has_a_gap_of_its_own():
    log = NodeLog()
    log.note(A, times=2)
    log.note(given("x", "0"), times=2)
    log.note(A, times=2)
    record = record_of(log.stop().lines)
    gaps = record.gaps((BEGIN, record.whole[1]))
    assert len(gaps) == 8
    (gap,) = [gap for gap in gaps if gap.device == DeviceId("GPU-0")]
    assert (gap.since - BEGIN, gap.until - BEGIN, gap.reason) == (30, 120, "unmatched")
    assert seconds_of(record) == {"a": (60, 90)}


def test_a_process_that_goes_on_with_a_log_and_observes_nothing_has_observed_nothing():
    """Its first lines repeat what was allocated, and are no observation."""
    log = NodeLog()
    log.note()
    log.note(A)
    log.restart(after=70)
    log.at += 40
    log.new_chain("c2")
    record = record_of(log.lines)
    assert seconds_of(record) == {"a": (0, 0)}
    assert gaps_of(record, end=BEGIN + 140)[0][:2] == (30, 140)


def test_the_shares_of_a_shared_device_add_up_to_its_time():
    log = NodeLog()
    first, second = given("a", "GPU-0::0"), given("b", "GPU-0::1")
    log.note(first, times=4)
    log.note(first, second, times=8)
    log.note(second, times=4)
    log.note()
    seconds = seconds_of(record_of(log.lines))
    assert sum(known for known, _ in seconds.values()) == pytest.approx(16 * INTERVAL)
    assert seconds["a"][0] == pytest.approx(5 * INTERVAL + 7.5 / 2 * INTERVAL, abs=INTERVAL)


def test_of_one_gpu_only_its_allocations_and_the_gaps_that_concern_it_are_shown():
    one, two = NodeLog("node-1", "c1"), NodeLog("node-2", "c2")
    one.note(given("a", "GPU-0"), given("b", "GPU-1"), times=3)
    one.note(GapReason.KUBELET, times=2)
    one.note(given("b", "GPU-1"))
    two.note(times=2)
    usage = audit_usage(record_of(one.lines, two.lines), (BEGIN, one.at), "allocation", "GPU-0")
    assert [span.key.pod for span in usage.spans] == ["a"]
    assert {(gap.node, gap.reason) for gap in usage.gaps} == {("node-1", "kubelet"), ("node-1", NO_RECORD)}
    assert usage.nodes == 1


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["note", "note", "note", "gap", "restart", "new"]),
        st.sets(st.integers(0, 3), max_size=3),
        st.integers(1, 6),
    ),
    min_size=2,
    max_size=12,
)


def logged(number, steps):
    """The lines of a node whose exporters did this."""
    log = NodeLog(f"node-{number}", f"c{number}-0")
    for position, (kind, pods, times) in enumerate(steps, 1):
        if kind == "gap":
            log.note(GapReason.KUBELET, times=times)
        elif kind == "restart":
            log.restart(after=times * 40.0)
        elif kind == "new":
            log.at += times * 40.0
            log.new_chain(f"c{number}-{position}")
        else:
            log.note(*(given(f"pod-{pod % 2}", f"GPU-{pod}") for pod in pods), times=times)
    return log.lines


def cut(lines, shuffled):
    """Files that together have every line, some lines in several of them, in any order."""
    files = []
    while not files or set().union(*files) < set(lines):
        begin = shuffled.randrange(len(lines))
        files.append(lines[begin : begin + shuffled.randint(1, len(lines))])
    shuffled.shuffle(files)
    return files


@settings(max_examples=60, deadline=None)
@holds(st.lists(STEPS, min_size=1, max_size=3), st.integers(0, 10**6))
def test_the_order_and_the_overlap_of_files_change_nothing(nodes, seed):
    shuffled = random.Random(seed)
    logs = [logged(number, steps) for number, steps in enumerate(nodes)]
    files = [file for lines in logs for file in cut(lines, shuffled)]
    shuffled.shuffle(files)
    whole, parts = record_of(*logs), record_of(*files)
    assert parts == whole
    for by in ("namespace", "workload", "allocation"):
        assert audit_usage(parts, EVER, by) == audit_usage(whole, EVER, by)


@settings(max_examples=60, deadline=None)
@holds(STEPS)
def test_every_device_is_observed_or_in_a_gap_and_never_allocated_twice(steps):
    record = record_of(logged(0, steps))
    period = record.whole
    gaps = sum(gap.until - gap.since for gap in record.gaps(period))
    for gpu in {span.key.device for span in record.spans}:
        own = [span for span in record.spans if span.key.device == gpu]
        known = sum(span.gpu_seconds(period) for span in own)
        assert known <= period[1] - period[0] - gaps + 0.01
