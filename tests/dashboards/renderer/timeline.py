"""State timeline: a line for each series, with a colored box for each time in which it had one state."""

from datetime import UTC, datetime
from html import escape

from tests.dashboards.renderer import colors, svg
from tests.dashboards.renderer.answers import Series, TimeRange
from tests.dashboards.renderer.field import Shown, settings_of, shown

NAMES = 0.34
"""Most of the width that the names of the series take."""
LARGEST_ROW = 34.0
BOTTOM = 22


def draw(panel: dict, series: tuple[Series, ...], times: TimeRange, width: float, height: float) -> str:
    """The body of the panel as HTML, of this size in pixels."""
    left = min(max(svg.width_of(each.name) for each in series) + 12, width * NAMES)
    row = min((height - BOTTOM) / len(series), LARGEST_ROW)
    found = []
    names = []
    for index, each in enumerate(series):
        names.append(_name(each.name, index * row, left, row))
        boxes = _states(each, settings_of(panel, each.name, each.ref), times)
        found += [_box(box, times, (left, width - left - 8), index * row, row) for box in boxes]
    bottom = len(series) * row
    found += [_time(times, share, left, width - left - 8, bottom) for share in (0, 0.5, 1)]
    drawing = svg.tag("svg", "".join(found), width=width, height=bottom + BOTTOM, class_="chart")
    return f'<div class="timeline" style="height:{height}px">{"".join(names)}{drawing}</div>'


def _name(name: str, top: float, width: float, height: float) -> str:
    style = f"top:{top}px;width:{width - 8}px;line-height:{height}px"
    return f'<div class="row-name clipped" style="{style}">{escape(name)}</div>'


def _states(series: Series, settings: dict, times: TimeRange) -> list[tuple[float, float, Shown]]:
    """From when to when the series had which state. A state ends where there is no value for longer than a gap."""
    gap = max(settings["custom"].get("insertNulls", 0) / 1000, 1.5 * times.step)
    found: list[tuple[float, float, Shown]] = []
    for at, value in series.points:
        state = shown(value, settings, times.end)
        if found and at - found[-1][1] <= gap:
            start, _, last = found[-1]
            found[-1] = (start, at, last)
            if last == state:
                continue
        found.append((at, min(at + times.step, times.end), state))
    return found


def _box(box: tuple[float, float, Shown], times: TimeRange, across: tuple[float, float], top: float, row: float) -> str:
    start, end, state = box
    left, width = across
    scale = width / (times.end - times.start)
    x, size = left + (start - times.start) * scale, max((end - start) * scale, 1)
    found = svg.tag("rect", x=x, y=top + 1, width=size, height=row - 2, fill=state.color)
    if svg.width_of(state.text) < size - 4:
        place = {"x": x + size / 2, "y": top + row / 2 + 4, "text_anchor": "middle", "fill": colors.on(state.color)}
        found += svg.text(state.text, **place)
    return found


def _time(times: TimeRange, share: float, left: float, width: float, top: float) -> str:
    at = datetime.fromtimestamp(times.start + share * (times.end - times.start), UTC).strftime("%H:%M")
    anchor = {0: "start", 0.5: "middle", 1: "end"}[share]
    return svg.text(at, x=left + share * width, y=top + 15, text_anchor=anchor)
