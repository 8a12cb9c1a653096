"""Sets of times, as lists of intervals that do not touch, in their order. No I/O."""

from collections.abc import Iterable

Interval = tuple[float, float]
"""Begin and end, in Unix seconds."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The times that are in any of the intervals."""
    found: list[Interval] = []
    for begin, end in sorted(each for each in intervals if each[0] < each[1]):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def minus(intervals: Iterable[Interval], holes: Iterable[Interval]) -> list[Interval]:
    """The times that are in any of the intervals and in none of the holes."""
    found, without = [], union(holes)
    for begin, end in union(intervals):
        at = begin
        for hole, after in without:
            if after <= at:
                continue
            if hole >= end:
                break
            if hole > at:
                found.append((at, hole))
            at = after
        if at < end:
            found.append((at, end))
    return found


def clipped(intervals: Iterable[Interval], period: Interval) -> list[Interval]:
    """The part of the intervals that is in the period."""
    begin, end = period
    parts = ((max(a, begin), min(b, end)) for a, b in intervals)
    return [part for part in parts if part[0] < part[1]]


def seconds(intervals: Iterable[Interval]) -> float:
    """The length of all intervals together."""
    return sum(end - begin for begin, end in intervals)
