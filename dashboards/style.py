"""Types that describe panels (queries, units, colors, states, columns), and the Grafana settings made from them.

No I/O, no state: each function returns a part of Grafana's dashboard model as plain data.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dashboards.grafana_model import NEUTRAL, Json
from dashboards.layout import PanelRow

STEP = "1m"
"""Smallest step of a range query: recorded series have a value every 30 s, or every minute."""
GAP_MILLISECONDS = 180_000
"""A line ends where three steps have no value, and is not drawn across the gap."""
NO_DATA = "no data"
NATURAL_ORDER = 7
"""Grafana's number for the order in which a variable's values are listed: GPU 10 after GPU 9."""
RANGE_GAP = 1e-9
"""Grafana's value ranges include both ends, so a range ends this much below the start of the next one."""
TABLE_ROWS = 100
"""A table of a fleet has this many rows, which a browser draws at once."""
SMALLEST_COLUMN = 60
"""Width in pixels below which a column does not shrink. With Grafana's own, 150, most tables would scroll sideways."""
REFS = "ABCDEFGHIJ"
"""Grafana's names for the queries of a panel, in order."""


class Unit(StrEnum):
    """The unit ids of Grafana that we use. Grafana shows an unknown id as text behind the number."""

    COUNT = "none"
    AMOUNT = "short"
    RATIO = "percentunit"
    CELSIUS = "celsius"
    WATT = "watt"
    BYTES = "bytes"
    SECONDS = "s"
    AGE = "dateTimeFromNow"
    DURATION = "dtdurations"
    PER_SECOND = "cps"
    HERTZ = "hertz"
    JOULE = "joule"
    WATT_HOURS = "watth"
    HOURS = "suffix:h"
    MONEY = "locale"
    BYTES_PER_SECOND = "binBps"
    TEXT = "string"


class Color(StrEnum):
    """The palette of Okabe and Ito, which color-blind readers can tell apart, by what a state means.

    UNKNOWN is the gray of what has no value, and of nothing else.
    """

    OK = "#009E73"
    WARNING = "#E69F00"
    CRITICAL = "#D55E00"
    UNKNOWN = NEUTRAL
    IDLE = "#56B4E9"
    BUSY = "#0072B2"
    UNSUPPORTED = "#CC79A7"
    SHARED = "#F0E442"


@dataclass(frozen=True, slots=True)
class Query:
    """An expression and, on graphs, the legend of its series, and how their lines are drawn."""

    expr: str
    legend: str = ""
    color: Color | None = None
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class ValueState:
    """From the value `since` on, a panel shows `word` in this color; without a word, the number."""

    since: float
    word: str
    color: Color


@dataclass(frozen=True, slots=True)
class Word:
    """What is shown for a label value, and in which color."""

    value: str
    text: str
    color: Color


