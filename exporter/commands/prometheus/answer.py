"""Decodes what Prometheus answers to a query. No I/O, no state."""

import math
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class PrometheusSample:
    """One series of an answer at one time."""

    labels: dict[str, str]
    value: float

    def __getitem__(self, label: str) -> str:
        """The value of a label; empty where the series does not have it, which is the same to Prometheus."""
        return self.labels.get(label, "")


@dataclass(frozen=True, slots=True)
class PrometheusSeries:
    """One series of an answer over a range of time."""

    labels: dict[str, str]
    points: list[tuple[float, float]]
    """(Unix time in seconds, value)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a query. Values that are no numbers (NaN, infinite) are left out."""

    samples: list[PrometheusSample]
    series: list[PrometheusSeries]
    warnings: tuple[str, ...] = ()
    """What the server says is missing or doubtful, such as stores that did not answer."""


class _SeriesOnWire(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str] | None = None
    values: list[tuple[float, str]] = []


class _DataOnWire(msgspec.Struct):
    resultType: str  # noqa: N815 - as the API spells it
    result: msgspec.Raw


class _BodyOnWire(msgspec.Struct):
    status: str = ""
    data: _DataOnWire | None = None
    error: str = ""
    warnings: list[str] = []


class AnswerError(Exception):
    """What was answered is not the answer to a query. The text says what is wrong."""


_BODY = msgspec.json.Decoder(_BodyOnWire)
_RESULT = msgspec.json.Decoder(list[_SeriesOnWire])


def decoded(body: bytes) -> Answer:
    """Decode an answer. Raises AnswerError."""
    try:
        found = _BODY.decode(body)
        if found.data is None or found.status != "success":
            raise AnswerError(found.error or "it has no data")
        if found.data.resultType not in ("vector", "matrix"):
            raise AnswerError(f"it is a {found.data.resultType}, not series")
        rows = _RESULT.decode(found.data.result)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AnswerError(f"it is not an answer of Prometheus: {error}") from error
    return Answer(
        [PrometheusSample(row.metric, value) for row in rows for value in _numbers([row.value] if row.value else [])],
        [PrometheusSeries(row.metric, _points(row.values)) for row in rows if row.values],
        tuple(found.warnings),
    )


def error_text(body: bytes) -> str:
    """What an answer with an error says; empty where it does not say it as the API does."""
    try:
        return _BODY.decode(body).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _numbers(found: list[tuple[float, str]]) -> list[float]:
    return [number for _, number in _points(found)]


def _points(found: list[tuple[float, str]]) -> list[tuple[float, float]]:
    try:
        return [(at, number) for at, text in found if math.isfinite(number := float(text))]
    except ValueError as error:
        raise AnswerError(f"it has a value that is no number: {error}") from error
