"""Asks for every part of the time, again where that may help, and keeps answers in a file so that a run can go on."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from exporter.commands.prometheus.answer import PrometheusSample
from exporter.commands.prometheus.client import PrometheusClient, PrometheusError
from exporter.commands.prometheus.expression import cluster_pattern, filled
from exporter.commands.report import queries
from exporter.commands.report.period import STEP, Part
from exporter.config import ConfigError

_ATTEMPTS = 3
_PAUSE_SECONDS = 2.0

Answers = Mapping[str, Sequence[PrometheusSample]]
"""What was answered for a part, by the name of the query."""


@dataclass(frozen=True, slots=True)
class PartAnswers:
    """A part of the time with what was answered for it."""

    part: Part
    answers: Answers
    warnings: tuple[str, ...] = ()


def expressions(module: ModuleType = queries) -> dict[str, str]:
    """The queries by name."""
    return {name: text for name, text in vars(module).items() if name.isupper()}


class AnswerFile:
    """Answers that were received, one per line; without a path nothing is kept."""

    def __init__(self, path: Path | None, origin: str) -> None:
        """Read what the file has of the server `origin`; a line that was cut off is left out. Raises ConfigError."""
        self._path, self._origin = path, origin
        self._known: dict[str, dict[str, Any]] = {}
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--resume: {path} cannot be read: {error}") from error
        for line in lines:
            try:
                found = json.loads(line)
                self._known[found["key"]] = found
            except (ValueError, KeyError, TypeError):
                continue

    def key(self, at: int, expression: str) -> str:
        """What an answer is kept under."""
        return hashlib.sha256(f"{self._origin} {at} {expression}".encode()).hexdigest()

    def get(self, key: str) -> tuple[list[PrometheusSample], tuple[str, ...]] | None:
        """The samples and warnings of an answer; None where there is none."""
        found = self._known.get(key)
        if found is None:
            return None
        return [PrometheusSample(labels, value) for labels, value in found["samples"]], tuple(found["warnings"])

    def add(self, key: str, samples: Sequence[PrometheusSample], warnings: Sequence[str]) -> None:
        """Keep an answer. Raises ConfigError."""
        if self._path is None:
            return
        rows = [(each.labels, each.value) for each in samples]
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "samples": rows, "warnings": list(warnings)}) + "\n")
        except OSError as error:
            raise ConfigError(f"--resume: {self._path} cannot be written: {error}") from error


@dataclass(frozen=True, slots=True)
class Fetch:
    """How answers are obtained."""

    client: PrometheusClient
    cluster: str
    kept: AnswerFile
    advance: Callable[[], None] = lambda: None
    """Called after each answer."""
    sleep: Callable[[float], None] = time.sleep

    def all(self, wanted: Sequence[Part], asked: Mapping[str, str]) -> Iterator[PartAnswers]:
        """Ask every query for every part. Raises PrometheusError, after some attempts."""
        for part in wanted:
            warnings: dict[str, None] = {}
            answers = {}
            for name, text in asked.items():
                answers[name], more = self._one(part, text)
                warnings.update(dict.fromkeys(more))
                self.advance()
            yield PartAnswers(part, answers, tuple(warnings))

    def _one(self, part: Part, text: str) -> tuple[list[PrometheusSample], tuple[str, ...]]:
        seconds = part.end - part.start
        times = {"range": f"{seconds}s", "steps": f"{seconds - 1}s:{STEP}s"}
        expression = filled(text, cluster=cluster_pattern(self.cluster), **times)
        key = self.kept.key(part.end, expression)
        known = self.kept.get(key)
        if known is not None:
            return known
        answer = self._answered(expression, part.end)
        self.kept.add(key, answer[0], answer[1])
        return answer

    def _answered(self, expression: str, at: float) -> tuple[list[PrometheusSample], tuple[str, ...]]:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                found = self.client.query(expression, at)
            except PrometheusError as error:
                if not error.transient or attempt == _ATTEMPTS:
                    raise
                self.sleep(_PAUSE_SECONDS * attempt)
            else:
                return found.samples, found.warnings
        raise AssertionError("unreachable")  # the last attempt returns or raises
