"""Finds the texts of a file that name DCGM metrics: rules, dashboards, autoscalers, adapters, and anything else.

JSON and YAML are read as such, also where they are texts in a ConfigMap; of any other file each line is a text.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from exporter import regular_file
from exporter.config import ConfigError
from exporter.regular_file import UnreadableFileError

MAX_BYTES = 16 << 20
_DEPTH = 100
"""How deep a document may be nested."""
_NAMES_DCGM = re.compile(r"dcgm_", re.IGNORECASE)
_PROSE = frozenset({"description", "summary", "message", "title", "help", "text"})
"""Keys whose texts are for people."""
_LEGEND_LABEL = re.compile(r"{{\s*([a-zA-Z_]\w*)\s*}}")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Passage(NamedTuple):
    """One text that names DCGM metrics."""

    place: str
    """File and key, or file and line."""
    text: str
    legend: tuple[str, ...] = ()
    """Labels that the legend beside the expression shows."""


def passages(file: str) -> Iterator[Passage]:
    """The texts of a file. Raises ConfigError where it cannot be read."""
    try:
        text = regular_file.read(Path(file), MAX_BYTES).decode("utf-8", "replace")
    except UnreadableFileError as error:
        raise ConfigError(f"--uses: {file}: cannot be read: {error}") from error
    found = _documents(text)
    if found is None:
        for number, line in enumerate(text.split("\n"), 1):
            if _NAMES_DCGM.search(line):
                yield Passage(f"{file}:{number}", line)
        return
    for number, document in enumerate(found):
        yield from _walk(document, f"{file}#{number}" if len(found) > 1 else file, _DEPTH)


def _documents(text: str) -> list[Any] | None:
    """The documents of JSON or YAML; None where the text is neither a mapping nor a list."""
    try:
        found = [json.loads(text)]
    except (ValueError, RecursionError):
        if text.lstrip().startswith("{"):  # YAML would take a selector of PromQL for a mapping
            return None
        try:
            found = list(yaml.load_all(text, _LOADER))
        except (yaml.YAMLError, ValueError, RecursionError):
            return None
    return found if found and all(isinstance(each, dict | list | None) for each in found) else None


def _walk(node: Any, place: str, depth: int) -> Iterator[Passage]:
    if depth < 0:
        return
    if isinstance(node, list):
        for number, each in enumerate(node):
            yield from _walk(each, f"{place}[{number}]", depth - 1)
    elif isinstance(node, dict):
        legend = tuple(_LEGEND_LABEL.findall(str(node.get("legendFormat") or "")))
        for key, each in node.items():
            if not isinstance(each, str):
                yield from _walk(each, _joined(place, key), depth - 1)
            elif key not in _PROSE:
                yield from _of_text(each, _joined(place, key), legend, depth)
    elif isinstance(node, str):
        yield from _of_text(node, place, (), depth)


def _of_text(text: str, place: str, legend: tuple[str, ...], depth: int) -> Iterator[Passage]:
    if not _NAMES_DCGM.search(text):
        return
    inner = _documents(text) if "\n" in text or text.lstrip().startswith("{") else None
    if inner is None:
        yield Passage(place, text, legend)
        return
    for each in inner:
        yield from _walk(each, place, depth - 1)


def _joined(place: str, key: object) -> str:
    return f"{place}.{key}" if ": " in place else f"{place}: {key}"
