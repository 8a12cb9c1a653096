"""The words of the house style: units, colours, states and columns, and the field settings that follow from them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dashboards.grafana_model import NEUTRAL, Json
from dashboards.layout import Row

STEP = "1m"
"""Least step of a range query: recorded series have a value every 30 s or minute."""
GAP_MILLISECONDS = 180_000
"""Three missing steps break a line instead of bridging the hole."""
NO_DATA = "no data"
NATURAL_ORDER = 7
"""How choices are sorted: GPU 10 after GPU 9."""
EDGE = 1e-9
"""Ranges of words include both ends."""
REFS = "ABCDEFGHIJ"
"""What Grafana calls the queries of a panel, in order."""


class Unit(StrEnum):
    """The unit ids of Grafana that we use; a misspelt id would be printed as text."""

    COUNT = "none"
    RATIO = "percentunit"
    CELSIUS = "celsius"
    WATT = "watt"
    HERTZ = "hertz"
    BYTES = "bytes"
    SECONDS = "s"
    AGE = "dateTimeFromNow"
    DURATION = "dtdurations"
    PER_SECOND = "cps"
    TEXT = "string"


class Colour(StrEnum):
    """Okabe and Ito's palette, by what a state means."""

    OK = "#009E73"
    WARNING = "#E69F00"
    CRITICAL = "#D55E00"
    UNKNOWN = NEUTRAL
    IDLE = "#56B4E9"
    BUSY = "#0072B2"
    STRANDED = "#CC79A7"


@dataclass(frozen=True, slots=True)
class Query:
    """An expression and, on graphs, the legend of its series; `dashed` draws a limit."""

    expr: str
    legend: str = ""
    colour: Colour | None = None
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """From this value on, the panel says this word in this colour; without a word, the number itself."""

    since: float
    word: str
    colour: Colour


@dataclass(frozen=True, slots=True)
class Column:
    """A table column: the field it shows, its heading, and how."""

    field: str
    title: str
    unit: Unit = Unit.TEXT
    bar: bool = False
    states: tuple[State, ...] = ()
    link: str = ""
    width: int | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard; `uid` is fixed for good, because links and alerts point at it."""

    uid: str
    title: str
    description: str
    tags: tuple[str, ...]
    variables: tuple[Any, ...]
    rows: tuple[Row, ...]
    since: str = "now-6h"
    refresh: str = "1m"


def decimals(unit: Unit) -> int | None:
    """Utilisation with one digit, things one can count and card temperatures with none."""
    if unit is Unit.RATIO:
        return 1
    return 0 if unit in {Unit.COUNT, Unit.CELSIUS, Unit.WATT} else None


def defaults(unit: Unit, link: str = "") -> Json:
    """Field settings that follow from the unit. A ratio always spans 0 to 1: a small one must look small."""
    bounds: Json = {"min": 0, "max": 1} if unit is Unit.RATIO else {}
    links = [{"title": "Open", "url": link}] if link else []
    return {**bounds, "decimals": decimals(unit), "links": links}


def steps(states: tuple[State, ...]) -> list[Json]:
    """Threshold steps. Below the first state, and where there is nothing, lies grey: blind is not well."""
    return [{"color": Colour.UNKNOWN.value}, *({"color": each.colour.value, "value": each.since} for each in states)]


def words(states: tuple[State, ...]) -> list[Json]:
    """The word of each state that has one, so that nothing is told by colour alone; the last is open upwards."""
    ends = [{"to": after.since - EDGE} for after in states[1:]] + [{}]
    return [
        {
            "type": "range",
            "options": {"from": state.since, **end, "result": _result(state, index)},
        }
        for index, (state, end) in enumerate(zip(states, ends, strict=False))
        if state.word
    ]


def _result(state: State, index: int) -> Json:
    return {"text": state.word, "color": state.colour.value, "index": index}


def lines(queries: tuple[Query, ...]) -> list[Json]:
    """Colour and stroke of the series of the queries that ask for them."""
    named = zip(REFS[: len(queries)], queries, strict=True)
    return [_line(query, ref) for ref, query in named if query.colour or query.dashed]


def _line(query: Query, ref: str) -> Json:
    properties: list[Json] = []
    if query.colour:
        properties.append({"id": "color", "value": {"mode": "fixed", "fixedColor": query.colour.value}})
    if query.dashed:
        properties.append({"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [10, 10]}})
    return {"matcher": {"id": "byFrameRefID", "options": ref}, "properties": properties}


def arrange(columns: tuple[Column, ...]) -> list[Any]:
    """One line for each set of labels, then only the named fields, in order and under their headings."""
    names = [column.field for column in columns]
    order = {name: position for position, name in enumerate(names)}
    titles = {column.field: column.title for column in columns}
    return [
        {"id": "merge", "options": {}},
        {"id": "filterFieldsByName", "options": {"include": {"names": names}}},
        {"id": "organize", "options": {"excludeByName": {}, "indexByName": order, "renameByName": titles}},
    ]


def cells(column: Column) -> Json:
    """Unit, width, bar, words and link of one column."""
    properties: list[Json] = [{"id": "unit", "value": column.unit.value}]
    if (digits := decimals(column.unit)) is not None:
        properties.append({"id": "decimals", "value": digits})
    if column.width:
        properties.append({"id": "custom.width", "value": column.width})
    if column.bar:
        properties += _bar(column.unit)
    if column.states:
        properties += _states(column.states)
    if column.link:
        properties.append({"id": "links", "value": [{"title": "Open", "url": column.link}]})
    return {"matcher": {"id": "byName", "options": column.title}, "properties": properties}


def _bar(unit: Unit) -> list[Json]:
    full: list[Json] = [{"id": "max", "value": 1}] if unit is Unit.RATIO else []
    cell = {"type": "gauge", "mode": "basic", "valueDisplayMode": "text"}
    colour = {"mode": "fixed", "fixedColor": Colour.IDLE.value}
    return [
        {"id": "min", "value": 0},
        *full,
        {"id": "custom.cellOptions", "value": cell},
        {"id": "color", "value": colour},
    ]


def _states(states: tuple[State, ...]) -> list[Json]:
    return [
        {"id": "mappings", "value": words(states)},
        {"id": "custom.cellOptions", "value": {"type": "color-text"}},
        {"id": "thresholds", "value": {"mode": "absolute", "steps": steps(states)}},
    ]
