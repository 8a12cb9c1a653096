"""Prometheus and Alertmanager in the demo: their configuration files, command lines, and queries over HTTP."""

import json
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from alerts.rules.rule import INTERVAL_SECONDS
from demo.processes import DemoError

GENERATED = Path(__file__).parents[1] / "deploy" / "generated"
SCRAPE_SECONDS = 10
RULE_SECONDS = 10
NODE_JOB = "gpugauge-node"
CLUSTER_JOB = "gpugauge-cluster"
"""Names of the scrape jobs, which rules and dashboards select by."""


@dataclass(frozen=True, slots=True)
class ScrapeTargets:
    """What is scraped: the address (`host:port`) of each node exporter by node name, and of the watcher."""

    nodes: Mapping[str, str]
    watcher: str


def rule_files(folder: Path = GENERATED) -> list[Path]:
    """The generated rule files, by name, without the adapters. Raises DemoError outside of a checkout."""
    found = sorted((folder / "rules").glob("*.yaml"))
    if not found:
        raise DemoError(f"no generated rules in {folder}: the demo runs from a checkout")
    return found


def with_short_intervals(files: Sequence[Path], folder: Path) -> list[Path]:
    """Write copies of the rule files that are evaluated every RULE_SECONDS.

    Prometheus restores a pending alert only after the second evaluation and fires it with the third: with the
    generated interval of a minute that alone takes three minutes.
    """
    copies = []
    for file in files:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        for group in content["groups"]:
            group["interval"] = f"{RULE_SECONDS}s"
        copies.append(folder / f"rules-{file.name}")
        copies[-1].write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return copies


def configuration(targets: ScrapeTargets, alertmanager: str, rules: Sequence[Path], *, honor_labels: bool) -> str:
    """Write the Prometheus configuration that our PodMonitors lead to: two jobs, and `node` on node targets only."""

    def job(name: str, static: list[dict[str, Any]]) -> dict[str, Any]:
        return {"job_name": name, "honor_labels": honor_labels, "static_configs": static}

    nodes = [{"targets": [address], "labels": {"node": name}} for name, address in targets.nodes.items()]
    return yaml.safe_dump(
        {
            "global": {"scrape_interval": f"{SCRAPE_SECONDS}s", "evaluation_interval": f"{INTERVAL_SECONDS}s"},
            "rule_files": [str(rule) for rule in rules],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
            "scrape_configs": [job(NODE_JOB, nodes), job(CLUSTER_JOB, [{"targets": [targets.watcher]}])],
        },
        sort_keys=False,
    )


def command(executable: str, config: Path, data: Path, port: int) -> list[str]:
    """The command line of a Prometheus on loopback.

    A restored alert fires only after the grace period, which is ten minutes by default.
    """
    return [
        executable,
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--rules.alert.for-grace-period=0s",
        "--log.level=warn",
    ]


def alertmanager_configuration(receiver: str, wait: str = "1s") -> str:
    """Write the generated routing example with a webhook below the address `receiver` for each receiver.

    Messages are sent at any time of day, without the example's waits. `gpu-digest` becomes `<receiver>/digest`.
    """
    text = (GENERATED / "alertmanager" / "example.yaml").read_text(encoding="utf-8")
    config = yaml.safe_load(text)
    _send_at_once(config["route"], wait)
    config["receivers"] = [
        {"name": (name := entry["name"]), "webhook_configs": [{"url": f"{receiver}/{name.removeprefix('gpu-')}"}]}
        for entry in config["receivers"]
    ]
    del config["templates"]
    return yaml.safe_dump(config, sort_keys=False)


def _send_at_once(route: dict[str, Any], wait: str) -> None:
    route["group_wait"] = route["group_interval"] = wait
    route.pop("active_time_intervals", None)
    for inner in route.get("routes", ()):
        _send_at_once(inner, wait)


def alertmanager_command(executable: str, config: Path, data: Path, port: int) -> list[str]:
    """The command line of an Alertmanager on loopback, without a cluster of Alertmanagers."""
    return [
        executable,
        f"--config.file={config}",
        f"--storage.path={data}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]


@dataclass(frozen=True, slots=True)
class PrometheusApi:
    """The HTTP API of one Prometheus or Alertmanager at `url`. Every method raises OSError when it does not answer."""

    url: str

    def query(self, expression: str, at: float | None = None) -> list[dict[str, Any]]:
        """Run an instant query. Each series has `metric` and `value`."""
        parameters = {"query": expression} | ({"time": str(at)} if at is not None else {})
        return list(self._get("/api/v1/query", parameters)["data"]["result"])

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """Run a range query. Each series has `metric` and `values`."""
        parameters = {"query": expression, "start": str(start), "end": str(end), "step": str(step)}
        return list(self._get("/api/v1/query_range", parameters)["data"]["result"])

    def alerts(self) -> list[dict[str, Any]]:
        """The alerts that Alertmanager has now."""
        return list(self._get("/api/v2/alerts", {}))

    def _get(self, path: str, parameters: Mapping[str, str]) -> Any:
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        with urllib.request.urlopen(f"{self.url}{path}{query}", timeout=30) as response:  # noqa: S310 - loopback
            return json.load(response)
