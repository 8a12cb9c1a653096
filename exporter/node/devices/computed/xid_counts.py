"""Counts the XIDs of one GPU: since the start of the exporter, within a window, and when the last of each code came.

No I/O. In: the reports of the source. XIDs from before the start, which an engine may still have stored, are not
counted, but their times are known.
"""

from collections import Counter

from exporter.node.devices.computed.window import Window
from exporter.node.devices.readings.readings import XidReport


class XidCounts:
    """What is known of the XIDs of one GPU."""

    def __init__(self, window_seconds: float) -> None:
        self.since_start: Counter[int] = Counter()
        self.last: dict[int, float] = {}
        """When the last XID of each code came, in Unix seconds."""
        self._window: Window[int] = Window(window_seconds)

    def add(self, report: XidReport, started_at: float) -> None:
        """Count a report, unless it is known already or from before the start (Unix seconds)."""
        if report.at <= self.last.get(report.code, -1.0):
            return
        self.last[report.code] = report.at
        if report.at >= started_at:
            self.since_start[report.code] += report.count
            self._window.add(report.code, report.at, report.count)

    def within_window(self, now: float) -> Counter[int]:
        """Count the XIDs of the window before `now` (Unix seconds) by code."""
        return self._window.counts(now)
