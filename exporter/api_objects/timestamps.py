"""Parses times as the API server writes them. No I/O, no state."""

from datetime import datetime


def timestamp(text: str | None) -> float | None:
    """Return the seconds since the epoch of a time in RFC 3339, None for none. Raises ValueError."""
    return datetime.fromisoformat(text).timestamp() if text else None
