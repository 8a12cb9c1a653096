"""Measures the audit log: bytes and CPU of a day in which 2,000 pods follow each other on 8 GPUs.

The day is noted one collection after another, as fast as it goes, by the real ledger into a real file.
"""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.table import BenchSection, Figure
from exporter.node.attribution.allocation import Allocation, Allocations
from exporter.node.attribution.matching.attribute import attribute
from exporter.node.audit.audit_log import AuditLog
from exporter.node.audit.log_file import AuditFile
from exporter.node.audit.writer import AuditWriter
from exporter.node.devices.computed.normalized import device_values
from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.read_plan import device_levels
from exporter.node.devices.series.metrics import SamplesByField
from exporter.snapshot import SourceHealth

GPUS, PODS = 8, 2000
DAY = 86_400.0
INTERVAL = 30.0
BUDGET_MB, BUDGET_PERCENT = 5.0, 1.0
_BEGIN = 1_800_000_000.0
_FILE_BYTES = 16 << 20


@dataclass(slots=True)
class SetClock:
    """A clock that shows the time of the collection."""

    now: float = _BEGIN

    def __call__(self) -> float:
        """Return the time that is set."""
        return self.now


def audit_section(pods: int = PODS) -> BenchSection:
    """Measure a day with so many pods; fewer make a shorter day."""
    seconds = DAY * pods / PODS
    collections = list(_collections(pods, seconds))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "audit.jsonl"
        spent = _write(path, collections)
        size = sum(each.stat().st_size for each in path.parent.iterdir())
    rows = [
        Figure(f"size of a day: {GPUS} GPUs, {PODS:,} pods", size / 1e6 * DAY / seconds, "MB", BUDGET_MB),
        Figure("CPU of noting and writing", 100 * spent / seconds, "%", BUDGET_PERCENT, "of one core"),
    ]
    return BenchSection("Audit log", rows, [f"{len(collections):,} collections, {INTERVAL:.0f} s apart."])


def _write(path: Path, collections: list[tuple[float, Allocations]]) -> float:
    """Write the log of these collections. Returns seconds of CPU, without those of attribution."""
    clock = SetClock()
    writer = AuditWriter(AuditFile(path, _FILE_BYTES, 0), "node-1", 3 * INTERVAL, clock=clock, wall=clock)
    log, spent = AuditLog(writer, "node-1"), 0.0
    for at, allocations in collections:
        clock.now, attribution = at, attribute(_INVENTORY, allocations)
        began = time.process_time()
        log.note(_ANSWERED, at, attribution, device_values(_LEVELS, _SAMPLES))
        writer.step()
        spent += time.process_time() - began
    writer.finish()
    return spent


def _collections(pods: int, seconds: float) -> Iterator[tuple[float, Allocations]]:
    """Each GPU has one pod after another, all of the same length, so that in most collections one changes."""
    length = seconds * GPUS / pods
    for number in range(int(seconds / INTERVAL)):
        passed = number * INTERVAL
        runs = ((gpu, int(passed / length + gpu / GPUS)) for gpu in range(GPUS))
        yield (
            _BEGIN + passed,
            tuple(
                Allocation(
                    "machine-learning", f"training-run-{gpu}-{run:05}-worker-0", "main", "nvidia.com/gpu", _uuid(gpu)
                )
                for gpu, run in runs
            ),
        )


def _uuid(gpu: int) -> str:
    return f"GPU-{gpu:08}-0000-0000-0000-000000000000"


_INVENTORY = tuple(
    Device(_uuid(gpu), gpu, f"00000000:0{gpu}:00.0", gpu, "NVIDIA H100 80GB HBM3") for gpu in range(GPUS)
)
_ANSWERED = (SourceHealth("kubelet", up=True, seconds=0.0),)
_LEVELS = device_levels(_INVENTORY)
_SAMPLES: SamplesByField = {
    field: [(tuple(range(GPUS)), tuple(value + gpu * step for gpu in range(GPUS)))]
    for field, value, step in ((field_ids.GR_ENGINE_ACTIVE, 0.123, 0.07), (field_ids.FB_USED, 34_567, 1_234))
}
