"""Measures what the generated rules cost in a real Prometheus with 1,250 nodes: `make bench-fleet`, a release gate.

Prometheus scrapes 1,250 targets until they have a past of a quarter of an hour, then evaluates the rules at their own
intervals for some minutes, and says how long each group took; its CPU time comes from /proc. Nothing is scraped
meanwhile, so that the CPU is that of the rules. Ends with 1 where a budget is exceeded.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cpu import process_ms
from bench.fleet_data import FleetSize
from bench.fleet_targets import FleetTarget, own_targets, serving, stock_targets
from bench.process import memory
from bench.table import BenchSection, Figure, over

ROOT = Path(__file__).parents[1]
RULES = ROOT / "deploy/generated/rules"
BUDGET_GROUP_SECONDS, BUDGET_CPU_SECONDS = 1.0, 6.0
BUDGET_RECORDED = 0.2
SCRAPE_SECONDS = 15
PAST_MINUTES = 16
"""How much of the past rules look back on, so that means of 15 minutes are those of as many samples as usual."""
SETTLE_SECONDS = 130
"""Until every group has found what those before it record."""


def tool(name: str) -> str:
    """The path of Prometheus, which `make setup` puts into .cache unless they are on PATH."""
    found = shutil.which(name, path=f"{ROOT / '.cache/tools/bin'}:/usr/bin:/usr/local/bin")
    if found is None:
        raise SystemExit(f"{name} is not there: run `make setup`")
    return found


@contextmanager
def prometheus(folder: Path, port: int, jobs: list[dict[str, object]]) -> Iterator[int]:
    """Run a Prometheus that scrapes these jobs. Yields its process id."""
    config = folder / "prometheus.yml"
    times = {"scrape_interval": f"{SCRAPE_SECONDS}s", "scrape_timeout": f"{SCRAPE_SECONDS}s"}
    config.write_text(json.dumps({"global": times, "scrape_configs": jobs}), encoding="utf-8")
    command = [
        tool("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--storage.tsdb.retention.time=10y",
        "--query.lookback-delta=30m",  # no newer samples come
        "--log.level=error",
    ]
    process = subprocess.Popen(command)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def answer(port: int, path: str, **query: str) -> Any:
    """The data of an answer of its API."""
    address = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(address, timeout=60) as response:
        return json.load(response)["data"]


def count(port: int, selector: str) -> int:
    """How many series there are now."""
    try:
        found = answer(port, "query", query=f"count({selector})")["result"]
    except OSError:
        return 0
    return int(found[0]["value"][1]) if found else 0


def total(port: int, selector: str) -> int:
    """The sum of the series."""
    found = answer(port, "query", query=f"sum({selector})")["result"]
    return int(float(found[0]["value"][1])) if found else 0


def groups(port: int) -> dict[str, float]:
    """How long the last evaluation of each group took, in seconds; empty while not all were evaluated."""
    try:
        found = answer(port, "rules")["groups"]
    except OSError:
        return {}
    times = {group["name"]: group["evaluationTime"] for group in found}
    return times if times and all(seconds > 0 for seconds in times.values()) else {}


@dataclass(frozen=True, slots=True)
class RulesCost:
    """What rules cost in a Prometheus."""

    least: dict[str, float]
    """The shortest evaluation of each group, in seconds."""
    cpu: float
    """CPU seconds of Prometheus in a minute."""
    resident: float
    """MiB."""
    recorded: int
    scraped: int


def evaluate(folder: Path, pid: int, rules: list[Path]) -> None:
    """Let it evaluate these rules, and scrape nothing any more."""
    settings = {"rule_files": [str(path) for path in rules]}
    (folder / "prometheus.yml").write_text(json.dumps(settings), encoding="utf-8")
    os.kill(pid, signal.SIGHUP)


def measured(targets: list[FleetTarget], rules: list[Path], minutes: float, port: int) -> RulesCost:
    """Scrape the targets until they have a past, then evaluate the rules for so many minutes."""
    least: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        address, served = stack.enter_context(serving(targets, PAST_MINUTES))
        pid = stack.enter_context(prometheus(folder, port, served.jobs(address)))
        while served.scraped_rounds() <= PAST_MINUTES:
            time.sleep(1)
        scraped = total(port, "scrape_samples_scraped")
        evaluate(folder, pid, rules)
        time.sleep(SETTLE_SECONDS)
        began, cpu = time.monotonic(), process_ms(pid)
        while time.monotonic() < began + minutes * 60:
            time.sleep(5)
            for group, seconds in groups(port).items():
                least[group] = min(seconds, least.get(group, seconds))
        spent = (process_ms(pid) - cpu) / 1000 / (time.monotonic() - began) * 60
        recorded = count(port, '{__name__=~".+:.+:.+"}') + count(port, '{adapter!=""}')
        return RulesCost(least, spent, memory(pid).resident, recorded, scraped)


def section(title: str, cost: RulesCost, *, gate: bool) -> BenchSection:
    """The figures as rows, with budgets where it is a gate."""
    budget = BUDGET_GROUP_SECONDS if gate else None
    rows = [Figure(f"group {name}", seconds, "s", budget) for name, seconds in sorted(cost.least.items())]
    rows += [
        Figure("CPU of Prometheus per minute", cost.cpu, "s", BUDGET_CPU_SECONDS if gate else None),
        Figure("recorded series", cost.recorded, "", cost.scraped * BUDGET_RECORDED if gate else None),
        Figure("scraped series", cost.scraped, ""),
        Figure("resident memory of Prometheus", cost.resident, "MiB"),
    ]
    return BenchSection(
        title, rows, ("The shortest evaluation of each group in some minutes; nothing is scraped meanwhile.",)
    )


def own(size: FleetSize, minutes: float, port: int) -> BenchSection:
    """The rules on the series of our exporters."""
    cost = measured(own_targets(size), sorted(RULES.glob("*.yaml")), minutes, port)
    return section(f"rules on our exporters: {size.nodes} nodes of 8 GPUs", cost, gate=True)


def adapters(size: FleetSize, minutes: float, port: int) -> BenchSection:
    """All rules and the adapters on the series of stock exporters."""
    cost = measured(stock_targets(size), sorted(RULES.rglob("*.yaml")), minutes, port)
    return section(f"rules and adapters on stock exporters: {size.nodes} nodes of 8 GPUs", cost, gate=False)


def main() -> None:
    """Measure the rules without and with the adapters, and print both tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__.partition("\n")[0])
    parser.add_argument("--share", type=float, default=1.0, help="share of the fleet, for a quick look")
    parser.add_argument("--minutes", type=float, default=4.0, help="how long rules are evaluated")
    parser.add_argument("--port", type=int, default=19095, help="port of Prometheus on loopback")
    parser.add_argument("--without-adapters", action="store_true", help="do not measure the adapters")
    options = parser.parse_args()
    whole = FleetSize()
    numbers = (whole.whole, whole.partitioned, whole.shared, whole.pending)
    size = FleetSize(*(max(1, round(number * options.share)) for number in numbers))
    found = []
    for measure in (own,) if options.without_adapters else (own, adapters):
        found.append(measure(size, options.minutes, options.port))
        print(found[-1].text(), flush=True)
    sys.exit(1 if over(found) else 0)


if __name__ == "__main__":
    main()