@dataclass(frozen=True, slots=True)
class Column:
    """A table column: the field it shows, its heading, and how its values are shown."""

    field: str
    title: str
    unit: Unit = Unit.TEXT
    bar: bool = False
    states: tuple[ValueState, ...] = ()
    link: str = ""
    width: int | None = None
    hidden: bool = False
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard. `uid` never changes, because links contain it."""

    uid: str
    title: str
    description: str
    tags: tuple[str, ...]
    variables: tuple[Any, ...]
    rows: tuple[PanelRow, ...]
    since: str = "now-6h"
    refresh: str = "1m"


def decimals(unit: Unit) -> int | None:
    """Digits after the point: 1 for ratios, 0 for counts and temperatures. None leaves it to Grafana: three digits."""
    if unit is Unit.RATIO:
        return 1
    return 0 if unit in {Unit.COUNT, Unit.CELSIUS, Unit.HOURS} else None


def defaults(unit: Unit, link: str = "", states: tuple[ValueState, ...] = ()) -> Json:
    """Field settings that follow from the unit. A ratio always has the range 0 to 1, so a small one looks small."""
    bounds: Json = {"min": 0, "max": 1} if unit is Unit.RATIO and not states else {}
    links = [{"title": "Open", "url": link}] if link else []
    return {**bounds, "decimals": decimals(unit), "links": links}


def threshold_steps(states: tuple[ValueState, ...]) -> list[Json]:
    """Threshold steps of the states. Below the first, and without a value, the color is UNKNOWN, never OK."""
    return [{"color": Color.UNKNOWN.value}, *({"color": each.color.value, "value": each.since} for each in states)]


def value_mappings(states: tuple[ValueState, ...]) -> list[Json]:
    """Value mappings of the states that have a word, so that no state differs by color alone. The last has no end."""
    ends = [{"to": after.since - RANGE_GAP} for after in states[1:]] + [{}]
    return [
        {
            "type": "range",
            "options": {"from": state.since, **end, "result": _result(state, index)},
        }
        for index, (state, end) in enumerate(zip(states, ends, strict=False))
        if state.word
    ]


def _result(state: ValueState, index: int) -> Json:
    return {"text": state.word, "color": state.color.value, "index": index}


def line_overrides(queries: tuple[Query, ...]) -> list[Json]:
    """Overrides for the series of those queries that set a color or dashes."""
    named = zip(REFS[: len(queries)], queries, strict=True)
    return [_line_override(query, ref) for ref, query in named if query.color or query.dashed]


def _line_override(query: Query, ref: str) -> Json:
    properties: list[Json] = []
    if query.color:
        properties.append({"id": "color", "value": {"mode": "fixed", "fixedColor": query.color.value}})
    if query.dashed:
        properties.append({"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [10, 10]}})
    return {"matcher": {"id": "byFrameRefID", "options": ref}, "properties": properties}


def table_transformations(columns: tuple[Column, ...]) -> list[Any]:
    """Merge the queries to one row per label set, then keep the fields of the columns, in order, renamed.

    Grafana merges rows that agree in every field that all queries have. The name of the series is such a field.
    """
    names = [column.field for column in columns]
    order = {name: position for position, name in enumerate(names)}
    titles = {column.field: column.title for column in columns}
    return [
        {"id": "filterFieldsByName", "options": {"exclude": {"names": ["__name__"]}}},
        {"id": "merge", "options": {}},
        {"id": "filterFieldsByName", "options": {"include": {"names": names}}},
        {"id": "organize", "options": {"excludeByName": {}, "indexByName": order, "renameByName": titles}},
    ]


def column_override(column: Column) -> Json:
    """Override with the unit, width, bar, states and link of one column."""
    properties: list[Json] = [{"id": "unit", "value": column.unit.value}]
    if (digits := decimals(column.unit)) is not None:
        properties.append({"id": "decimals", "value": digits})
    if column.width:
        properties.append({"id": "custom.width", "value": column.width})
    if column.bar:
        properties += _bar(column.unit)
    if column.states:
        properties += _states(column.states)
    if column.words:
        properties += _words(column.words)
    if column.link:
        properties.append({"id": "links", "value": [{"title": "Open", "url": column.link}]})
    if column.hidden:
        # The first is the setting of tables before Grafana 12.2, the second that of later ones.
        hidden = {"viz": True, "legend": False, "tooltip": False}
        properties += [{"id": "custom.hidden", "value": True}, {"id": "custom.hideFrom", "value": hidden}]
    return {"matcher": {"id": "byName", "options": column.title}, "properties": properties}


def _bar(unit: Unit) -> list[Json]:
    full: list[Json] = [{"id": "max", "value": 1}] if unit is Unit.RATIO else []
    bar = {"type": "gauge", "mode": "basic", "valueDisplayMode": "text"}
    color = {"mode": "fixed", "fixedColor": Color.IDLE.value}
    return [
        {"id": "min", "value": 0},
        *full,
        {"id": "custom.cellOptions", "value": bar},
        {"id": "color", "value": color},
    ]


def _states(states: tuple[ValueState, ...]) -> list[Json]:
    return [
        {"id": "mappings", "value": value_mappings(states)},
        {"id": "custom.cellOptions", "value": {"type": "color-text"}},
        {"id": "thresholds", "value": {"mode": "absolute", "steps": threshold_steps(states)}},
    ]


def _words(words: tuple[Word, ...]) -> list[Json]:
    options = {
        word.value: {"text": word.text, "color": word.color.value, "index": index} for index, word in enumerate(words)
    }
    return [
        {"id": "mappings", "value": [{"type": "value", "options": options}]},
        {"id": "custom.cellOptions", "value": {"type": "color-text"}},
    ]
