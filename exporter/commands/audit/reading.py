"""Reads files of audit logs, each line with its place."""

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from exporter.config import ConfigError
from exporter.node.audit.chain import digest
from exporter.node.audit.lines import AnyLine, decode


class ReadLine(NamedTuple):
    """A line of a file; `line` is None where it is none of an audit log."""

    file: str
    number: int
    line: AnyLine | None
    hash: str
    """SHA-256 of its text."""
    torn: bool = False
    """Whether it is the last one and has no line break: it was being written."""

    @property
    def place(self) -> str:
        """File and number of the line."""
        return f"{self.file}:{self.number}"


def read_lines(names: Sequence[str]) -> list[ReadLine]:
    """Read every line of these files. Raises ConfigError."""
    return [line for name in names for line in _of_file(name)]


def _of_file(name: str) -> Iterator[ReadLine]:
    try:
        with gzip.open(name) if name.endswith(".gz") else Path(name).open("rb") as file:
            for number, content in enumerate(file, 1):
                text = content.removesuffix(b"\n")
                if text.strip():
                    yield ReadLine(name, number, decode(text), digest(text), text == content)
    except (OSError, EOFError) as error:  # gzip's own errors are of both kinds
        raise ConfigError(f"{name!r} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def distinct(lines: Sequence[ReadLine]) -> dict[str, list[AnyLine]]:
    """By chain, its lines in their order, each number once: files may overlap.

    Of two lines with the same number that differ, which is a finding of `--verify`, always the same one is taken.
    """
    chosen: dict[tuple[str, int], ReadLine] = {}
    for each in lines:
        if each.line is not None:
            key = each.line.chain, each.line.seq
            if key not in chosen or each.hash < chosen[key].hash:
                chosen[key] = each
    chains: dict[str, list[AnyLine]] = {}
    for (chain, _), each in sorted(chosen.items()):
        if each.line is not None:
            chains.setdefault(chain, []).append(each.line)
    return chains
