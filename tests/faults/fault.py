"""The row of a fault: what a running program shows while it has the fault, and how soon it recovers.

A fault test declares its row with `@fault(...)`, gets it as its argument `row`, and asserts with it: what
docs/faults.md says of the fault is what the test has checked. scripts/faults.py makes the document of the rows.
"""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

LIMIT_SECONDS = 60.0
"""How long a fault may take to show, on a busy machine too."""
BUSY_SECONDS = 30.0
"""What a recovery may take beyond its own limit, on a busy machine: processes start, collections take longer."""

Get = Callable[[str], tuple[int, str]]
"""Requests a path from a program. Returns status and body."""
Recovered = Callable[["Exposed"], bool]

_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_STATES = ("gpugauge_source_up", "gpugauge_device_up", "gpugauge_config_last_reload_successful")
"""Metrics whose values are part of what an exposition states."""
_INVENTORY = ("gpugauge_source_problem", "gpugauge_device_info", "gpugauge_allocation_info", "gpugauge_config_info")
"""Metrics of which only the series are."""


class Exposed:
    """A `/metrics` response, parsed in the simplest way."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = (_SAMPLE.match(line) for line in text.splitlines() if not line.startswith("#"))
        self.samples = [(m[1], dict(_LABEL.findall(m[2] or "")), float(m[3])) for m in found if m]

    def named(self, beginning: str) -> set[str]:
        """The names of metrics that begin in this way and have a sample."""
        return {name for name, _, _ in self.samples if name.startswith(beginning)}

    def value(self, name: str, **labels: str) -> float | None:
        """The value of the first sample with this name and these labels, if there is one."""
        return next((v for n, found, v in self.samples if n == name and labels.items() <= found.items()), None)

    def state(self) -> set[tuple[str, frozenset[tuple[str, str]], float]]:
        """What a recovery must restore: every DCGM-named series, devices, allocations, problems, and what is up."""
        return set(self._state())

    def _state(self) -> Iterator[tuple[str, frozenset[tuple[str, str]], float]]:
        for name, labels, value in self.samples:
            if name in _STATES:
                yield name, frozenset(labels.items()), value
            elif name in _INVENTORY or name.startswith("DCGM_"):
                yield name, frozenset(labels.items()), 0.0


@dataclass(frozen=True)
class Fault:
    """One row of docs/faults.md."""

    name: str
    """What has happened, for an operator."""
    shows: tuple[str, ...] = ()
    """Samples in `/metrics`, as `name{label="value"} value`; `> 0` in place of the value means any above it.

    A sample may have more labels than those.
    """
    absent: tuple[str, ...] = ()
    """Beginnings of names of metrics without any sample in `/metrics`."""
    unready: str | None = None
    """The body of `/readyz` with status 503; None means status 200."""
    ends: int | None = None
    """The exit code of the program, where the fault ends it: then nothing is served."""
    pause: float = 0.0
    """Recovery, once the cause is gone: seconds until the program tries again, at most; from its own constants."""
    collections: int = 1
    """Recovery: collections after that pause until everything is exposed."""
    recovery: str = ""
    """Recovery in words, where nothing is waited for."""

    def is_shown(self, exposed: Exposed) -> bool:
        """Whether `/metrics` is what the row says."""
        gone = not any(exposed.named(beginning) for beginning in self.absent)
        return gone and all(_shows(exposed, sample) for sample in self.shows)

    def wait_until_shown(self, get: Get, seconds: float = LIMIT_SECONDS) -> Exposed:
        """Wait until `/metrics` and then `/readyz` are what the row says."""
        ready = (200, "ok\n") if self.unready is None else (503, f"{self.unready}\n")
        end = time.monotonic() + seconds
        while not (self.is_shown(exposed := Exposed(get("/metrics")[1])) and get("/readyz") == ready):
            assert time.monotonic() < end, f"not shown: {self}\n{get('/readyz')}\n{exposed.text[-3000:]}"
            time.sleep(0.01)
        return exposed

    def wait_until_recovered(
        self, get: Get, recovered: Recovered, interval: float, busy: float = BUSY_SECONDS
    ) -> Exposed:
        """Wait until the program is ready and `recovered`, at most as long as the row says and `busy` seconds more.

        `interval` is the program's, in seconds.
        """
        end = time.monotonic() + self.pause + self.collections * interval + busy
        while not (recovered(exposed := Exposed(get("/metrics")[1])) and get("/readyz")[0] == 200):
            assert time.monotonic() < end, f"not recovered: {self}\n{get('/readyz')}\n{exposed.text[-3000:]}"
            time.sleep(0.01)
        return exposed


def as_before(before: Exposed) -> Recovered:
    """Whether an exposition states the same as the one before the fault."""
    state = before.state()
    return lambda exposed: exposed.state() == state


def fault(*rows: Fault, **row: Any) -> pytest.MarkDecorator:
    """Declare the row of a fault test, by the attributes of `Fault`, or several rows, with which it runs in turn."""
    declared = rows or (Fault(**row),)
    return pytest.mark.parametrize("row", declared, ids=[re.sub(r"\W+", "-", each.name) for each in declared])


def rows_of(test: object) -> tuple[Fault, ...]:
    """The rows that a test declares; none of a function that is no fault test."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    return tuple(row for mark in marks for row in mark.args[1] if isinstance(row, Fault))


def _shows(exposed: Exposed, sample: str) -> bool:
    name, labels, value, above = parsed(sample)
    values = [v for n, found, v in exposed.samples if n == name and labels.items() <= found.items()]
    return any(v > value if above else v == value for v in values)


def parsed(sample: str) -> tuple[str, dict[str, str], float, bool]:
    """The name, labels and value of a sample in a row, and whether any higher value is meant."""
    found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (> )?(\S+)", sample)
    assert found, sample
    return found[1], dict(_LABEL.findall(found[2] or "")), float(found[4]), bool(found[3])
