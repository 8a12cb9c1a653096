"""Measures CPU, memory, latency and series of both programs and prints them as tables, beside their budgets.

`python -m bench [--quick] [--no-fail]`; exit code 1 when something is over its budget.
"""

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.audit import PODS, audit_section
from bench.cardinality import cardinality_section
from bench.churn import churn_section
from bench.dense import FIELDS, dense_section
from bench.fixture import PARTITIONED, SHARED, WHOLE, BenchNode, running_fakes
from bench.growth import growth_section
from bench.replicas import replica_section
from bench.resident import exposition_section, memory_section
from bench.scrapes import scrape_section
from bench.stages import stage_section
from bench.table import BenchSection, over
from bench.watcher import watcher_section

NOT_COMPARED = "Other exporters are measured by `python -m bench.exporters`: see docs/compared-with-dcgm-exporter.md."


@dataclass(frozen=True, slots=True)
class Size:
    """How often each figure is measured; `settle` is in seconds."""

    repetitions: int = 400
    scrapes: int = 100
    collections: int = 20_000
    kills: int = 30
    reads: int = 30
    dense_fields: int = FIELDS
    settle: float = 4.0
    starts: int = 3
    pods: int = PODS
    watched: int = 100_000
    """Pods of the cluster."""
    watch_seconds: float = 60.0


QUICK = Size(
    repetitions=20,
    scrapes=20,
    collections=200,
    kills=2,
    reads=3,
    settle=1.0,
    starts=1,
    pods=100,
    watched=2000,
    watch_seconds=5.0,
)


def sections(
    size: Size, whole: BenchNode = WHOLE, partitioned: BenchNode = PARTITIONED, shared: BenchNode = SHARED
) -> Iterator[BenchSection]:
    """Measure everything; each section is yielded when it is done."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in ("whole", "partitioned", "shared"):
            (root / name).mkdir()
        with running_fakes(whole, root / "whole") as fakes:
            section, readings = stage_section(whole, fakes, 1.0, size.repetitions)
            yield section
            yield scrape_section(whole, fakes, 2.0, size.scrapes)
            yield memory_section(whole, fakes, size.settle)
            yield exposition_section(whole, fakes, size.starts)
        with running_fakes(partitioned, root / "partitioned") as fakes:
            yield stage_section(partitioned, fakes, 4.0, size.repetitions)[0]
            yield scrape_section(partitioned, fakes, 5.0, size.scrapes)
            yield exposition_section(partitioned, fakes, size.starts)
            yield dense_section(partitioned, fakes, size.reads, size.dense_fields)
        with running_fakes(shared, root / "shared") as fakes:
            yield replica_section(shared, fakes, size.repetitions)
        yield cardinality_section()
        yield growth_section(whole, readings, size.collections)
        yield churn_section(size.collections, size.kills)
        yield audit_section(size.pods)
        yield watcher_section(size.watched, size.watch_seconds)


def _about() -> str:
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    return f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load average {load}"


def main() -> int:
    """Measure and print section by section."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--no-fail", action="store_true", help="exit code 0 also when something is over its budget")
    parser.add_argument("--quick", action="store_true", help="few runs, to see that it works; the figures mean little")
    arguments = parser.parse_args()
    print(_about(), NOT_COMPARED, sep="\n", flush=True)
    found = []
    for section in sections(QUICK if arguments.quick else Size()):
        found.append(section)
        print(section.text(), flush=True)
    print(f"\n{_about()}")
    for row in over(found):
        print(f"over budget: {row.what}: {', '.join(row.columns()[1:3])}")
    return 1 if over(found) and not arguments.no_fail else 0


if __name__ == "__main__":
    sys.exit(main())
