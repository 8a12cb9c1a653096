"""A day of churn, in which the process is killed between any two calls: every allocation is accounted for once."""

import random

import pytest

from exporter.node.audit.lines import AllocationEnded, LogBegun, ObservationGap
from tests.exporter.node.audit.checked import chained, content_of, each_once
from tests.exporter.node.audit.days import BEGIN, INTERVAL, churn, observed, of_event
from tests.exporter.node.audit.killed import Life

FEW = churn(1, gpus=2, pods=4, seconds=14 * INTERVAL)
TIMES = [BEGIN + number * INTERVAL for number in range(16)]


def replayed(path, day, times, lasts, **more):
    """Write the log of a day; `lasts` gives, per process, at which of its calls it is killed, -1 for never.

    After a kill the next process begins with the collection that follows.
    """
    life, kills = Life(path, times[0], next(lasts), **more), 0
    for at in times:
        if not life.note(observed(day.allocations(at), at)):
            kills += 1
            life = Life(path, at, next(lasts), **more)
    if not life.finish():
        kills += 1
    return kills


def calls_of(path, day, times, **more):
    life = Life(path, times[0], **more)
    for at in times:
        assert life.note(observed(day.allocations(at), at))
    assert life.finish()
    return life.operations.calls


def once(last):
    yield last
    while True:
        yield -1


@pytest.mark.parametrize("max_bytes", [5000, 1 << 20])
def test_a_kill_at_any_single_call_loses_and_doubles_nothing(tmp_path, max_bytes):
    calls = calls_of(tmp_path / "whole.jsonl", FEW, TIMES, max_bytes=max_bytes)
    assert calls > 20
    for last in range(1, calls + 1):
        path = tmp_path / f"{last}.jsonl"
        assert replayed(path, FEW, TIMES, once(last), max_bytes=max_bytes) == 1
        each_once(chained(content_of(path)), FEW.runs)


def at_random(seed):
    random_ = random.Random(seed)
    while True:
        yield random_.randint(12, 70)


@pytest.mark.slow
def test_a_day_of_two_thousand_pods_with_hundreds_of_kills_accounts_for_each_once(tmp_path):
    path, seconds = tmp_path / "audit.jsonl", 86_400
    day = churn(7, gpus=8, pods=2000, seconds=seconds, least=4 * INTERVAL)
    times = [BEGIN + number * INTERVAL for number in range(int(seconds / INTERVAL) + 3)]
    kills = replayed(path, day, times, at_random(7), max_bytes=200_000)
    assert kills > 100
    lines = chained(content_of(path))
    each_once(lines, day.runs)
    assert len(of_event(lines, LogBegun)) > kills
    gaps = [line for line in of_event(lines, ObservationGap) if line.reason == "not_running"]
    unobserved = sum((gap.until - gap.since).total_seconds() for gap in gaps)
    counted = sum(line.gpu_seconds for line in of_event(lines, AllocationEnded))
    true = sum(run.end - run.begin for run in day.runs)
    assert true - 8 * unobserved - 2000 * INTERVAL <= counted <= true + 2000 * INTERVAL


def test_without_a_kill_gpu_seconds_are_those_of_the_day(tmp_path):
    path = tmp_path / "audit.jsonl"
    day = churn(3, gpus=8, pods=160, seconds=200 * INTERVAL)
    assert replayed(path, day, [BEGIN + number * INTERVAL for number in range(203)], once(-1)) == 0
    lines = chained(content_of(path))
    each_once(lines, day.runs, late=INTERVAL)
    counted = sum(line.gpu_seconds for line in of_event(lines, AllocationEnded))
    assert counted == pytest.approx(sum(run.end - run.begin for run in day.runs), rel=0.02)
    assert of_event(lines, ObservationGap) == []
