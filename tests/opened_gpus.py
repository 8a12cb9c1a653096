"""The GPUs that a running exporter has open, as the fake libraries open one file for each (tests/fakes/open_gpus.h)."""

from pathlib import Path

from tests.exporter.node.exporter_process import children


def opened_gpus(pid: int) -> list[str]:
    """The names of those files that the process with this id and its children have open, as often as they have."""
    opened = []
    for process in (pid, *children(pid)):
        for entry in Path(f"/proc/{process}/fd").glob("*"):
            try:
                opened.append(entry.readlink().name)
            except OSError:  # it was closed, or its process has ended
                continue
    return [name for name in opened if ".nvidia" in name]
