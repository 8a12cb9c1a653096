"""The utilization of processes from the driver's samples: weighted with time, never added up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.nvml.entities.sm_samples import FULL_RING, SmSample, sampling_period, utilizations

SECOND = 1_000_000


def shares(samples, since=0, known=None):
    return utilizations(samples, since, sampling_period(samples, known))


def test_samples_are_weighted_with_their_periods():
    samples = [SmSample(1, SECOND, 100), SmSample(1, 2 * SECOND, 20), SmSample(1, 3 * SECOND, 20)]
    assert shares(samples) == {1: pytest.approx((100 + 20 + 20) / 3 / 100)}


def test_many_samples_of_one_value_give_that_value_and_not_their_sum():
    samples = [SmSample(1, n * SECOND // 4, 40) for n in range(1, 21)]
    assert shares(samples) == {1: pytest.approx(0.4)}


def test_a_process_without_a_sample_used_nothing_in_that_tick():
    found = shares([SmSample(1, SECOND, 80), SmSample(2, SECOND, 10), SmSample(2, 2 * SECOND, 10)])
    assert found == {1: pytest.approx(0.4), 2: pytest.approx(0.1)}


def test_time_without_any_sample_was_idle():
    samples = [SmSample(1, 8 * SECOND, 100), SmSample(1, 9 * SECOND, 100), SmSample(1, 10 * SECOND, 100)]
    assert shares(samples) == {1: pytest.approx(0.3)}


def test_where_each_process_has_one_sample_it_is_an_average_of_all_the_time():
    found = shares([SmSample(1, 3 * SECOND, 60), SmSample(2, 9 * SECOND + 77, 30), SmSample(3, 10 * SECOND, 5)])
    assert found == {1: 0.6, 2: 0.3, 3: 0.05}


def test_a_single_sample_is_of_its_period_where_that_is_known():
    only = [SmSample(1, 10 * SECOND, 60)]
    assert shares(only) == {1: pytest.approx(0.6)}
    assert shares(only, known=SECOND) == {1: pytest.approx(0.06)}


def test_what_a_full_ring_has_lost_is_not_taken_for_idle():
    samples = [SmSample(1, 20 * SECOND + n * SECOND // 4, 50) for n in range(FULL_RING)]
    assert shares(samples) == {1: pytest.approx(0.5)}


def test_samples_of_one_tick_may_be_some_microseconds_apart():
    found = shares([SmSample(1, SECOND, 60), SmSample(2, SECOND + 3, 30)], known=SECOND)
    assert found == {1: pytest.approx(0.6, abs=1e-5), 2: pytest.approx(0.3, abs=1e-5)}


def test_what_was_read_before_and_what_cannot_be_true_is_left_out():
    assert shares([SmSample(1, SECOND, 50), SmSample(2, 2 * SECOND, 101)], SECOND) == {}


SAMPLES = st.builds(SmSample, st.integers(1, 4), st.integers(1, 10 * SECOND), st.integers(0, 100))


@given(st.lists(SAMPLES, max_size=80), st.integers(0, SECOND))
def test_no_process_is_above_its_largest_sample(samples, since):
    for pid, share in shares(samples, since).items():
        own = [each.percent for each in samples if each.pid == pid and each.at > since]
        assert 0 <= share <= max(own) / 100 + 1e-9
