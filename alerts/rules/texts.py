"""How values stand in texts of alerts: as people write them, `2 %` and `42 minutes`, not `2.063%` and `42m 13s`.

A text says `{{ $value | asPercent }}` for a ratio, `asDuration` for seconds and `asBytes` for bytes. None of them is a
function of Prometheus: `expanded` replaces them by its own ones.
"""

_AS_PERCENT = (
    r"humanizePercentage"
    r" | reReplaceAll `^(.*e-.*|0\.00.*)$` `0%`"
    r" | reReplaceAll `^([1-9][0-9]*|0\.0?[1-9]|0)[0-9.]*%$` `$1 %`"
)
"""Cut off, not rounded: 29.9 % is below a threshold of 30 %. Below 1 % one digit remains."""

_AS_DURATION = (
    r"humanizeDuration"
    r" | reReplaceAll `^(.*[dhm]) [0-9.]+s$` `$1`"
    r" | reReplaceAll `^(.*d .*) [0-9]+m$` `$1`"
    r" | reReplaceAll ` 0[hm]` ``"
    r" | reReplaceAll `([0-9])d` `$1 days`"
    r" | reReplaceAll `([0-9])h` `$1 hours`"
    r" | reReplaceAll `([0-9])m\b` `$1 minutes`"
    r" | reReplaceAll `([0-9])s$` `$1 seconds`"
    r" | reReplaceAll `\b1 (day|hour|minute|second)s` `1 $1`"
)
"""At most two units: days and hours, or hours and minutes."""

_AS_BYTES = r"humanize1024 | reReplaceAll `^([0-9]+)[0-9.]*([A-Z]i)?$` `$1 ${2}B`"

PIPELINES = {"asPercent": _AS_PERCENT, "asDuration": _AS_DURATION, "asBytes": _AS_BYTES}


def expanded(text: str) -> str:
    """Return the text with functions of Prometheus in place of the names in PIPELINES."""
    for name, pipeline in PIPELINES.items():
        text = text.replace(f"| {name} ", f"| {pipeline} ")
    return text
