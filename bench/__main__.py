"""The budgets of the node exporter, measured: `python -m bench`; exit code 1 when one does not hold.

python -m bench [--quick] [--no-fail] [--watcher]
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.fixture import DIVIDED, ROOT, WHOLE, Scene, played
from bench.growth import growth_section
from bench.resident import memory_section, page_section
from bench.scrapes import scrape_section
from bench.stages import stage_section
from bench.table import Section, over

NO_PEER = (
    "No column for NVIDIA's dcgm-exporter: it needs the real libdcgm and a GPU's driver, neither of which is here."
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    rounds: int = 400
    scrapes: int = 100
    passes: int = 20_000
    settle: float = 4.0
    starts: int = 3


QUICK = Size(rounds=20, scrapes=20, passes=200, settle=1.0, starts=1)


def sections(size: Size, whole: Scene = WHOLE, divided: Scene = DIVIDED) -> Iterator[Section]:
    """Everything that is measured, as it is measured."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (root / "whole").mkdir()
        (root / "divided").mkdir()
        with played(whole, root / "whole") as place:
            section, readings = stage_section(whole, place, 1.0, size.rounds)
            yield section
            yield scrape_section(whole, place, 2.0, size.scrapes)
            yield memory_section(whole, place, size.settle)
            yield page_section(whole, place, size.starts)
        with played(divided, root / "divided") as place:
            yield stage_section(divided, place, 4.0, size.rounds)[0]
            yield scrape_section(divided, place, 5.0, size.scrapes)
            yield page_section(divided, place, size.starts)
        yield growth_section(whole, readings, size.passes)


def _about() -> str:
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    return f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load average {load}"


def main() -> int:
    """Prints as it goes."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--no-fail", action="store_true", help="exit code 0 whatever is over its budget")
    parser.add_argument("--quick", action="store_true", help="few rounds: whether it runs, not what it costs")
    parser.add_argument("--watcher", action="store_true", help="the cluster watcher too: several minutes")
    arguments = parser.parse_args()
    print(_about(), NO_PEER, sep="\n", flush=True)
    found = []
    for section in sections(QUICK if arguments.quick else Size()):
        found.append(section)
        print(section.text(), flush=True)
    print(f"\n{_about()}")
    for row in over(found):
        print(f"over budget: {row.what}: {', '.join(row.cells()[1:3])}")
    if arguments.watcher:
        subprocess.run([sys.executable, str(ROOT / "bench" / "watcher.py")], check=True, cwd=ROOT)
    return 1 if over(found) and not arguments.no_fail else 0


if __name__ == "__main__":
    sys.exit(main())
