"""When a replica leads and when it may write the lease, from what it reads: every transition, without I/O."""

from dataclasses import replace

import pytest

from exporter.cluster.leadership.election import CHECK_SECONDS, LEASE_SECONDS, RENEW_SECONDS, Election, LeaseTerm

OTHER = LeaseTerm("other", "t1", 3)
MINE = LeaseTerm("me", "t1", 4)
RELEASED = LeaseTerm("", "t1", 4)


def reads(*terms, every=CHECK_SECONDS, election=None):
    """The state after these terms were read in turn, at equal intervals."""
    found, now = election or Election("me"), 1000.0
    for term in terms:
        found, now = found.after_read(term, now), now + every
    return found


def may_write(election, *, ready=True):
    return election.wait(ready=ready) == 0.0


def test_a_replica_that_has_read_nothing_neither_leads_nor_writes():
    assert not Election("me").leads
    assert not may_write(Election("me"))


@pytest.mark.parametrize("term", [None, RELEASED])
def test_a_ready_replica_takes_a_lease_that_is_absent_or_released_at_once(term):
    assert may_write(reads(term))
    assert not reads(term).leads


@pytest.mark.parametrize("term", [None, RELEASED])
def test_a_replica_that_is_not_ready_lets_others_take_such_a_lease_first(term):
    assert not may_write(reads(term), ready=False)
    assert not may_write(reads(*[term] * 2, every=LEASE_SECONDS - 1), ready=False)
    assert may_write(reads(*[term] * 2, every=LEASE_SECONDS), ready=False)


def test_a_lease_is_taken_once_it_was_seen_unchanged_for_its_duration():
    assert not may_write(reads(OTHER, OTHER, every=LEASE_SECONDS - 0.1))
    assert reads(OTHER, OTHER, every=LEASE_SECONDS - 1).wait(ready=True) == pytest.approx(1.0)
    assert may_write(reads(OTHER, OTHER, every=LEASE_SECONDS))


def test_a_replica_that_is_not_ready_takes_an_abandoned_lease_later_than_one_that_is():
    assert not may_write(reads(OTHER, OTHER, every=LEASE_SECONDS), ready=False)
    assert may_write(reads(OTHER, OTHER, every=2 * LEASE_SECONDS), ready=False)


@pytest.mark.parametrize(
    "later",
    [LeaseTerm("other", "t2", 3), LeaseTerm("third", "t1", 3), LeaseTerm("other", "t1", 4)],
)
def test_any_renewal_begins_the_wait_anew(later):
    seen = reads(OTHER, OTHER, later, every=LEASE_SECONDS)
    assert seen.wait(ready=True) == LEASE_SECONDS


@pytest.mark.parametrize("renewed", ["1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z", "", "nonsense"])
def test_the_clock_of_the_leader_does_not_matter(renewed):
    term = replace(OTHER, renewed=renewed)
    assert not may_write(reads(term, term, every=LEASE_SECONDS - 1))
    assert may_write(reads(term, term, every=LEASE_SECONDS))


def test_a_clock_that_goes_back_with_each_renewal_still_renews():
    terms = [replace(OTHER, renewed=f"t{number}") for number in range(9, 0, -1)]
    assert not may_write(reads(*terms, every=RENEW_SECONDS))


def test_time_without_an_answer_does_not_count_because_the_leader_had_none_either():
    before = reads(OTHER, OTHER, every=10.0)  # unchanged for ten seconds, last read at 1010
    after = before.after_failure().after_read(OTHER, 1500.0)
    assert after.wait(ready=True) == pytest.approx(LEASE_SECONDS - 10.0)
    assert may_write(after.after_read(OTHER, 1505.0))


def test_failures_now_and_then_delay_a_take_over_and_do_not_prevent_it():
    election, now = Election("me").after_read(OTHER, 0.0), 0.0
    while not may_write(election) and now < 1000.0:
        now += 2 * CHECK_SECONDS
        election = election.after_read(OTHER, now - CHECK_SECONDS).after_failure().after_read(OTHER, now)
    assert LEASE_SECONDS < now < 3 * LEASE_SECONDS


def test_right_after_a_failure_a_standby_does_not_write():
    assert not may_write(reads(None).after_failure())


def test_what_was_written_makes_a_leader():
    assert reads(None, MINE).leads


def test_a_write_whose_answer_was_lost_is_found_in_the_lease():
    assert reads(None).after_failure().after_read(MINE, 1100.0).leads


def test_a_leader_stays_one_while_nothing_can_be_read_or_written():
    election = reads(MINE)
    for _ in range(1000):
        election = election.after_failure()
    assert election.leads
    assert may_write(election)


@pytest.mark.parametrize("term", [None, RELEASED])
def test_a_leader_whose_lease_was_deleted_or_cleared_stays_one_and_writes_it_again(term):
    assert reads(MINE, term).leads
    assert may_write(reads(MINE, term), ready=False)


def test_a_leader_that_reads_another_one_steps_down_and_waits_like_any_other():
    election = reads(MINE).after_failure().after_read(OTHER, 1060.0)
    assert not election.leads
    assert election.wait(ready=True) == LEASE_SECONDS


def test_another_process_of_the_same_pod_is_another_leader():
    assert not reads(LeaseTerm("pod_1", "t", 0), election=Election("pod_2")).leads


def test_a_take_over_is_sooner_than_30_seconds():
    """A leader dies right after a renewal; the standby reads it as late as it can, and its last wait is cut short."""
    assert RENEW_SECONDS < LEASE_SECONDS / 2
    assert CHECK_SECONDS + LEASE_SECONDS <= 20.0
