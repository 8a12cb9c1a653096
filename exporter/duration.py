"""Reads a duration as Go's `time.ParseDuration` does, as dcgm-exporter's flags and files have it: 1.5s, 2m30s."""

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"([0-9]{1,18}(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"


def parse_duration(text: str) -> float:
    """Return seconds. Raises ValueError with a message that has the text and what is wrong with it."""
    found = re.fullmatch(rf"([+-]?)((?:{_PART})+|0)", text)
    if found is None:
        raise ValueError(f"{text!r} is not a duration such as 30s, 500ms or 1m30s")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, found[2]))
    return -seconds if found[1] == "-" else seconds
