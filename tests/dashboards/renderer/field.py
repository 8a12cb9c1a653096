"""What a panel's settings make of a value: defaults, overrides, value mappings."""

import re
from dataclasses import dataclass

from tests.dashboards.renderer import colors
from tests.dashboards.renderer.units import written


@dataclass(frozen=True)
class Shown:
    """A value as a panel shows it."""

    text: str
    color: str


def settings_of(panel: dict, name: str, ref: str = "") -> dict:
    """The field settings of a series or column with this name, from the query `ref`."""
    config = panel["fieldConfig"]
    mode = "palette-classic" if panel["type"] == "timeseries" else "thresholds"
    found = {"color": {"mode": mode}, **config["defaults"], "custom": dict(config["defaults"].get("custom", {}))}
    for override in config["overrides"]:
        if _matches(override["matcher"], name, ref):
            for each in override["properties"]:
                _set(found, each["id"], each["value"])
    return found


def _matches(matcher: dict, name: str, ref: str) -> bool:
    options = matcher["options"]
    match matcher["id"]:
        case "byName":
            return options == name
        case "byFrameRefID":
            return options == ref
        case "byRegexp":
            return re.search(options.strip("/"), name) is not None
    raise NotImplementedError(f"the test renderer does not know the matcher {matcher['id']}")


def _set(found: dict, key: str, value) -> None:
    if key.startswith("custom."):
        found["custom"][key.removeprefix("custom.")] = value
    else:
        found[key] = value


def shown(value: float | str | None, settings: dict, now: float, index: int = 0) -> Shown:
    """The text and the color of a value; a value mapping that names it comes first."""
    mapped = _mapped(value, settings.get("mappings", []))
    if mapped is not None:
        color = mapped.get("color")
        return Shown(mapped.get("text", ""), colors.css(color) if color else _color(value, settings, index))
    if value is None:
        return Shown(settings.get("noValue", "-"), colors.of_threshold(None, settings.get("thresholds", {})))
    if isinstance(value, str):
        return Shown(value, _color(None, settings, index))
    text = written(value, settings.get("unit", "none"), settings.get("decimals"), now)
    return Shown(text, _color(value, settings, index))


def _color(value, settings: dict, index: int) -> str:
    return colors.of_field(value if not isinstance(value, str) else None, settings, index)


def _mapped(value, mappings: list[dict]) -> dict | None:
    """The result of the first mapping for this value."""
    for mapping in mappings:
        options = mapping["options"]
        match mapping["type"]:
            case "value" if _key(value) in options:
                return options[_key(value)]
            case "range" if isinstance(value, float) and _inside(value, options):
                return options["result"]
            case "special" if options["match"] in {"null", "null+nan"} and value is None:
                return options["result"]
    return None


def _key(value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _inside(value: float, options: dict) -> bool:
    low, high = options.get("from"), options.get("to")
    return (low is None or value >= low) and (high is None or value <= high)
