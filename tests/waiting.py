"""Waiting in tests: for a condition instead of a time, with a limit that a busy machine does not reach."""

import time
from collections.abc import Callable
from typing import Any

LIMIT_SECONDS = 60.0
"""How long anything may take that takes well below a second on an idle machine."""


def until(condition: Callable[[], Any], seconds: float = LIMIT_SECONDS, every: float = 0.01) -> Any:
    """Wait until the condition is true and return what it returned; fail when it is not within `seconds`."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"the condition was not true within {seconds:g} s"
        time.sleep(every)
    return found
