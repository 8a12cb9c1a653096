"""A function that does not return costs its own GPU: the others are run, and no more threads than GPUs are made."""

import threading
import time

import pytest

from exporter.node.nvml.native.contained_calls import STALL_SECONDS, ContainedCalls
from tests.waiting import LIMIT_SECONDS, until

GPUS = range(8)
SHORT = 0.3
"""Seconds after which a GPU that hangs is given up in these tests."""


class Gpus:
    """Reads of GPUs that answer with their number, except those that hang until they are released."""

    def __init__(self):
        self.released = {gpu: threading.Event() for gpu in GPUS}
        self.hung, self.called = set(), []
        self.threads = set()

    def reads(self):
        return {gpu: lambda gpu=gpu: self.read(gpu) for gpu in GPUS}

    def read(self, gpu):
        self.called.append(gpu)
        self.threads.add(threading.current_thread())
        if gpu in self.hung:
            assert self.released[gpu].wait(LIMIT_SECONDS)
        return gpu

    def hang(self, *gpus):
        for gpu in gpus:
            self.released[gpu].clear()
        self.hung |= set(gpus)

    def release(self):
        self.hung.clear()
        for event in self.released.values():
            event.set()

    def alive(self):
        return sum(thread.is_alive() for thread in self.threads)


@pytest.fixture
def gpus():
    gpus = Gpus()
    yield gpus
    gpus.release()


@pytest.fixture
def calls(gpus):
    calls = ContainedCalls()
    yield calls
    gpus.release()
    calls.release()
    until(lambda: gpus.alive() == 0)


def all_but(*gpus):
    return {gpu: gpu for gpu in GPUS if gpu not in gpus}


def test_healthy_gpus_are_read_in_order_by_one_thread(calls, gpus):
    for _ in range(5):
        assert calls.run(gpus.reads(), LIMIT_SECONDS) == all_but()
    assert gpus.called[:8] == list(GPUS)
    assert len(gpus.called) == 40
    assert calls.unreturned() == frozenset()


@pytest.mark.parametrize("hung", [(0,), (7,), (2, 5), tuple(range(7))])
def test_gpus_that_hang_cost_no_other_gpu_in_any_collection(calls, gpus, hung):
    gpus.hang(*hung)
    for _ in range(4):
        assert calls.run(gpus.reads(), SHORT) == all_but(*hung)
        assert calls.unreturned() == set(hung)
        assert gpus.alive() <= len(GPUS) + 1
    assert [gpus.called.count(gpu) for gpu in hung] == [1] * len(hung), "a GPU has one call at a time"


def test_while_a_gpu_hangs_nothing_waits_for_it(calls, gpus):
    gpus.hang(3)
    calls.run(gpus.reads(), SHORT)
    began = time.monotonic()
    assert calls.run(gpus.reads(), 10 * LIMIT_SECONDS) == all_but(3)
    assert time.monotonic() - began < LIMIT_SECONDS


def test_a_gpu_whose_call_returned_is_read_again_and_its_threads_end(calls, gpus):
    gpus.hang(0, 1, 2)
    calls.run(gpus.reads(), SHORT)
    gpus.release()
    until(lambda: not calls.unreturned())
    until(lambda: calls.run(gpus.reads(), LIMIT_SECONDS) == all_but())
    assert calls.run(gpus.reads(), LIMIT_SECONDS) == all_but()
    until(lambda: gpus.alive() == 1)


def test_a_gpu_that_is_too_slow_every_time_is_waited_for_once(calls, gpus):
    seconds = 1.5
    gpus.hang(4)
    calls.run(gpus.reads(), seconds)
    for _ in range(2):
        gpus.release()
        until(lambda: not calls.unreturned())
        gpus.hang(4)
        began = time.monotonic()
        assert calls.run(gpus.reads(), seconds) == all_but(4)
        assert time.monotonic() - began < seconds
        time.sleep(seconds)  # so that this call, too, takes longer than it may


def test_a_gpu_that_was_given_up_once_and_is_a_little_slow_is_waited_for_again(calls, gpus):
    gpus.hang(4)
    calls.run(gpus.reads(), SHORT)
    gpus.release()
    until(lambda: not calls.unreturned())
    slow = gpus.reads() | {4: lambda: time.sleep(2 * STALL_SECONDS) or 4}
    until(lambda: calls.run(slow, LIMIT_SECONDS) == all_but())


def test_what_hangs_in_every_gpu_is_waited_for_so_that_the_parent_process_ends_this_one(calls, gpus):
    gpus.hang(*GPUS)
    threading.Timer(4 * SHORT, gpus.release).start()
    began = time.monotonic()
    assert calls.run(gpus.reads(), SHORT) == all_but(), "none is given up when all return at once"
    assert time.monotonic() - began >= 4 * SHORT - 0.01


def test_an_exception_is_raised_in_the_reading_thread(calls, gpus):
    def fail():
        raise ValueError("the library as a whole fails")

    with pytest.raises(ValueError, match="as a whole"):
        calls.run(gpus.reads() | {3: fail}, LIMIT_SECONDS)
    assert calls.run(gpus.reads(), LIMIT_SECONDS) == all_but()


def test_released_calls_keep_only_the_threads_that_hang(calls, gpus):
    gpus.hang(5)
    calls.run(gpus.reads(), SHORT)
    calls.release()
    until(lambda: gpus.alive() == 1)
    assert calls.run(gpus.reads(), SHORT) == all_but(5)


def test_every_thread_is_a_daemon(calls, gpus):
    calls.run(gpus.reads(), LIMIT_SECONDS)
    assert {thread.daemon for thread in gpus.threads} == {True}
