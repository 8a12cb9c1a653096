"""A pause doubles with every failure up to its limit, and a success makes it the first one again."""

from exporter.backoff import Backoff
from tests.clock import Clock


def test_an_attempt_is_due_before_the_first_failure():
    backoff = Backoff(1.0, 30.0, Clock())
    assert backoff.due
    assert backoff.remaining == 0.0


def test_the_pause_doubles_up_to_the_longest():
    backoff = Backoff(1.0, 30.0, Clock())
    assert [backoff.failed() for _ in range(7)] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_the_next_attempt_is_due_when_the_pause_is_over():
    clock = Clock()
    backoff = Backoff(5.0, 30.0, clock)
    backoff.failed()
    clock.now += 4.0
    assert (backoff.due, backoff.remaining) == (False, 1.0)
    clock.now += 1.0
    assert backoff.due


def test_a_success_makes_the_next_pause_the_first_one_again():
    clock = Clock()
    backoff = Backoff(5.0, 30.0, clock)
    for _ in range(3):
        backoff.failed()
    backoff.reset()
    assert backoff.remaining == 5.0
    assert backoff.failed() == 5.0
