"""What an outside system looks like to a pass: it is read once, and fails alone."""

from typing import Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class SourceError(Exception):
    """The source could not be read this time; the next read may succeed.

    `reason` is one word of a closed set per source and becomes a label value; the message is for the log.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Source(Protocol[T_co]):
    """An outside system. `read` gives the truth as of now or raises SourceError: never a stale answer."""

    @property
    def name(self) -> str: ...

    def read(self) -> T_co: ...

    def close(self) -> None: ...
