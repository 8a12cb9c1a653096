"""Memory of the running exporter, the size of its page, and how soon it has one."""

import re
import time
from pathlib import Path

from bench.fixture import Place, Scene
from bench.process import Running, memory, running
from bench.table import Row, Section

BUDGET_MIB, BUDGET_START, BUDGET_GPU, BUDGET_INSTANCE = 64.0, 2.0, 60.0, 20.0
SETTLE_SECONDS = 4.0
"""The first passes are a second apart."""


def flags(place: Place, counters: Path | None, interval: int = 1000) -> tuple[str, ...]:
    """As a DaemonSet would give them."""
    file = ("--collectors", str(counters)) if counters else ()
    attribution = ("--kubernetes", "--pod-resources-kubelet-socket", str(place.socket))
    return (
        "--source", "dcgm", "--remote-hostengine-info", "localhost:5555", "--collect-interval", str(interval),
        *attribution, *file,
    )  # fmt: skip


def memory_section(scene: Scene, place: Place, settle: float = SETTLE_SECONDS) -> Section:
    """Parent and reader, before libdcgm is loaded and with the stand-in."""
    bare = {"LD_LIBRARY_PATH": ""}
    with running(flags(place, None), bare, place.bytecode):
        time.sleep(settle)  # its bytecode is compiled now, as an image's is
    with running(flags(place, None), bare, place.bytecode) as process:
        process.wait_for(b'gpugauge_source_up{hostname="node-1",source="dcgm"} 0.0')
        time.sleep(settle)
        before = _rows("before libdcgm", process, BUDGET_MIB)
    with running(flags(place, place.counters_file), place.environment(), place.bytecode) as process:
        process.wait_for(b"\nDCGM_FI_")
        time.sleep(settle)
        after = _rows("stand-in loaded, pages served", process, None)
    remarks = (
        "Both map the interpreter and its libraries: the sum counts those pages twice, the machine holds them once.",
        "The stand-in is far smaller than libdcgm: 160 MiB with the embedded engine needs a GPU node.",
    )
    return Section(f"Memory: {scene.name}, attribution on", [*before, *after], remarks)


def _rows(when: str, process: Running, budget: float | None) -> list[Row]:
    parent, reader = memory(process.pid), memory(process.reader())
    both = parent.resident + reader.resident
    return [
        Row(f"{when}: resident, parent", parent.resident, "MiB", note=f"its own {parent.anonymous:.1f}"),
        Row(f"{when}: resident, reader", reader.resident, "MiB", note=f"its own {reader.anonymous:.1f}"),
        Row(f"{when}: resident, both, shared pages once", parent.once(reader), "MiB", budget, f"sum {both:.1f}"),
        Row(f"{when}: proportional share, both", parent.share + reader.share, "MiB"),
    ]


def page_section(scene: Scene, place: Place, starts: int) -> Section:
    """Start to the first full page, and the number of series with the default fields."""
    started, lines = _started(place, starts)
    counts = _series(lines)
    device, budget = ("MIG instance", BUDGET_INSTANCE) if scene.divided else ("GPU", BUDGET_GPU)
    rows = [
        Row("start of the process to the first full page", started, "s", BUDGET_START),
        Row("series on the page", len(_samples(lines)), ""),
        Row(
            f"series of one {device}",
            max(n for key, n in counts.items() if ("GPU_I_ID" in key) == scene.divided),
            "",
            budget,
        ),
    ]
    return Section(f"Start and series: {scene.name.partition(' x ')[0]}, default fields", rows)


def _started(place: Place, starts: int) -> tuple[float, list[str]]:
    """Of the quickest of so many starts, and a full page."""
    seconds = []
    for _ in range(starts):
        with running(flags(place, None), place.environment(), place.bytecode) as process:
            seconds.append(process.wait_for(b"\nDCGM_FI_", b"gpugauge_device_holders{"))
            page = process.page().decode()
    return min(seconds), page.splitlines()


def _samples(lines: list[str]) -> list[str]:
    return [line for line in lines if line and line[0] != "#"]


def _series(lines: list[str]) -> dict[str, int]:
    """How many series each GPU and each instance has."""
    found: dict[str, int] = {}
    for line in _samples(lines):
        device = "".join(re.findall(r'(?<![A-Za-z_])(?:UUID|GPU_I_ID)="[^"]*"', line))
        found[device] = found.get(device, 0) + 1
    return found
