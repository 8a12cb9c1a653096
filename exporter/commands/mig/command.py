"""Runs `gpugauge mig check`: takes the geometries from a file, a node or the command line, and judges each."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from exporter.commands.explain.sources import FileSource, api_source
from exporter.commands.mig.configuration import MigConfigEntry, entries, geometry_of
from exporter.commands.mig.models import MODELS, MigModel, model_of, models_of_device
from exporter.commands.mig.node import MigNode, mig_node
from exporter.commands.mig.writing import GeometryVerdict, as_json, as_text, combinations_text
from exporter.config import Arguments, ConfigError

_CHECK = "check"


class _Asked(NamedTuple):
    """What the command line is about."""

    models: Sequence[MigModel]
    """Those that were named; empty where a configuration names them, or nothing does."""
    file: Path | None
    config: str
    """The configuration of the file that is meant; empty for all."""


def run(arguments: Arguments) -> tuple[str, bool]:
    """Return what to print, and whether every geometry fits. Raises ConfigError."""
    if arguments.operands[:1] != (_CHECK,) or len(arguments.operands) > 2:  # noqa: PLR2004 - check and a file
        raise ConfigError("mig takes the word check and at most one file; see gpugauge mig --help")
    file = Path(arguments.operands[1]) if len(arguments.operands) > 1 else None
    node = _node(arguments) if arguments.node else None
    asked = _Asked(_models(arguments, node), file, node.config if node else "")
    found = list(_verdicts(arguments, asked, node))
    if not found and not asked.models:
        raise ConfigError("mig check needs a file, --geometry, --model or --node; see gpugauge mig --help")
    fits = all(not each.refusal for each in found if each.model)
    if arguments.json:
        return as_json(found, asked.models), fits
    if found:
        return as_text(found, node), fits
    return combinations_text(asked.models, node), fits


def _models(arguments: Arguments, node: MigNode | None) -> Sequence[MigModel]:
    named = arguments.model or (node.product if node else "")
    if not named:
        return ()
    model = model_of(named)
    if model is None:
        origin = "--model" if arguments.model else f"node {arguments.node}"
        raise ConfigError(f"{origin}: {named!r} is none of {', '.join(each.name for each in MODELS)}")
    return (model,)


def _node(arguments: Arguments) -> MigNode:
    """The node, as the API server or files have it. Raises ConfigError."""
    if arguments.objects:
        given = FileSource(arguments.objects).node(arguments.node)
    else:
        with closing(api_source(arguments)) as source:
            given = source.node(arguments.node)
    if given is None:
        raise ConfigError(f"node {arguments.node} is not known, or may not be read")
    return mig_node(arguments.node, given)


def _verdicts(arguments: Arguments, asked: _Asked, node: MigNode | None) -> Iterable[GeometryVerdict]:
    if arguments.geometry:
        geometry = geometry_of(arguments.geometry, Path("--geometry"))
        yield from _judged(MigConfigEntry("--geometry", 0, (), enabled=True, geometry=geometry), asked.models)
    if node is not None and node.geometry:
        name = f"what node {node.name} offers of each GPU"
        yield from _judged(MigConfigEntry(name, 0, (), enabled=True, geometry=node.geometry), asked.models)
    if asked.file is None:
        return
    found = entries(asked.file)
    if asked.config and not any(each.name == asked.config for each in found):
        raise ConfigError(f"{asked.file}: has no configuration {asked.config!r}, which node {arguments.node} asks for")
    for entry in found:
        if asked.config in ("", entry.name):
            yield from _judged(entry, asked.models)


def _judged(entry: MigConfigEntry, models: Sequence[MigModel]) -> Iterable[GeometryVerdict]:
    """One verdict for each model that the entry can be about; without any, the models that have all its profiles."""
    filtered = [model for device in entry.filters for model in models_of_device(device)]
    chosen = [model for model in filtered if model in models] if models and entry.filters else models or filtered
    if not models and not entry.filters:
        chosen = [model for model in MODELS if all(model.profile(name) for name in entry.geometry)]
    if entry.geometry:
        if not chosen and not models:
            yield GeometryVerdict.of(entry, None)
        yield from (GeometryVerdict.of(entry, model) for model in dict.fromkeys(chosen))
