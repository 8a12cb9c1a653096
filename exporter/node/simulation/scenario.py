"""Scenarios: reads and checks the JSON of docs/scenario.md.

`load` returns a `Scenario`, and `Scenario.at` the state of a simulated node at one time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import msgspec

from exporter.node.simulation.components import component_errors, component_specs
from exporter.node.simulation.document import (
    MAX_LINKS,
    CallFault,
    Fields,
    GpuLoss,
    GpuSpec,
    MigChange,
    SampleFault,
    ScenarioDocument,
    XidEvent,
)
from exporter.node.simulation.processes import process_errors
from exporter.node.simulation.script import Failed, Frozen, Missing, Script, Steps, script_error
from exporter.node.simulation.state import ScenarioState, field_of, state_at

DEFAULT = "whole"
BYTES = 16 * 2**20
"""The largest file that is read."""


class ScenarioError(ValueError):
    """A scenario cannot be used. The message is one line that names the file, the place in it and what is wrong."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A checked scenario. Times are seconds since it began."""

    name: str
    """The file, for error messages."""
    document: ScenarioDocument

    def at(self, t: float) -> ScenarioState:
        """Return the state at time t, which depends on t alone."""
        return state_at(self.document, t)

    def begins(self, now: float) -> float:
        """The Unix time at which the scenario begins: its epoch, or `now` where it has none."""
        return now if self.document.epoch is None else self.document.epoch


def builtin() -> tuple[str, ...]:
    """The names of the scenarios that are part of the package."""
    names = (entry.name for entry in files("exporter.node.simulation").joinpath("scenarios").iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


def load(which: str | None = None) -> Scenario:
    """Load the built-in scenario of that name, or the file at that path; None means `whole`.

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


def parse(text: bytes | str, name: str) -> Scenario:
    """Parse and check the JSON of a scenario; error messages begin with `name`. Raises ScenarioError."""
    try:
        document = msgspec.json.decode(text, type=ScenarioDocument)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{name}: {error}") from error
    for message in _errors(document):
        raise ScenarioError(f"{name}: {message}")
    return Scenario(name, document)


def _errors(document: ScenarioDocument) -> Iterator[str]:
    """Yield the errors that the types of the model do not exclude, as messages with a place in msgspec's notation."""
    yield from _value_errors(document)
    yield from _duplicates("$.devices", "uuid", [gpu.uuid for gpu in document.devices])
    yield from _duplicates("$.devices", "index", [gpu.index for gpu in document.devices])
    for number, gpu in enumerate(document.devices):
        yield from _gpu_errors(f"$.devices[{number}]", gpu)
    vgpus = [vgpu.number for gpu in document.devices for vgpu in gpu.vgpus]
    yield from (f"two vGPUs have the number {number}" for number in vgpus if vgpus.count(number) > 1)
    yield from component_errors(document)
    uuids = {gpu.uuid for gpu in document.devices}
    yield from process_errors(document.processes, uuids)
    known = uuids | {spec.address for spec in component_specs(document)}
    for number, event in enumerate(document.events):
        place = f"$.events[{number}]"
        match event:
            case GpuLoss(device) | MigChange(device) | XidEvent(device):
                yield from _unknown_gpu(f"{place}.device", device, uuids)
            case SampleFault():
                yield from _sample_fault_errors(place, event, known)
            case CallFault():
                yield from _call_fault_errors(place, event, known)


def _unknown_gpu(place: str, address: str, uuids: set[str]) -> Iterator[str]:
    if address.split("/", maxsplit=1)[0] not in uuids:
        yield f"no device has the uuid {address!r} - at `{place}`"


def _sample_fault_errors(place: str, event: SampleFault, uuids: set[str]) -> Iterator[str]:
    for address in event.devices:
        yield from _unknown_gpu(f"{place}.devices", address, uuids)
    for key in event.fields:
        if field_of(key) is None:
            yield f"no field is called {key!r} - at `{place}.fields`"
    if not (event.sentinel or event.status or event.stale):
        yield f"has neither sentinel nor status nor stale - at `{place}`"


def _call_fault_errors(place: str, event: CallFault, uuids: set[str]) -> Iterator[str]:
    if event.device:
        yield from _unknown_gpu(f"{place}.device", event.device, uuids)
    if event.field and field_of(event.field) is None:
        yield f"no field is called {event.field!r} - at `{place}.field`"


def _value_errors(document: ScenarioDocument) -> Iterator[str]:
    for name, value_set in document.values.items():
        yield from _field_errors(f"$.values.{name}", value_set)
    for place, use, own in _with_values(document):
        for name in use:
            if name not in document.values:
                yield f"no value set is called {name!r} - at `{place}.use`"
        yield from _field_errors(f"{place}.fields", own)


def _with_values(document: ScenarioDocument) -> Iterator[tuple[str, tuple[str, ...], Fields]]:
    """Yield everything that has values: its place, the names of the sets it uses, its own fields."""
    owners = [(f"$.devices[{n}]", gpu.instances) for n, gpu in enumerate(document.devices)]
    owners += [(f"$.events[{n}]", e.instances) for n, e in enumerate(document.events) if isinstance(e, MigChange)]
    for number, gpu in enumerate(document.devices):
        yield f"$.devices[{number}]", gpu.use, gpu.fields
        for n, link in enumerate(gpu.nvlinks):
            yield f"$.devices[{number}].nvlinks[{n}]", link.use, link.fields
        for n, vgpu in enumerate(gpu.vgpus):
            yield f"$.devices[{number}].vgpus[{n}]", vgpu.use, vgpu.fields
    for spec in component_specs(document):
        yield spec.place, spec.use, spec.fields
    for place, instances in owners:
        for n, instance in enumerate(instances):
            yield f"{place}.instances[{n}]", instance.use, instance.fields
            for m, compute in enumerate(instance.compute):
                yield f"{place}.instances[{n}].compute[{m}]", compute.use, compute.fields


def _field_errors(place: str, scripts: Fields) -> Iterator[str]:
    for key, script in scripts.items():
        field = field_of(key)
        if field is None:
            yield f"no field is called {key!r} - at `{place}`"
        elif error := script_error(script):
            yield f"{key} {error} - at `{place}`"
        elif any(isinstance(value, str) != (field.kind == "string") for value in _values(script)):
            kind = "text" if field.kind == "string" else "a number"
            yield f"{key} must be {kind} - at `{place}`"


def _values(script: Script) -> Sequence[int | float | str]:
    """Return values of the script, enough to find out whether its values are numbers or texts."""
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


def _gpu_errors(place: str, gpu: GpuSpec) -> Iterator[str]:
    yield from _duplicates(f"{place}.instances", "gi", [instance.gi for instance in gpu.instances])
    yield from _duplicates(f"{place}.nvlinks", "number", [link.number for link in gpu.nvlinks])
    for position, link in enumerate(gpu.nvlinks):
        if not 0 <= link.number < MAX_LINKS:
            yield f"number {link.number} is not one from 0 to {MAX_LINKS - 1} - at `{place}.nvlinks[{position}]`"
    if gpu.instances and not gpu.mig:
        yield f"has instances although mig is not true - at `{place}`"
    for number, instance in enumerate(gpu.instances):
        yield from _duplicates(f"{place}.instances[{number}].compute", "ci", [each.ci for each in instance.compute])


def _duplicates(place: str, key: str, values: Sequence[str | int]) -> Iterator[str]:
    for position, value in enumerate(values):
        if value in values[:position]:
            yield f"{key} {value!r} is there twice - at `{place}[{position}]`"
