"""Writes series into the storage of a Prometheus before it starts: days of samples in a second."""

import subprocess
from pathlib import Path

from tests.alerts.promtool import tool


def backfilled(folder: Path, series, start: float, end: float, step: float = 60) -> None:
    """Write series into the storage in `folder`, as `(text of the series, value)` every `step` seconds.

    A value is a number, or a function from the time to a number or to None, which is no sample.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, value in series:
        lines += [f"{name} {v} {at}" for at, v in _samples(value, start, end, step)]
    text = folder / "series.openmetrics"
    text.write_text("\n".join([*lines, "# EOF\n"]))
    command = [tool("promtool"), "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder / "data")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


def _samples(value, start, end, step):
    at = start
    while at <= end:
        found = value(at) if callable(value) else value
        if found is not None:
            yield at, found
        at += step
