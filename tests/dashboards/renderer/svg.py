"""SVG and HTML as text: elements with escaped contents, and the scale of an axis."""

import math
from html import escape

CHARACTER = 7.0
"""Width of a character of the small font, in pixels, on average."""


def tag(name: str, content: str = "", **attributes) -> str:
    """An element; `content` is written as it is. An attribute `class_` is `class`, and `a_b` is `a-b`."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(v))}"' for key, v in attributes.items())
    return f"<{name}{written}>{content}</{name}>"


def text(words: str, **attributes) -> str:
    return tag("text", escape(words), **attributes)


def width_of(words: str) -> float:
    """About how many pixels the words take in the small font."""
    return len(words) * CHARACTER


def ticks(low: float, high: float, count: int) -> list[float]:
    """Round values that cover a range, at most `count` steps apart."""
    span = (high - low) or abs(high) or 1
    rough = span / count
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [each * step for each in range(first, max(last, first + 1) + 1)]


def path(points: list[tuple[float, float]]) -> str:
    """The data of a path through these points."""
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
