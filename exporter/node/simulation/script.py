"""Scripts: how one value of a scenario changes over time. A script is a constant or one of a few shapes.

`value_at` returns the sample of a script at a time, in seconds since the scenario began. No I/O, no state: it depends
on the time alone.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import msgspec

from exporter.node.devices.fields.field import Field

Sentinel = Literal["blank", "not_found", "not_supported", "no_permission"]
"""The four kinds of blank value of DCGM (`dcgmvalue.h`): numbers and texts that stand for "no value"."""

_WATT_DIGITS = 3
"""Decimals of power: the driver gives milliwatts."""


class Steps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="steps"):
    """The value of the last `[time, value]` point that was reached; that of the first point before it."""

    points: tuple[tuple[float, int | float | str], ...]


class Ramp(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="ramp"):
    """`low` until `start`, then evenly to `high` in `seconds`, and `high` from then on."""

    low: float
    high: float
    seconds: float
    start: float = 0.0


class Sine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="sine"):
    """`mean` plus `amplitude` times the sine; `phase` is a fraction of the period, 0 to 1."""

    mean: float
    amplitude: float
    period: float
    phase: float = 0.0


class Square(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="square"):
    """`high` for the first `duty` (a fraction, 0 to 1) of each period, then `low`."""

    low: float
    high: float
    period: float
    duty: float = 0.5
    phase: float = 0.0


class CounterScript(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="counter"):
    """`start` plus `rate` per second."""

    rate: float
    start: float = 0.0


class Missing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="missing"):
    """A sentinel instead of a value."""

    sentinel: Sentinel


class Failed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="failed"):
    """A DCGM status code, such as -18, instead of a value."""

    status: int


class Frozen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="frozen"):
    """A constant whose timestamp stands still from `at` on."""

    value: int | float | str
    at: float = 0.0


DIGITS = 6
"""Decimals of the values of a shape, about as many as a library gives."""

ScriptShape = Steps | Ramp | Sine | Square | CounterScript | Missing | Failed | Frozen
Script = int | float | str | ScriptShape


@dataclass(frozen=True, slots=True)
class ScriptedSample:
    """The sample that a library has of one field of one entity; `stamp` is in seconds of the scenario."""

    value: int | float | str | None
    stamp: float
    sentinel: Sentinel | None = None
    status: int = 0


def blank(t: float) -> ScriptedSample:
    """Return a blank value."""
    return ScriptedSample(None, t, "blank")


def value_at(script: Script, t: float) -> ScriptedSample:
    """Return the sample of a script at time t."""
    match script:
        case Missing(sentinel):
            return ScriptedSample(None, t, sentinel=sentinel)
        case Failed(status):
            return ScriptedSample(None, t, status=status)
        case Frozen(value, at):
            return ScriptedSample(value, min(t, at))
        case Steps(points):
            return ScriptedSample(_step(points, t), t)
        case Ramp() | Sine() | Square() | CounterScript():
            return ScriptedSample(round(_number(script, t), DIGITS), t)
        case _:
            return ScriptedSample(script, t)


def _number(shape: Ramp | Sine | Square | CounterScript, t: float) -> float:
    match shape:
        case Ramp(low, high, seconds, start):
            return low + (high - low) * min(max((t - start) / seconds, 0.0), 1.0)
        case Sine(mean, amplitude, period, phase):
            return mean + amplitude * math.sin(2 * math.pi * (t / period + phase))
        case Square(low, high, period, duty, phase):
            return high if (t / period + phase) % 1.0 < duty else low
        case CounterScript(rate, start):
            return start + rate * t


def _step(points: tuple[tuple[float, int | float | str], ...], t: float) -> int | float | str:
    current = points[0][1]
    for since, value in points:
        if since > t:
            break
        current = value
    return current


def script_error(script: Script) -> str:
    """Return what is wrong with a script, as the end of an error message; empty when nothing is."""
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


def typed(field: Field, sample: ScriptedSample) -> ScriptedSample:
    """Return the sample with a value of the field's type: a new one only where the type differs."""
    value = sample.value
    if field.kind == "int" and isinstance(value, float):
        return ScriptedSample(round(value), sample.stamp)
    if field.kind == "float" and isinstance(value, int):
        return ScriptedSample(float(value), sample.stamp)
    if field.unit == "watts" and isinstance(value, float):
        return ScriptedSample(round(value, _WATT_DIGITS), sample.stamp)
    return sample
