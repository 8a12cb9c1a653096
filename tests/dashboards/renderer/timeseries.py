"""Time series: lines or stacked areas on axes, with the legend below."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from tests.dashboards.renderer import svg
from tests.dashboards.renderer.answers import Series, TimeRange
from tests.dashboards.renderer.field import settings_of, shown
from tests.dashboards.renderer.units import written

TIME_TICKS = (60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
"""Distances of two labels of the time axis, in seconds."""
LEGEND_ROW = 22
BOTTOM = 20
CALCULATIONS = {
    "mean": ("Mean", lambda values: sum(values) / len(values)),
    "max": ("Max", max),
    "min": ("Min", min),
    "lastNotNull": ("Last", lambda values: values[-1]),
    "last": ("Last", lambda values: values[-1]),
    "sum": ("Total", sum),
}
"""Heading and computation of the columns of a legend."""


@dataclass(frozen=True)
class Line:
    """A series with its settings and color; with stacking, `points` are sums, and `base` what is below them."""

    series: Series
    settings: dict
    color: str
    points: tuple[tuple[float, float], ...]
    base: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Area:
    """Where the axes are, in pixels, and the values at their ends."""

    left: float
    width: float
    height: float
    low: float
    high: float
    times: TimeRange

    def at(self, time: float, value: float) -> tuple[float, float]:
        across = (time - self.times.start) / (self.times.end - self.times.start)
        up = (value - self.low) / ((self.high - self.low) or 1)
        return self.left + across * self.width, self.height - up * self.height + 6


def draw(panel: dict, series: tuple[Series, ...], times: TimeRange, width: float, height: float) -> str:
    """The body of the panel as HTML, of this size in pixels."""
    lines = _lines(panel, series, times)
    legend, legend_height = _legend(panel, lines, times, height)
    return _chart(panel, lines, times, width, height - legend_height) + legend


def _lines(panel: dict, series: tuple[Series, ...], times: TimeRange) -> list[Line]:
    found = []
    below: dict[float, float] = {}
    for index, each in enumerate(series):
        settings = settings_of(panel, each.name, each.ref)
        color = shown(each.last, settings, times.end, index).color
        if settings["custom"].get("stacking", {}).get("mode", "none") == "none":
            found.append(Line(each, settings, color, each.points))
            continue
        base = tuple((at, below.get(at, 0.0)) for at, _ in each.points)
        points = tuple((at, value + below.get(at, 0.0)) for at, value in each.points)
        below |= dict(points)
        found.append(Line(each, settings, color, points, base))
    return found


def _chart(panel: dict, lines: list[Line], times: TimeRange, width: float, height: float) -> str:
    settings = panel["fieldConfig"]["defaults"]
    values = [value for line in lines for _, value in line.points]
    low = settings.get("min", min([*values, 0]))
    high = settings.get("max", max([*values, 0]))
    whole = settings.get("decimals") == 0 and high - low > 1
    steps = max(2, int(height / 45))
    marks = svg.ticks(low, high, min(steps, max(int(high - low), 1)) if whole else steps)
    low, high = settings.get("min", marks[0]), settings.get("max", marks[-1])
    labels = [(mark, written(mark, settings.get("unit", "none"), _digits(marks), times.end)) for mark in marks]
    left = max(svg.width_of(label) for _, label in labels) + 10
    area = Area(left, width - left - 14, height - BOTTOM - 12, low, high, times)
    content = _value_axis(area, labels) + _time_axis(area) + "".join(_drawn(area, line) for line in lines)
    return svg.tag("svg", content, width=width, height=height, class_="chart")


def _digits(marks: list[float]) -> int | None:
    return 0 if all(float(mark).is_integer() for mark in marks) and marks[-1] < 1000 else None


def _value_axis(area: Area, labels: list[tuple[float, str]]) -> str:
    found = []
    for mark, label in labels:
        if area.low - 1e-9 <= mark <= area.high + 1e-9:
            x, y = area.at(area.times.start, mark)
            found.append(svg.tag("path", d=svg.path([(x, y), (x + area.width, y)]), class_="grid"))
            found.append(svg.text(label, x=x - 6, y=y + 4, text_anchor="end"))
    return "".join(found)


def _time_axis(area: Area) -> str:
    times = area.times
    span = times.end - times.start
    most = area.width / 70
    step = next((each for each in TIME_TICKS if span / each <= most), TIME_TICKS[-1])
    form = "%H:%M" if step >= 60 and span > 300 else "%H:%M:%S"
    step = step if span > 300 else span / 4
    found = []
    at = (times.start // step + 1) * step
    while at < times.end - 0.02 * span:
        x, _ = area.at(at, area.low)
        label = datetime.fromtimestamp(at, UTC).strftime(form if step < 86_400 else "%m-%d")
        found.append(svg.text(label, x=x, y=area.height + BOTTOM + 4, text_anchor="middle"))
        found.append(svg.tag("path", d=svg.path([(x, 6), (x, area.height + 6)]), class_="grid"))
        at += step
    return "".join(found)


def _drawn(area: Area, line: Line) -> str:
    custom = line.settings["custom"]
    gap = custom["insertNulls"] / 1000 if custom.get("insertNulls") else float("inf")
    dashes = "6 5" if custom.get("lineStyle", {}).get("fill") == "dash" else "none"
    base = dict(line.base)
    found = []
    for part in _parts(line.points, max(gap, 1.5 * area.times.step)):
        upper = [area.at(*point) for point in part]
        if custom.get("fillOpacity"):
            lower = [area.at(at, base.get(at, max(area.low, 0))) for at, _ in reversed(part)]
            opacity = custom["fillOpacity"] / 100
            found.append(svg.tag("path", d=svg.path([*upper, *lower]), fill=line.color, opacity=opacity))
        if len(part) == 1:
            found.append(svg.tag("circle", cx=upper[0][0], cy=upper[0][1], r=2.5, fill=line.color))
        stroke = {"stroke": line.color, "stroke_dasharray": dashes, "class_": "line"}
        found.append(svg.tag("path", d=svg.path(upper), **stroke))
    return "".join(found)


def _parts(points: Sequence[tuple[float, float]], gap: float) -> list[list[tuple[float, float]]]:
    """The points, divided where there is no value for longer than `gap` seconds."""
    parts: list[list[tuple[float, float]]] = []
    for point in points:
        if parts and point[0] - parts[-1][-1][0] <= gap:
            parts[-1].append(point)
        else:
            parts.append([point])
    return parts


def _legend(panel: dict, lines: list[Line], times: TimeRange, height: float) -> tuple[str, float]:
    """The legend and its height: as a table, a line for each series, and at most four tenths of the panel."""
    legend = panel["options"].get("legend", {})
    if not legend.get("showLegend", True) or legend.get("displayMode") == "hidden":
        return "", 0
    calculations = legend.get("calcs", [])
    lines = sorted(lines, key=_mean, reverse=True) if legend.get("sortDesc") else lines
    shown_height = min((len(lines) + 1) * LEGEND_ROW, max(2 * LEGEND_ROW, height * 0.4 // LEGEND_ROW * LEGEND_ROW))
    head = "".join(f"<th>{CALCULATIONS[each][0]}</th>" for each in calculations)
    rows = "".join(_legend_row(line, calculations, times) for line in lines)
    table = f"<table><tr><th></th>{head}</tr>{rows}</table>"
    return f'<div class="legend" style="height:{shown_height}px">{table}</div>', shown_height


def _mean(line: Line) -> float:
    values = [value for _, value in line.series.points]
    return sum(values) / len(values) if values else 0


def _legend_row(line: Line, calculations: list[str], times: TimeRange) -> str:
    values = [value for _, value in line.series.points]
    cells = "".join(
        f"<td>{escape(shown(float(CALCULATIONS[each][1](values)), line.settings, times.end).text)}</td>"
        for each in calculations
    )
    name = f'<td class="name"><i style="background:{line.color}"></i>{escape(line.series.name)}</td>'
    return f"<tr>{name}{cells}</tr>"
