"""A whole dashboard as one HTML page without scripts or files from elsewhere, in the layout of Grafana's grid."""

import math
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tests.dashboards.renderer import timeline, timeseries, values
from tests.dashboards.renderer.answers import Answer, Source
from tests.dashboards.renderer.field import shown

CAPTION = "drawn by the test renderer, not Grafana"
COLUMNS = 24
UNIT, GAP, MARGIN = 30, 8, 12
"""Height of a unit of the grid, the space between panels, and that around them, in pixels."""
HEADER, TITLE = 74, 32
"""Height of the head of the page, and of a panel's title."""
STYLE = Path(__file__).with_name("style.css")
DRAWINGS = {
    "stat": values.stat,
    "bargauge": values.bar_gauge,
    "table": values.table,
    "timeseries": timeseries.draw,
    "state-timeline": timeline.draw,
}


@dataclass(frozen=True)
class Page:
    """A dashboard as HTML, and its height in pixels."""

    html: str
    height: int


def draw(dashboard: dict, source: Source, width: int, *, opened: bool = False) -> Page:
    """Draw a dashboard with the results of its queries; `opened` shows the panels of collapsed rows too."""
    panels = list(_visible(dashboard["panels"], opened=opened))
    body = "".join(_placed(panel, source, width) for panel in panels)
    bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    height = HEADER + bottom * (UNIT + GAP) + 34
    style = f'<meta charset="utf-8"><style>{STYLE.read_text()}</style>'
    head = _head(dashboard, source)
    foot = f'<footer style="top:{height - 28}px">{CAPTION}</footer>'
    title = f"<title>{escape(dashboard['title'])}</title>"
    return Page(
        f'<!DOCTYPE html>{style}{title}<body style="width:{width}px;height:{height}px">{head}{body}{foot}', height
    )


def _visible(panels: list[dict], *, opened: bool):
    """The panels that are shown, with their places: an opened row moves what is below it down."""
    moved = 0
    for panel in panels:
        yield _lower(panel, moved)
        inner = panel.get("panels", []) if opened else []
        yield from (_lower(each, moved) for each in inner)
        top = panel["gridPos"]["y"] + 1
        moved += max((each["gridPos"]["y"] + each["gridPos"]["h"] for each in inner), default=top) - top


def _lower(panel: dict, by: int) -> dict:
    place = panel["gridPos"]
    return {**panel, "gridPos": {**place, "y": place["y"] + by}}


def _head(dashboard: dict, source: Source) -> str:
    variables = [each for each in dashboard["templating"]["list"] if each["type"] != "datasource"]
    chosen = "".join(_variable(each["label"], source.choices.get(each["name"], "All")) for each in variables)
    minutes = round((source.times.end - source.times.start) / 60)
    shown_time = _variable("Time", f"last {minutes} minutes")
    return f"<header><h1>{escape(dashboard['title'])}</h1><em>{CAPTION}</em><div>{chosen}{shown_time}</div></header>"


def _variable(label: str, value: str) -> str:
    return f'<span class="variable"><label>{escape(label)}</label>{escape(value)}</span>'


def _placed(panel: dict, source: Source, page_width: int) -> str:
    place = panel["gridPos"]
    column = (page_width - 2 * MARGIN + GAP) / COLUMNS
    left, top = MARGIN + place["x"] * column, HEADER + place["y"] * (UNIT + GAP)
    width, height = place["w"] * column - GAP, place["h"] * (UNIT + GAP) - GAP
    style = f"left:{left:.0f}px;top:{top}px;width:{width:.0f}px;height:{height}px"
    if panel["type"] == "row":
        inner = f" <small>({len(panel['panels'])} panels)</small>" if panel["collapsed"] else ""
        mark = "+" if panel["collapsed"] else "v"
        return f'<h2 style="{style}"><i>{mark}</i> {escape(panel["title"])}{inner}</h2>'
    state, body = _body(panel, source, math.floor(width) - 18, height - TITLE - 10)
    hint = '<i class="hint">i</i>' if panel.get("description") else ""
    head = f'<h3 class="fits">{escape(panel["title"])}{hint}</h3>'
    return f'<section class="{state}" data-title="{escape(panel["title"])}" style="{style}">{head}{body}</section>'


def _body(panel: dict, source: Source, width: int, height: int) -> tuple[str, str]:
    """The state of a panel (`data`, `empty` or `error`), and what is below its title."""
    answer: Answer = source.answer(panel)
    if answer.error:
        return "error", f'<p class="failed">{escape(answer.error)}</p>'
    series = tuple(each for each in answer.series if each.points)
    if not series:
        return "empty", _empty(panel, source, height)
    body = DRAWINGS[panel["type"]](panel, series, source.times, width, height)
    return "data", f'<div class="body">{body}</div>'


def _empty(panel: dict, source: Source, height: int) -> str:
    value = shown(None, panel["fieldConfig"]["defaults"], source.times.end)
    return f'<p class="nothing" style="line-height:{height}px">{escape(value.text)}</p>'
