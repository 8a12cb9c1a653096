"""Measures whether many MIG devices with many fields are read in time at the shortest usual collection interval.

Reader process and parent process run on one core, which another process keeps busy.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from statistics import median

import msgspec

from bench.fixture import START_SECONDS, BenchNode, RunningFakes
from bench.table import BenchSection, Figure
from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.readings.readings import Readings
from exporter.node.reader.supervisor import Reader
from exporter.node.simulation.scenario import load
from exporter.source import SourceError
from tests.fakes.table_bytes import known_fields

FIELDS = 143
INTERVAL = 1.0
BUDGET_MS = 800.0
"""What a reader process may take at an interval of one second."""


def dense_fields(node: BenchNode, number: int = FIELDS) -> tuple[WantedField, ...]:
    """So many fields that are numbers, those with values first, each of every MIG device."""
    state = load(node.scenario).at(0.0)
    sampled = state.gpus[0].instances[0].samples
    numbers = [field for field in known_fields(state.versions.dcgm) if field.kind in {"int", "float"}]
    chosen = sorted(numbers, key=lambda field: (field.id not in sampled, field.watch != "basic", field.id))[:number]
    return tuple(replace(field, scope="instance").wanted() for field in chosen)


@contextmanager
def busy_core() -> Iterator[int]:
    """Run this process on one core only, and another process that always wants that core. Yields its number."""
    before = os.sched_getaffinity(0)
    core = min(before)
    os.sched_setaffinity(0, {core})
    busy = subprocess.Popen((sys.executable, "-c", "while True: pass"))  # it runs where its parent may run
    try:
        yield core
    finally:
        busy.kill()
        busy.wait()
        os.sched_setaffinity(0, before)


def dense_section(node: BenchNode, fakes: RunningFakes, reads: int, fields: int = FIELDS) -> BenchSection:
    """Measure so many reads, one in each interval."""
    wanted = dense_fields(node, fields)
    config = msgspec.structs.replace(fakes.reader_config(node.counters(), INTERVAL), fields=wanted)
    with busy_core(), closing(Reader(config)) as reader:
        readings = _first(reader)
        taken = [_milliseconds(reader) for _ in range(reads)]
    samples = sum(len(column) for batch in readings.batches for column in batch.columns)
    devices = sum(device.gi >= 0 for device in readings.inventory)
    row = Figure(f"slowest of {reads} reads", max(taken), "ms", BUDGET_MS, f"median {median(taken):.0f} ms")
    remark = f"{samples:,} samples, every {INTERVAL:g} s, on one core of which another process takes its share."
    return BenchSection(f"Reads: {devices} MIG devices x {fields} fields", [row], [remark])


def _first(reader: Reader) -> Readings:
    """Read until the reader process has opened its source."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            return reader.read()
        except SourceError:
            time.sleep(INTERVAL / 10)
    raise TimeoutError("the reader process does not answer")


def _milliseconds(reader: Reader) -> float:
    """Wait for the next interval, then read once. A read that is not finished in time took that time at least."""
    time.sleep(INTERVAL - time.time() % INTERVAL)
    began = time.perf_counter()
    try:
        reader.read()
    except SourceError:
        return max((time.perf_counter() - began) * 1000, BUDGET_MS + 1)
    return (time.perf_counter() - began) * 1000
