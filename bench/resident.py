"""Measures the memory of the running exporter, the series of its `/metrics` response, and how soon it serves them."""

import re
import time
from pathlib import Path

from bench.fixture import BenchNode, RunningFakes, last_series
from bench.process import RunningExporter, memory, running
from bench.table import BenchSection, Figure

BUDGET_MIB, BUDGET_START, BUDGET_GPU, BUDGET_MIG_DEVICE = 64.0, 2.0, 60.0, 24.0
SETTLE_SECONDS = 4.0
"""How long to wait before memory is read: the first collections are a second apart."""


def flags(fakes: RunningFakes, counters: Path | None, interval: int = 1000) -> tuple[str, ...]:
    """The flags of an exporter as a DaemonSet has them; `interval` is in milliseconds."""
    file = ("--collectors", str(counters)) if counters else ()
    attribution = ("--kubernetes", "--pod-resources-kubelet-socket", str(fakes.socket))
    return (
        "--source", "dcgm", "--remote-hostengine-info", fakes.engine, "--collect-interval", str(interval),
        *attribution, *file,
    )  # fmt: skip


def memory_section(node: BenchNode, fakes: RunningFakes, settle: float = SETTLE_SECONDS) -> BenchSection:
    """Measure parent and reader process, before libdcgm is loaded and with the fake library."""
    bare = {"LD_LIBRARY_PATH": ""}
    with running(flags(fakes, None), bare, fakes.bytecode):
        time.sleep(settle)  # its bytecode is compiled now, as it is in an image
    with running(flags(fakes, None), bare, fakes.bytecode) as process:
        process.wait_for(b'gpugauge_source_up{node="node-1",source="dcgm"} 0.0')
        time.sleep(settle)
        before = _rows("before libdcgm", process, BUDGET_MIB)
    with running(flags(fakes, fakes.counters_file), fakes.environment(), fakes.bytecode) as process:
        process.wait_for(b"\nDCGM_FI_")
        time.sleep(settle)
        after = _rows("with fake libdcgm", process, None)
    remarks = (
        "Both map the interpreter and its libraries: the sum counts those pages twice, though they are in memory once.",
        "The fake library is far smaller than libdcgm: the budget of 130 MB with an embedded engine needs a GPU node.",
    )
    return BenchSection(f"Memory: {node.name}, attribution on", [*before, *after], remarks)


def _rows(when: str, process: RunningExporter, budget: float | None) -> list[Figure]:
    parent, reader = memory(process.pid), memory(process.reader())
    both = parent.resident + reader.resident
    return [
        Figure(f"{when}: resident, parent", parent.resident, "MiB", note=f"private {parent.anonymous:.1f}"),
        Figure(f"{when}: resident, reader", reader.resident, "MiB", note=f"private {reader.anonymous:.1f}"),
        Figure(f"{when}: resident, both, shared pages once", parent.once(reader), "MiB", budget, f"sum {both:.1f}"),
        Figure(f"{when}: proportional share, both", parent.share + reader.share, "MiB"),
    ]


def exposition_section(node: BenchNode, fakes: RunningFakes, starts: int) -> BenchSection:
    """Measure the time from start to the first full exposition, and count series with the default counters file."""
    started, lines = _started(fakes, starts)
    counts = _series(lines)
    device, budget = ("MIG device", BUDGET_MIG_DEVICE) if node.mig else ("GPU", BUDGET_GPU)
    rows = [
        Figure("start of the process to the first full exposition", started, "s", BUDGET_START),
        Figure("series of the exposition", len(_samples(lines)), ""),
        Figure(
            f"series of one {device}",
            max(n for key, n in counts.items() if ("GPU_I_ID" in key) == node.mig),
            "",
            budget,
        ),
    ]
    return BenchSection(f"Start and series: {node.name.partition(' x ')[0]}, default counters file", rows)


def _started(fakes: RunningFakes, starts: int) -> tuple[float, list[str]]:
    """Returns the seconds of the quickest of so many starts, and the lines of a full exposition."""
    seconds = []
    for _ in range(starts):
        with running(flags(fakes, None), fakes.environment(), fakes.bytecode) as process:
            seconds.append(process.wait_for(b"\nDCGM_FI_", b"gpugauge_device_allocated_pods{"))
            process.wait_for(last_series("DCGM_FI_PROF_"))
            exposition = process.exposition().decode()
    return min(seconds), exposition.splitlines()


def _samples(lines: list[str]) -> list[str]:
    return [line for line in lines if line and line[0] != "#"]


def _series(lines: list[str]) -> dict[str, int]:
    """Count the series of each GPU and each MIG device."""
    found: dict[str, int] = {}
    for line in _samples(lines):
        device = "".join(re.findall(r'(?<![A-Za-z_])(?:UUID|GPU_I_ID)="[^"]*"', line))
        found[device] = found.get(device, 0) + 1
    return found
