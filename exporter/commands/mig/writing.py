"""Writes which geometries fit, as text and as JSON."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from exporter.commands.mig.configuration import MigConfigEntry
from exporter.commands.mig.models import AS_OF, MigModel
from exporter.commands.mig.node import MigNode
from exporter.commands.mig.placement import (
    Geometry,
    combinations,
    geometry_text,
    largest_parts,
    placement,
    refusal,
    starts_text,
)
from exporter.commands.terminal import aligned, printable

_TABLE = f"Profiles and places are those of NVIDIA's MIG User Guide as of {AS_OF.isoformat()}."


@dataclass(frozen=True, slots=True)
class GeometryVerdict:
    """Whether a geometry fits a GPU."""

    name: str
    line: int
    """Of the file; 0 where it is of no file."""
    model: str
    """Empty where no model of the table is meant."""
    geometry: Geometry
    places: tuple[tuple[str, int], ...]
    """Profile and first memory slice of each GPU instance; empty where they do not fit."""
    refusal: str
    """Why it does not fit; empty where it does."""
    parts: tuple[Geometry, ...]
    """Where it does not fit: what of it does."""

    @classmethod
    def of(cls, entry: MigConfigEntry, model: MigModel | None) -> "GeometryVerdict":
        """Judge what an entry asks of a model; None where the table has no such GPU."""
        if model is None:
            problem = "no GPU of the table is meant, or none has all of these profiles"
            return cls(entry.name, entry.line, "", entry.geometry, (), problem, ())
        places = placement(model, entry.geometry) or []
        problem = refusal(model, entry.geometry)
        parts = largest_parts(model, entry.geometry) if problem else []
        found = tuple((profile.name, start) for profile, start in places)
        return cls(entry.name, entry.line, model.name, entry.geometry, found, problem, tuple(parts))


def as_text(found: Iterable[GeometryVerdict], node: MigNode | None) -> str:
    """Write one paragraph for each geometry."""
    lines = [*_node_text(node), *(line for each in found for line in _verdict_text(each)), _TABLE]
    return "".join(f"{printable(line)}\n" for line in lines)


def _verdict_text(each: GeometryVerdict) -> Iterable[str]:
    place = f" (line {each.line})" if each.line else ""
    on = f" on {each.model}" if each.model else ""
    asked = f"{each.name}{place}: {geometry_text(each.geometry)}"
    if not each.model:
        yield f"{asked} is not checked: {each.refusal}"
    elif not each.refusal:
        yield f"{asked} fits{on}"
        yield f"  {', '.join(f'{profile} at {start}' for profile, start in each.places)}"
    else:
        yield f"{asked} does not fit{on}"
        yield f"  {each.refusal}"
        yield from (f"  of it would fit: {geometry_text(part)}" for part in each.parts)


def _node_text(node: MigNode | None) -> Iterable[str]:
    if node is None:
        return
    asks = f"asks for {node.config}" if node.config else "asks for no configuration"
    yield f"node/{node.name}: {node.product}, {asks}{f', state {node.state}' if node.state else ''}"
    if node.uneven:
        yield "  Its GPUs do not all have the same MIG devices, so what it offers is not checked."


def combinations_text(models: Sequence[MigModel], node: MigNode | None) -> str:
    """Write what can be on each GPU: the profiles, and every geometry to which nothing could be added."""
    lines = [*_node_text(node)]
    for model in models:
        rows = [(p.name, str(p.compute), str(p.memory), starts_text(p)) for p in model.profiles]
        lines += [f"{model.name}: {model.compute} compute slices and {model.memory} memory slices"]
        lines += aligned([("PROFILE", "COMPUTE", "MEMORY", "MAY BEGIN AT"), *rows])
        lines += ["", "Full GPUs, to which nothing could be added:"]
        lines += [f"  {geometry_text(each)}" for each in combinations(model)]
    return "".join(f"{printable(line)}\n" for line in [*lines, _TABLE])


def as_json(found: Sequence[GeometryVerdict], models: Sequence[MigModel]) -> str:
    """Write the same for programs."""
    document = {
        "as_of": AS_OF.isoformat(),
        "verdicts": [_facts(each) for each in found],
        "combinations": {model.name: [dict(each) for each in combinations(model)] for model in models},
    }
    return json.dumps(document, indent=2) + "\n"


def _facts(each: GeometryVerdict) -> dict[str, object]:
    return {
        "name": each.name,
        "line": each.line,
        "model": each.model,
        "geometry": dict(each.geometry),
        "fits": not each.refusal if each.model else None,
        "placement": [{"profile": profile, "start": start} for profile, start in each.places],
        "problem": each.refusal,
        "parts_that_fit": [dict(part) for part in each.parts],
    }
