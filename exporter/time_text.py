"""Times and ages as people read them."""

from datetime import UTC, datetime

_HOUR = 60
_DAY = 24 * _HOUR
_LONG = 2 * _DAY


def utc(at: float) -> str:
    """A time, in seconds since the epoch, as Kubernetes writes it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def age(seconds: float) -> str:
    """An age to the minute; from two days on, to the day."""
    minutes = max(0, int(seconds)) // 60
    if minutes < _HOUR:
        return f"{minutes} min"
    if minutes < _LONG:
        return f"{minutes // _HOUR} h {minutes % _HOUR} min"
    return f"{minutes // _DAY} days"
