"""Reads a response of `/metrics`, from an address or a file. A line that cannot be read costs only itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import urllib3
from prometheus_client.parser import text_string_to_metric_families

from exporter import regular_file
from exporter.config import ConfigError
from exporter.regular_file import UnreadableFileError

MAX_BYTES = 64 << 20
"""The largest response or file."""
_SECONDS = 30.0
_OK = 200
_ACCEPT = {"accept": "text/plain;version=0.0.4", "accept-encoding": "gzip"}


class MetricSeries(NamedTuple):
    """One line of a response."""

    name: str
    labels: dict[str, str]
    """Those with an empty value, too."""
    value: float

    def written(self) -> dict[str, str]:
        """The labels that PromQL sees: an empty one is none."""
        return {name: value for name, value in self.labels.items() if value}


@dataclass(frozen=True)
class MetricsResponse:
    """What an exporter answered."""

    origin: str
    series: tuple[MetricSeries, ...]
    rejected: tuple[str, ...] = ()
    """A message for each line that is no sample."""

    @cached_property
    def by_name(self) -> dict[str, list[MetricSeries]]:
        """The series of each metric."""
        found: dict[str, list[MetricSeries]] = {}
        for each in self.series:
            found.setdefault(each.name, []).append(each)
        return found

    def values_of(self, name: str, **labels: str) -> list[float]:
        """The values of the series of a metric that have these labels."""
        return [each.value for each in self.by_name.get(name, ()) if labels.items() <= each.labels.items()]


def read(target: str) -> MetricsResponse:
    """Read an address (`http://` or `https://`) or a file. Raises ConfigError, also where no line is a sample."""
    body = _asked(target) if target.startswith(("http://", "https://")) else _of_file(target)
    found = parsed(body.decode("utf-8", "replace"), target)
    if not found.series:
        raise ConfigError(f"{target}: {found.rejected[0] if found.rejected else 'it has no series'}")
    return found


def parsed(text: str, origin: str) -> MetricsResponse:
    """Read the text format of Prometheus line by line."""
    series: list[MetricSeries] = []
    rejected: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            # Alone, so that a metric keeps its name: among lines of its family a counter would get `_total`.
            series += _samples(line)
        except (ValueError, IndexError, KeyError):
            rejected.append(f"line {number}: {line[:80]!r} is no sample")
    return MetricsResponse(origin, tuple(series), tuple(rejected))


def _samples(line: str) -> Iterator[MetricSeries]:
    for family in text_string_to_metric_families(line):
        for each in family.samples:
            yield MetricSeries(each.name, dict(each.labels), each.value)


def _of_file(name: str) -> bytes:
    try:
        return regular_file.read(Path(name), MAX_BYTES)
    except UnreadableFileError as error:
        raise ConfigError(f"{name}: cannot be read: {error}") from error


def _asked(url: str) -> bytes:
    try:
        with urllib3.PoolManager() as pool:
            response = pool.request("GET", url, headers=_ACCEPT, timeout=_SECONDS, retries=False, preload_content=False)
            try:
                body = response.read(MAX_BYTES + 1, decode_content=True)
            finally:
                response.close()  # a pool closes only connections that were given back to it
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ConfigError(f"{url}: cannot be read: {error}; a file with the response will do") from error
    if response.status != _OK:
        raise ConfigError(f"{url}: answered {response.status}; a file with the response will do")
    if len(body) > MAX_BYTES:
        raise ConfigError(f"{url}: answered more than {MAX_BYTES >> 20} MiB")
    return body
