"""Scenarios: what a node without a GPU plays. Reads and checks the JSON of docs/scenario.md.

`load` gives a `Scenario`, and `Scenario.at` the state of one moment.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import msgspec

from exporter.node.simulation.document import Board, Cells, Document, Fields, Lost, Mig, Xid
from exporter.node.simulation.script import Failed, Frozen, Missing, Script, Steps, fault_of
from exporter.node.simulation.state import State, field_of, state_at

DEFAULT = "whole"
BYTES = 16 * 2**20
"""A larger file is refused."""


class ScenarioError(ValueError):
    """A scenario cannot be played; the message is one sentence that names the file, the place and the value."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A checked scenario. Times are seconds from its beginning."""

    label: str
    document: Document

    def at(self, t: float) -> State:
        """What is there t seconds after the beginning; the same for the same t, whoever asks."""
        return state_at(self.document, t)

    def begins(self, now: float) -> float:
        """The Unix time of the beginning for a player that starts now."""
        return now if self.document.epoch is None else self.document.epoch


def builtin() -> tuple[str, ...]:
    """The names of the scenarios that come with the package."""
    names = (entry.name for entry in files("exporter.node.simulation").joinpath("scenarios").iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


def load(which: str | None = None) -> Scenario:
    """The built-in scenario of that name, or the file at that path; None means `whole`.

    Raises ScenarioError when there is no such file or it is not a scenario.
    """
    which = which or DEFAULT
    if which in builtin():
        text = files("exporter.node.simulation").joinpath("scenarios", f"{which}.json").read_bytes()
        return parse(text, f"{which}.json")
    try:
        with Path(which).open("rb") as file:
            text = file.read(BYTES + 1)
    except OSError as error:
        names = ", ".join(builtin())
        raise ScenarioError(f"{which}: cannot be read ({error.strerror}); built in are {names}") from error
    if len(text) > BYTES:
        raise ScenarioError(f"{which}: is larger than {BYTES} bytes")
    return parse(text, which)


def parse(text: bytes | str, label: str) -> Scenario:
    """The scenario in a JSON text; `label` names it in errors. Raises ScenarioError."""
    try:
        document = msgspec.json.decode(text, type=Document)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{label}: {error}") from error
    for fault in _faults(document):
        raise ScenarioError(f"{label}: {fault}")
    return Scenario(label, document)


def _faults(document: Document) -> Iterator[str]:
    yield from _value_faults(document)
    yield from _unique("$.devices", "uuid", [board.uuid for board in document.devices])
    yield from _unique("$.devices", "index", [board.index for board in document.devices])
    for number, board in enumerate(document.devices):
        yield from _board_faults(f"$.devices[{number}]", board)
    known = {board.uuid for board in document.devices}
    for number, event in enumerate(document.events):
        place = f"$.events[{number}]"
        match event:
            case Lost(device) | Mig(device) | Xid(device):
                yield from _stranger(f"{place}.device", device, known)
            case Cells():
                yield from _cells_faults(place, event, known)


def _stranger(place: str, address: str, known: set[str]) -> Iterator[str]:
    if address.split("/", maxsplit=1)[0] not in known:
        yield f"no device has the uuid {address!r} - at `{place}`"


def _cells_faults(place: str, event: Cells, known: set[str]) -> Iterator[str]:
    for address in event.devices:
        yield from _stranger(f"{place}.devices", address, known)
    for key in event.fields:
        if field_of(key) is None:
            yield f"no field is called {key!r} - at `{place}.fields`"
    if not (event.sentinel or event.status or event.stale):
        yield f"says neither sentinel nor status nor stale - at `{place}`"


def _value_faults(document: Document) -> Iterator[str]:
    for name, given in document.values.items():
        yield from _field_faults(f"$.values.{name}", given)
    for place, use, own in _users(document):
        for name in use:
            if name not in document.values:
                yield f"no value set is called {name!r} - at `{place}.use`"
        yield from _field_faults(f"{place}.fields", own)


def _users(document: Document) -> Iterator[tuple[str, tuple[str, ...], Fields]]:
    """Everything that names values: where it stands, the sets that it uses, its own."""
    owners = [(f"$.devices[{n}]", board.instances) for n, board in enumerate(document.devices)]
    owners += [(f"$.events[{n}]", e.instances) for n, e in enumerate(document.events) if isinstance(e, Mig)]
    for number, board in enumerate(document.devices):
        yield f"$.devices[{number}]", board.use, board.fields
    for place, instances in owners:
        for n, instance in enumerate(instances):
            yield f"{place}.instances[{n}]", instance.use, instance.fields
            for m, compute in enumerate(instance.compute):
                yield f"{place}.instances[{n}].compute[{m}]", compute.use, compute.fields


def _field_faults(place: str, given: Fields) -> Iterator[str]:
    for key, script in given.items():
        field = field_of(key)
        if field is None:
            yield f"no field is called {key!r} - at `{place}`"
        elif fault := fault_of(script):
            yield f"{key} {fault} - at `{place}`"
        elif any(isinstance(value, str) != (field.kind == "string") for value in _values(script)):
            kind = "text" if field.kind == "string" else "a number"
            yield f"{key} must be {kind} - at `{place}`"


def _values(script: Script) -> Sequence[int | float | str]:
    match script:
        case Steps(points):
            return [value for _, value in points]
        case Frozen(value):
            return [value]
        case Missing() | Failed():
            return []
        case str() | int() | float():
            return [script]
    return [0.0]


def _board_faults(place: str, board: Board) -> Iterator[str]:
    yield from _unique(f"{place}.instances", "gi", [instance.gi for instance in board.instances])
    if board.instances and not board.mig:
        yield f"has instances although mig is not true - at `{place}`"
    for number, instance in enumerate(board.instances):
        yield from _unique(f"{place}.instances[{number}].compute", "ci", [part.ci for part in instance.compute])


def _unique(place: str, key: str, values: Sequence[str | int]) -> Iterator[str]:
    for position, value in enumerate(values):
        if value in values[:position]:
            yield f"{key} {value!r} is there twice - at `{place}[{position}]`"
