"""Sources: the outside systems that a collection reads, such as DCGM, NVML, the kubelet or the API server.

Each is read once per collection; an error of one does not keep the others from being read.
"""

from typing import Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class SourceError(Exception):
    """A source could not be read this time; the next read may succeed.

    `reason` is a member of the source's closed set (a subclass of `exporter.reason.Reason`) and becomes the value of
    the label `reason` on `gpugauge_source_problem`. The message is for the log.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Source(Protocol[T_co]):
    """An outside system. `read` returns its state as of now or raises SourceError; it never returns an old state."""

    @property
    def name(self) -> str:
        """The value of the label `source`."""
        ...

    def read(self) -> T_co: ...

    def close(self) -> None: ...
