"""Runs what may hang, such as a read of a file of a hung driver, and waits for it a limited time."""

import queue
from collections.abc import Callable
from typing import TypeVar

from exporter.background import in_background

T = TypeVar("T")


def within(seconds: float, function: Callable[[], T]) -> T:
    """Return what the function returns or raise what it raises; TimeoutError where it takes longer.

    It then goes on in its thread, which does not keep the process from ending.
    """
    answers: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((function(), None))
        except Exception as error:  # noqa: BLE001 - raised again for the caller
            answers.put((None, error))

    in_background("doctor")(run)
    try:
        answer, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    if error is not None:
        raise error
    return answer  # type: ignore[return-value]  # None only where the function returned it
