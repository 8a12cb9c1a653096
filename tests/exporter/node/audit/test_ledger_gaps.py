"""What is a gap: of the node, of a device, and between two processes. None of them ends an allocation."""

import pytest

from exporter.node.audit.ledger import CHECKPOINT_ALLOCATIONS
from exporter.node.audit.lines import (
    DeviceId,
    LogBegun,
    ObservationGap,
    moment,
)
from exporter.node.audit.reasons import GapReason
from tests.exporter.node.audit.days import BEGIN, GPUS, INTERVAL, LONGEST, decoded, given, of_event
from tests.exporter.node.audit.ledger_log import Log


@pytest.mark.parametrize("reason", [GapReason.KUBELET, GapReason.DEVICES])
def test_what_is_not_known_ends_nothing_and_is_a_gap(reason):
    log = Log()
    log.note(given("a"))
    (begun,) = log.unknown(reason)
    assert (begun.reason, begun.since, begun.until) == (reason, moment(BEGIN + 30), None)
    assert log.unknown(reason) == []
    (gap,) = log.note(given("a"))
    assert (gap.since, gap.until, gap.device) == (moment(BEGIN + 30), moment(BEGIN + 120), None)
    (ended,) = log.note()
    assert (ended.duration_seconds, ended.observed_seconds) == (120, 30)


def test_an_allocation_that_is_not_there_after_a_gap_may_have_ended_at_any_time_in_it():
    log = Log()
    log.note(given("a"))
    log.unknown()
    gap, ended, started = log.note(given("b"))
    assert isinstance(gap, ObservationGap)
    assert (ended.last_seen, ended.time, ended.observed_seconds) == (moment(BEGIN + 30), moment(BEGIN + 90), 0)
    assert (started.not_before, started.time) == (moment(BEGIN + 30), moment(BEGIN + 90))


def test_a_gap_that_lasts_is_written_again_with_every_checkpoint():
    log = Log()
    log.note(given("a"))
    lines = [log.unknown() for _ in range(10)]
    assert [len(each) for each in lines] == [1, 0, 0, 0, 1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("after", "more", "reason"),
    [(LONGEST + 1, {}, "late"), (-10, {}, "clock"), (INTERVAL, {"lost": True}, "lost")],
)
def test_time_that_was_not_observed_is_a_gap(after, more, reason):
    log = Log()
    log.note(given("a"))
    (gap,) = log.note(given("a"), after=after, **more)
    assert gap.reason == reason
    assert (gap.until - gap.since).total_seconds() == abs(after)
    (ended,) = log.note()
    assert ended.observed_seconds == INTERVAL


def test_an_id_that_matches_nothing_ends_no_allocation_of_a_device_that_it_may_mean():
    log = Log()
    log.note(given("a"))
    gaps = log.note(given("b", "0"))
    assert {gap.device for gap in gaps} == {DeviceId(gpu.uuid) for gpu in GPUS}
    assert {(gap.reason, gap.until) for gap in gaps} == {("unmatched", None)}
    assert log.note(given("b", "0")) == []
    gaps = log.note(given("a"))
    assert {(gap.since, gap.until) for gap in gaps} == {(moment(BEGIN + 30), moment(BEGIN + 120))}
    (ended,) = log.note()
    assert (ended.observed_seconds, ended.duration_seconds) == (30, 120)


def test_a_gap_of_a_device_that_lasts_is_named_again_where_a_file_begins_and_not_between():
    log = Log()
    for _ in range(12):
        log.note(given("gpu-reservation-1", namespace="kai-resource-reservation"))
    (gap,) = of_event(decoded(log.content), ObservationGap)
    _, named = log.restart()
    assert (named.device, named.reason, named.since, named.again) == (gap.device, gap.reason, gap.since, True)
    after, closed = log.note(after=600)
    assert (after.reason, after.since) == ("not_running", moment(BEGIN + 270))  # when the last checkpoint was written
    assert (closed.device, closed.since, closed.until) == (gap.device, gap.since, moment(BEGIN + 960))


def test_a_reservation_pod_ends_what_was_allocated_and_who_has_the_gpu_is_not_known():
    log = Log()
    log.note(given("a"))
    ended, gap = log.note(given("gpu-reservation-1", namespace="kai-resource-reservation"))
    assert (ended.pod, gap.reason, gap.device) == ("a", "reserved", DeviceId("GPU-0"))


def test_a_process_that_follows_goes_on_with_what_is_open_and_the_time_between_is_a_gap():
    log = Log()
    for _ in range(6):
        log.note(given("a"), given("b", "GPU-1"))
    begun, first, second = log.restart()
    assert isinstance(begun, LogBegun)
    assert [(each.pod, each.started, each.usage.observed_seconds) for each in (first, second)] == [
        ("a", moment(BEGIN + 30), 120),
        ("b", moment(BEGIN + 30), 120),
    ]
    gap, ended = log.note(given("a"), after=600)
    assert (gap.reason, gap.since, gap.until) == ("not_running", moment(BEGIN + 150), moment(BEGIN + 780))
    assert (ended.pod, ended.last_seen, ended.observed_seconds) == ("b", moment(BEGIN + 150), 120)
    (ended,) = log.note()
    assert (ended.duration_seconds, ended.observed_seconds) == (780, 150)


def test_a_gap_that_began_while_no_exporter_ran_says_so_also_where_the_kubelet_is_away_then():
    log = Log()
    log.note(given("a"))
    log.restart()
    log.unknown()
    (gap,) = log.note(given("a"))
    assert (gap.reason, gap.since, gap.until) == ("not_running", moment(BEGIN + 30), moment(BEGIN + 90))


def test_a_gap_that_lasts_while_the_exporter_is_restarted_is_one_gap():
    log = Log()
    log.note(given("a"))
    log.unknown()
    log.restart()
    (gap,) = log.note(given("a"))
    assert (gap.reason, gap.since, gap.until) == ("kubelet", moment(BEGIN + 30), moment(BEGIN + 90))


def test_a_process_that_is_stopped_writes_all_sums():
    log = Log()
    allocations = [given(f"pod-{n:03}", f"GPU-0::{n}") for n in range(2 * CHECKPOINT_ALLOCATIONS + 3)]
    for _ in range(2):
        log.note(*allocations)
    stopped = decoded(log.ledger.stop())
    assert [(len(each.allocations), each.stopped) for each in stopped] == [(64, False), (64, False), (3, True)]
    assert len({usage.allocation for each in stopped for usage in each.allocations}) == len(allocations)
