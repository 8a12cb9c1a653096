"""Runs what may block for long, such as a call of a native library or a write to a disk, in a thread of its own."""

import threading
from collections.abc import Callable

Starter = Callable[[Callable[[], None]], None]
"""Runs a function, and returns without waiting for its end."""


def in_background(name: str) -> Starter:
    """Run functions in threads of this name, none of which keeps the process from ending."""
    return lambda function: threading.Thread(target=function, name=name, daemon=True).start()
