"""Measures what the generated rules cost in a real Prometheus with 1,250 nodes: `make bench-fleet`, a release gate.

Prometheus scrapes the series of the fleet a few times, then evaluates the rules at their own intervals for some
minutes, and says how long each group took; its CPU time comes from /proc. Nothing is scraped meanwhile, so that the CPU
is that of the rules. Ends with 1 where a budget is exceeded.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.cpu import process_ms
from bench.fleet_data import FleetSize, exposition
from bench.process import memory
from bench.table import BenchSection, Figure, over

ROOT = Path(__file__).parents[1]
RULES = ROOT / "deploy/generated/rules"
ADAPTERS = ("dcgm-exporter.yaml", "kube-state-metrics.yaml")
BUDGET_GROUP_SECONDS, BUDGET_CPU_SECONDS = 1.0, 6.0
BUDGET_RECORDED = 0.2
STEP = 60


def tool(name: str) -> str:
    """The path of Prometheus, which `make setup` puts into .cache unless they are on PATH."""
    found = shutil.which(name, path=f"{ROOT / '.cache/tools/bin'}:/usr/bin:/usr/local/bin")
    if found is None:
        raise SystemExit(f"{name} is not there: run `make setup`")
    return found


@contextmanager
def serving(size: FleetSize) -> Iterator[str]:
    """Serve the series of the fleet as one target. Yields its address.

    Samples have timestamps: Prometheus then keeps the last ones when the target is gone.
    """

    class FleetHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(exposition(size, time.time()).encode())

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), FleetHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def prometheus(folder: Path, rules: list[Path], port: int, target: str) -> Iterator[int]:
    """Run a Prometheus that scrapes the target and evaluates these rules. Yields its process id."""
    config = folder / "prometheus.yml"
    scrape = {"job_name": "fleet", "honor_labels": True, "static_configs": [{"targets": [target]}]}
    times = {"scrape_interval": f"{STEP}s", "scrape_timeout": f"{STEP}s"}
    settings = {"rule_files": [str(path) for path in rules], "scrape_configs": [scrape | times]}
    config.write_text(json.dumps(settings), encoding="utf-8")
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


def groups(port: int) -> dict[str, float]:
    """How long the last evaluation of each group took, in seconds; empty while not all were evaluated."""
    try:
        found = answer(port, "rules")["groups"]
    except OSError:
        return {}
    times = {group["name"]: group["evaluationTime"] for group in found}
    return times if times and all(seconds > 0 for seconds in times.values()) else {}


def measured(
    size: FleetSize, rules: list[Path], minutes: float, port: int
) -> tuple[dict[str, float], float, float, int]:
    """Scrape the fleet three times, then evaluate the rules for so many minutes.

    Returns the least time of each group, CPU seconds per minute, resident MiB, and the number of recorded series.
    """
    least: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        target = stack.enter_context(serving(size))
        pid = stack.enter_context(prometheus(Path(name), rules, port, target))
        while count(port, "gpugauge_device_info") == 0 or not groups(port):
            time.sleep(1)
        time.sleep(3 * STEP)
        settings = Path(name) / "prometheus.yml"
        settings.write_text(json.dumps({"rule_files": [str(path) for path in rules]}), encoding="utf-8")
        os.kill(pid, signal.SIGHUP)  # nothing is scraped any more
        time.sleep(STEP)
        began, cpu = time.monotonic(), process_ms(pid)
        while time.monotonic() < began + minutes * 60:
            time.sleep(5)
            for group, seconds in groups(port).items():
                least[group] = min(seconds, least.get(group, seconds))
        spent = (process_ms(pid) - cpu) / 1000 / (time.monotonic() - began) * 60
        recorded = count(port, '{__name__=~".+:.+:.+"}') + count(port, '{adapter!=""}')
        return least, spent, memory(pid).resident, recorded


def section(size: FleetSize, minutes: float, port: int, *, adapters: bool) -> BenchSection:
    """Measure the rules, with or without the adapters."""
    rules = [path for path in sorted(RULES.rglob("*.yaml")) if adapters or path.name not in ADAPTERS]
    series = exposition(size, 0.0).count("\n")
    least, cpu, resident, recorded = measured(size, rules, minutes, port)
    gpus = (size.whole + size.shared) * 8
    scraped = max(gpus * 60 + size.partitioned * 8 * 7 * 24, series)
    budget = None if adapters else BUDGET_GROUP_SECONDS
    rows = [Figure(f"group {name}", seconds, "s", budget) for name, seconds in sorted(least.items())]
    rows += [
        Figure("CPU of Prometheus per minute", cpu, "s", None if adapters else BUDGET_CPU_SECONDS),
        Figure("recorded series", recorded, "", None if adapters else scraped * BUDGET_RECORDED),
        Figure("series that rules read", series, ""),
        Figure("resident memory of Prometheus", resident, "MiB"),
    ]
    nodes = size.whole + size.partitioned + size.shared
    what = "rules and adapters" if adapters else "rules"
    return BenchSection(f"{what}: {nodes} nodes of 8 GPUs", rows, ("Least time of each group in some minutes.",))


def main() -> None:
    """Measure the rules without and with the adapters, and print both tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__.partition("\n")[0])
    parser.add_argument("--share", type=float, default=1.0, help="share of the fleet, for a quick look")
    parser.add_argument("--minutes", type=float, default=4.0, help="how long rules are evaluated")
    parser.add_argument("--port", type=int, default=19095, help="port of Prometheus on loopback")
    parser.add_argument("--without-adapters", action="store_true", help="do not measure the adapters")
    options = parser.parse_args()
    whole = FleetSize()
    size = FleetSize(
        *(max(1, round(number * options.share)) for number in (whole.whole, whole.partitioned, whole.shared))
    )
    found = []
    for adapters in (False,) if options.without_adapters else (False, True):
        found.append(section(size, options.minutes, options.port, adapters=adapters))
        print(found[-1].text())
    sys.exit(1 if over(found) else 0)


if __name__ == "__main__":
    main()
