"""Numbers as Grafana writes them, by unit id: only the units that the dashboards use, and those beside them."""

import math
from datetime import UTC, datetime

SI = ("", "k", "M", "G", "T", "P")
BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
SCALED = {
    "watt": "W", "joule": "J", "hertz": "Hz", "watth": "Wh", "Bps": "B/s", "decbytes": "B", "short": "",
    "kwatth": "kWh",
}  # fmt: skip
"""Units with a prefix for thousands."""
SUFFIX = {
    "celsius": " °C",
    "cps": " c/s",
    "suffix:h": " h",
    "locale": "",
    "cpm": " c/m",
    "percent": "%",
    "ops": " ops/s",
    "none": "",
    "string": "",
}
TIMES = (
    ("week", 604_800), ("day", 86_400), ("hour", 3_600), ("min", 60), ("s", 1), ("ms", 1e-3), ("µs", 1e-6),
)  # fmt: skip
DURATIONS = (
    ("year", 31_536_000), ("month", 2_592_000), ("week", 604_800), ("day", 86_400), ("hour", 3_600), ("minute", 60),
    ("second", 1),
)  # fmt: skip


def written(value: float, unit: str, decimals: int | None, now: float) -> str:
    """Write a number with its unit. `now` is in seconds since the epoch, for ages."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if unit == "dateTimeFromNow":
        return f"{_duration(now - value / 1000)} ago"
    if unit == "dateTimeAsIso":
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    if unit in {"dtdurations", "s", "h"}:
        seconds = value * 3600 if unit == "h" else value
        return _duration(seconds) if unit == "dtdurations" else _time(seconds, decimals)
    if unit == "percentunit":
        return f"{number(value * 100, decimals)}%"
    if unit.startswith("currency"):
        return f"${number(value, decimals)}"
    return _scaled(value, unit, decimals)


def _scaled(value: float, unit: str, decimals: int | None) -> str:
    if unit in {"bytes", "binBps"}:
        scale = min(int(math.log(max(abs(value), 1), 1024)), len(BINARY) - 1)
        return f"{number(value / 1024**scale, decimals)} {BINARY[scale]}{'/s' if unit == 'binBps' else ''}"
    if unit in SCALED:
        scale = min(int(math.log10(max(abs(value), 1)) / 3 + 1e-9), len(SI) - 1)
        return f"{number(value / 1000**scale, decimals)} {SI[scale]}{SCALED[unit]}".rstrip()
    return number(value, decimals) + SUFFIX.get(unit, f" {unit}")


def number(value: float, decimals: int | None) -> str:
    """Write a number with so many decimals, or as many as leave three digits."""
    if decimals is None:
        digits = 0 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
        text = f"{value:.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.{decimals}f}"


def _time(seconds: float, decimals: int | None) -> str:
    for name, size in TIMES:
        if abs(seconds) >= size or size == TIMES[-1][1]:
            amount = number(seconds / size, decimals)
            plural = "s" if size > TIMES[3][1] and amount != "1" else ""
            return f"{amount} {name}{plural}"
    raise AssertionError


def _duration(seconds: float) -> str:
    for name, size in DURATIONS:
        if abs(seconds) >= size:
            amount = int(seconds / size)
            return f"{amount} {name}{'' if amount == 1 else 's'}"
    return "0 seconds"
