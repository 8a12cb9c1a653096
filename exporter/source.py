"""What a collection of the node exporter reads: the devices (through DCGM, NVML or a scenario) and the kubelet.

Each is read once per collection; if one fails, the others are still read. Errors of the API server, which the watcher
follows with watches instead, are SourceErrors, too.
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
    """An outside system. `read` asks it anew or raises SourceError; it never repeats the result of an earlier read."""

    @property
    def name(self) -> str:
        """The value of the label `source`."""
        ...

    def read(self) -> T_co: ...

    def close(self) -> None: ...
