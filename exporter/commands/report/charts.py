"""Draws bars as SVG: they print, and need neither a script nor a file from elsewhere."""

from collections.abc import Sequence
from typing import NamedTuple

from exporter.status_page.html import shown

WIDTH = 900
_ROW, _BAR, _LABEL = 26, 18, 300
COLORS = {
    "busy": "#0b5cad",
    "used": "#0b5cad",
    "idle": "#d55e00",
    "wasted": "#d55e00",
    "shared": "#56b4e9",
    "activity unknown": "#a7c7e7",
    "not observed": "#b8bdc4",
    "unallocated": "#e8c547",
    "stranded": "#8c6d1f",
    "unhealthy": "#7a1fa2",
    "unobserved": "#b8bdc4",
}
"""By state. Most people with color blindness tell them apart; each part has its name in words, too."""


class ChartBar(NamedTuple):
    """A bar of several parts, one behind the other."""

    label: str
    parts: Sequence[tuple[str, float]]
    """Names of COLORS with sizes, none below 0."""


def bars(title: str, found: Sequence[ChartBar], unit: str) -> str:
    """Draw bars below each other, on one scale, with a legend. Empty where there is nothing to draw."""
    longest = max((sum(size for _, size in bar.parts) for bar in found), default=0.0)
    if not longest:
        return ""
    names = list(dict.fromkeys(name for bar in found for name, size in bar.parts if size > 0))
    height = _ROW * (len(found) + 1) + 10
    drawn = [_bar(bar, number, longest, unit) for number, bar in enumerate(found)]
    name, legend = shown(title), _legend(names, _ROW * len(found) + 14)
    svg = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{name}">{"".join(drawn)}{legend}</svg>'
    return f'<figure><figcaption>{name}</figcaption><div class="wide">{svg}</div></figure>'


def _bar(bar: ChartBar, number: int, longest: float, unit: str) -> str:
    top, left = number * _ROW, float(_LABEL)
    scale = (WIDTH - _LABEL - 90) / longest
    label = bar.label if len(bar.label) <= 44 else f"{bar.label[:43]}…"  # noqa: PLR2004 - as many as fit
    text = f'<text x="{_LABEL - 8}" y="{top + 13}" text-anchor="end">{shown(label)}</text>'
    for name, size in bar.parts:
        width = size * scale
        tip = shown(f"{bar.label}: {name} {size:,.1f} {unit}")
        text += (
            f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR}" fill="{COLORS[name]}">'
            f"<title>{tip}</title></rect>"
        )
        left += width
    total = sum(size for _, size in bar.parts)
    return f'{text}<text x="{left + 6:.1f}" y="{top + 13}">{total:,.1f}</text>'


def _legend(names: Sequence[str], top: int) -> str:
    text, left = "", 0
    for name in names:
        text += f'<rect x="{left}" y="{top}" width="12" height="12" fill="{COLORS[name]}"/>'
        text += f'<text x="{left + 17}" y="{top + 11}">{shown(name)}</text>'
        left += 34 + 8 * len(name)
    return text
