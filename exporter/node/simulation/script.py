"""How one value of a scenario follows time: a constant, or one of a few shapes.

Time is in seconds since the scenario began; what a script gives at a time depends on that time alone.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import msgspec

Sentinel = Literal["blank", "not_found", "not_supported", "no_permission"]
"""The four ways in which the library says that there is no value."""


class Steps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="steps"):
    """The value of the last `[time, value]` point that has come; before the first point, its value."""

    points: tuple[tuple[float, int | float | str], ...]


class Ramp(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="ramp"):
    """From `low` at `start` evenly to `high`, `seconds` later; held before and after."""

    low: float
    high: float
    seconds: float
    start: float = 0.0


class Sine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="sine"):
    """`mean` plus `amplitude` times the sine; `phase` is a part of the period, 0 to 1."""

    mean: float
    amplitude: float
    period: float
    phase: float = 0.0


class Square(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="square"):
    """`high` for the first `duty` part of each period, then `low`."""

    low: float
    high: float
    period: float
    duty: float = 0.5
    phase: float = 0.0


class Counter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="counter"):
    """`start` plus `rate` for every second."""

    rate: float
    start: float = 0.0


class Missing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="missing"):
    """A sentinel where a value should be."""

    sentinel: Sentinel


class Failed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="failed"):
    """A DCGM status code other than 0 for this one cell, such as -18."""

    status: int


class Frozen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="frozen"):
    """A value whose timestamp stops at `at`."""

    value: int | float | str
    at: float = 0.0


DIGITS = 6
"""Decimals of what a shape gives, about as many as a library shows."""

Shape = Steps | Ramp | Sine | Square | Counter | Missing | Failed | Frozen
Script = int | float | str | Shape


@dataclass(frozen=True, slots=True)
class ScriptCell:
    """What a library would hold for one field of one entity; `stamp` is in scenario seconds."""

    value: int | float | str | None
    stamp: float
    sentinel: Sentinel | None = None
    status: int = 0


def value_at(script: Script, t: float) -> ScriptCell:
    """The cell that the script gives at time t."""
    match script:
        case Missing(sentinel):
            return ScriptCell(None, t, sentinel=sentinel)
        case Failed(status):
            return ScriptCell(None, t, status=status)
        case Frozen(value, at):
            return ScriptCell(value, min(t, at))
        case Steps(points):
            return ScriptCell(_step(points, t), t)
        case Ramp() | Sine() | Square() | Counter():
            return ScriptCell(round(_number(script, t), DIGITS), t)
        case _:
            return ScriptCell(script, t)


def _number(shape: Ramp | Sine | Square | Counter, t: float) -> float:
    match shape:
        case Ramp(low, high, seconds, start):
            return low + (high - low) * min(max((t - start) / seconds, 0.0), 1.0)
        case Sine(mean, amplitude, period, phase):
            return mean + amplitude * math.sin(2 * math.pi * (t / period + phase))
        case Square(low, high, period, duty, phase):
            return high if (t / period + phase) % 1.0 < duty else low
        case Counter(rate, start):
            return start + rate * t


def _step(points: tuple[tuple[float, int | float | str], ...], t: float) -> int | float | str:
    current = points[0][1]
    for since, value in points:
        if since > t:
            break
        current = value
    return current


def fault_of(script: Script) -> str:
    """What keeps a script from being played, as the end of a sentence; empty when it is sound."""
    match script:
        case Steps(points) if not points:
            return "has no points"
        case Steps(points) if any(a[0] > b[0] for a, b in itertools.pairwise(points)):
            return "has points that are not in the order of time"
        case Ramp(seconds=length) if length <= 0:
            return f"has seconds {length:g}, which must be above 0"
        case Sine(period=length) | Square(period=length) if length <= 0:
            return f"has period {length:g}, which must be above 0"
    return ""
