"""Stat, bar gauge and table panels, as HTML."""

from html import escape

from tests.dashboards.renderer import colors
from tests.dashboards.renderer.answers import Series, TimeRange
from tests.dashboards.renderer.field import settings_of, shown
from tests.dashboards.renderer.tables import rows_of

SMALLEST_COLUMN = 150
"""Width in pixels that Grafana gives at least to a column without a width, unless the panel says otherwise."""
LARGEST_FONT = 44


def stat(panel: dict, series: tuple[Series, ...], times: TimeRange, width: float, height: float) -> str:
    """The newest value of each series, as large as fits."""
    each_width = width / len(series)
    parts = []
    for index, each in enumerate(series):
        settings = settings_of(panel, each.name, each.ref)
        value = shown(each.last, settings, times.end, index)
        size = min(height * 0.55, each_width / max(len(value.text), 1) / 0.66, LARGEST_FONT)
        filled = panel["options"]["colorMode"] == "background"
        style = f"width:{each_width}px;height:{height}px;font-size:{size:.0f}px;"
        style += f"background:{value.color};color:{colors.on(value.color)}" if filled else f"color:{value.color}"
        name = f'<div class="stat-name">{escape(each.name)}</div>' if len(series) > 1 else ""
        parts.append(f'<div class="stat" style="{style}">{name}<b class="fits">{escape(value.text)}</b></div>')
    return f'<div class="stats">{"".join(parts)}</div>'


def bar_gauge(panel: dict, series: tuple[Series, ...], times: TimeRange, width: float, height: float) -> str:
    """A bar for the newest value of each series."""
    rows = []
    largest = max([each.last or 0 for each in series] or [1])
    for index, each in enumerate(series):
        settings = settings_of(panel, each.name, each.ref)
        value = shown(each.last, settings, times.end, index)
        low, high = settings.get("min", 0), settings.get("max", largest) or 1
        share = min(max(((each.last or 0) - low) / ((high - low) or 1), 0), 1) * 100
        bar = f'<div class="bar"><i style="width:{share:.1f}%;background:{value.color}"></i></div>'
        rows.append(f'<tr><td class="clipped">{escape(each.name)}</td><td>{bar}</td><td>{escape(value.text)}</td></tr>')
    return f'<div class="bars" style="height:{height}px"><table>{"".join(rows)}</table></div>'


def table(panel: dict, series: tuple[Series, ...], times: TimeRange, width: float, height: float) -> str:
    """Rows with the cells of each column."""
    headings, rows = rows_of(panel, series)
    settings = {name: settings_of(panel, name) for name in headings}
    headings = [name for name in headings if not settings[name]["custom"].get("hidden")]
    smallest = panel["fieldConfig"]["defaults"].get("custom", {}).get("minWidth", SMALLEST_COLUMN)
    widths = _widths([settings[name]["custom"].get("width") for name in headings], width, smallest)
    columns = "".join(f'<col style="width:{each}px">' for each in widths)
    head = "".join(_heading(name, [row.get(name) for row in rows]) for name in headings)
    body = "".join(
        "<tr>" + "".join(_cell(row.get(name), settings[name], times.end) for name in headings) + "</tr>" for row in rows
    )
    content = f'<table style="width:{sum(widths)}px">{columns}<thead><tr>{head}</tr></thead>{body}</table>'
    return f'<div class="table wide" style="height:{height}px">{content}</div>'


def _heading(name: str, column: list) -> str:
    number = " number" if any(isinstance(value, float) for value in column) else ""
    return f'<th class="fits{number}">{escape(name)}</th>'


def _widths(given: list[float | None], width: float, smallest: float) -> list[float]:
    """Columns without a width share what the others leave, and have at least `smallest`."""
    free = sum(each is None for each in given)
    rest = (width - sum(each or 0 for each in given)) / (free or 1)
    return [each or max(rest, smallest) for each in given]


def _cell(value, settings: dict, now: float) -> str:
    cell = settings["custom"].get("cellOptions", {"type": "auto"})
    empty = value is None and settings.get("noValue") == "no data"
    text = "" if empty else shown(value, settings, now).text
    color = shown(value, settings, now).color
    number = "" if value is None or isinstance(value, str) else " number"
    linked = " linked" if settings.get("links") else ""
    match cell["type"]:
        case "gauge" if isinstance(value, float):
            return f"<td>{_gauge(value, settings, color, text)}</td>"
        case "color-text":
            return f'<td class="clipped{number}{linked}" style="color:{color}"><b>{escape(text)}</b></td>'
        case "color-background":
            style = f"background:{color};color:{colors.on(color)}"
            return f'<td class="clipped{number}{linked}" style="{style}">{escape(text)}</td>'
    return f'<td class="clipped{number}{linked}">{escape(text)}</td>'


def _gauge(value: float, settings: dict, color: str, text: str) -> str:
    share = min(max(value / (settings.get("max") or 1), 0), 1) * 100
    bar = f'<div class="bar"><i style="width:{share:.1f}%;background:{color}"></i></div>'
    return f'<div class="gauge">{bar}<span>{escape(text)}</span></div>'
