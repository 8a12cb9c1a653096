"""The colors of Grafana's panels, as CSS."""

PALETTE = ("#73BF69", "#F2CC0C", "#5794F2", "#FF9830", "#F2495C", "#B877D9", "#8AB8FF", "#CA95E5", "#FFB357", "#37872D")
NAMED = {"green": "#73BF69", "red": "#F2495C", "yellow": "#FADE2A", "blue": "#5794F2", "orange": "#FF9830"}
NAMED |= {"text": "#24292e", "transparent": "transparent"}
DARK = 0.6
"""Relative brightness from which on text on a color is black."""


def css(color: str) -> str:
    return NAMED.get(color, color)


def of_threshold(value: float | None, thresholds: dict) -> str:
    """The color of the highest step that the value reaches."""
    steps = thresholds.get("steps", [])
    reached = [step for step in steps if step.get("value") is None or (value is not None and value >= step["value"])]
    return css(reached[-1]["color"]) if reached else PALETTE[0]


def of_field(value: float | None, settings: dict, index: int = 0) -> str:
    """The color of a value, by the color mode of its field; `index` is the place of the series in the palette."""
    color = settings["color"]
    if color["mode"] == "fixed":
        return css(color["fixedColor"])
    if color["mode"] == "thresholds":
        return of_threshold(value, settings.get("thresholds", {}))
    return PALETTE[index % len(PALETTE)]


def on(color: str) -> str:
    """The color of text on this color."""
    if not color.startswith("#"):
        return NAMED["text"]
    red, green, blue = _parts(color)
    return "#000000" if (0.299 * red + 0.587 * green + 0.114 * blue) / 255 > DARK else "#ffffff"


def _parts(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)
