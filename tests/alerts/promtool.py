"""Write promtool unit-test files and run them: many cases in one file, many files in one process."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote_plus

from alerts import GROUPS
from alerts.rules.rule import INTERVAL_SECONDS, Alert, Group
from alerts.rules.rulefile import rule_file

CACHE = Path(__file__).parents[2] / ".cache/tools/bin"
STEP = 30
"""Seconds between samples: two scrapes for each evaluation."""
NAME = "__name__"
FIRING_BY = "pod, node, workload, workload_type"

Labels = Mapping[str, str]


def tool(name: str) -> str:
    """The path of promtool or amtool. Fails with an explanation where `make setup` has not run."""
    found = shutil.which(name, path=f"{CACHE}{os.pathsep}{os.environ.get('PATH', '')}")
    assert found, f"{name} is neither in {CACHE} nor on PATH: run `make setup`"
    return found


@dataclass
class RuleFixture:
    """Input series and the results expected of them."""

    series: list[tuple[str, str]] = field(default_factory=list)
    expectations: list[tuple[str, float, list[tuple[str, float]]]] = field(default_factory=list)
    alerts: list[tuple[str, float, list[tuple[Labels, Labels]]]] = field(default_factory=list)
    firing: dict[tuple[str, float], dict[str, list[Labels]]] = field(default_factory=dict)

    def add(self, name: str, labels: Labels, values: object) -> None:
        """Add a stored series. A label with an empty value is no label. Fails when the series was added before."""
        text = selector(name, labels)
        assert all(text != other for other, _ in self.series), f"{text} is given twice"
        self.series.append((text, str(values)))

    def expect(self, expression: str, minute: float, *samples: tuple[Labels, float]) -> None:
        """Expect the expression to give exactly these samples at that minute."""
        listed = [(selector(labels.get(NAME, ""), labels), value) for labels, value in samples]
        self.expectations.append((expression, minute, listed))

    def expect_firing(self, alert: str, namespace: str, minute: float, found: list[Labels]) -> None:
        """Expect exactly one firing alert in that namespace for each of the label sets (FIRING_BY).

        The expectations of all namespaces at one minute become one expression: thousands of small ones take long.
        """
        self.firing.setdefault((alert, minute), {})[namespace] = found

    def asked(self) -> list[tuple[str, float, list[tuple[str, float]]]]:
        """Every expression with its minute and its expected samples."""
        together = []
        for (alert, minute), spaces in self.firing.items():
            chosen = f'alertname="{alert}", alertstate="firing", namespace=~"{"|".join(spaces)}"'
            samples = [(selector("", {**labels, "namespace": name}), 1.0) for name in spaces for labels in spaces[name]]
            together.append((f"count by (namespace, {FIRING_BY}) (ALERTS{{{chosen}}})", minute, samples))
        return self.expectations + together

    def expect_alerts(self, alert: str, minute: float, *found: tuple[Labels, Labels]) -> None:
        """Expect exactly these alerts (labels, annotations) to fire at that minute."""
        self.alerts.append((alert, minute, list(found)))


def dashboard_of(alert: Alert, labels: Labels) -> str:
    """The annotation `dashboard_url` of an instance of the alert with these labels."""
    chosen = "&".join(f"var-{name}={quote_plus(labels.get(name, ''))}" for name in alert.dashboard.variables)
    return f"/d/{alert.dashboard}?{chosen}"


def selector(name: str, labels: Labels) -> str:
    inner = ", ".join(f"{key}={json.dumps(value)}" for key, value in sorted(labels.items()) if value and key != NAME)
    return f"{name}{{{inner}}}"


def write_rules(folder: Path, groups: Iterable[Group] = GROUPS) -> list[str]:
    """Write one file per group. Returns their names, as a test file lists them."""
    names = []
    for group in groups:
        path = folder / f"{group.name}.rules.yaml"
        path.write_text(rule_file(group))
        names.append(path.name)
    return names


def write_test(
    path: Path,
    rules: list[str],
    fixtures: Iterable[RuleFixture],
    groups: Iterable[Group] = GROUPS,
    interval: int = INTERVAL_SECONDS,
) -> Path:
    """Write a test file, as JSON: promtool reads YAML, of which JSON is a subset, and JSON is written faster.

    promtool evaluates every group in the same `interval`, in seconds, whatever interval the group has.
    """
    path.write_text(
        json.dumps(
            {
                "rule_files": rules,
                "evaluation_interval": f"{interval}s",
                "group_eval_order": [group.name for group in groups],
                "tests": [_rule_test(fixture) for fixture in fixtures],
            },
            indent=1,
        )
    )
    return path


def _rule_test(fixture: RuleFixture) -> dict[str, object]:
    return {
        "interval": f"{STEP}s",
        "input_series": [{"series": series, "values": values} for series, values in fixture.series],
        "promql_expr_test": [
            {
                "expr": expression,
                "eval_time": _at(minute),
                "exp_samples": [{"labels": labels, "value": value} for labels, value in samples],
            }
            for expression, minute, samples in fixture.asked()
        ],
        "alert_rule_test": [
            {
                "eval_time": _at(minute),
                "alertname": alert,
                "exp_alerts": [{"exp_labels": dict(labels), "exp_annotations": dict(notes)} for labels, notes in found],
            }
            for alert, minute, found in fixture.alerts
        ],
    }


def _at(minute: float) -> str:
    return f"{round(minute * 60)}s"


def run(*files: Path, promtool: str = "") -> dict[Path, str]:
    """Run the test files in one process. Returns the failures that promtool reports for each, empty for none.

    `promtool` is the path of another one than the usual.
    """
    command = [promtool or tool("promtool"), "test", "rules", *map(str, files)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=900
    )
    parts = re.split(r"^Unit Testing: *(\S+)$", done.stdout, flags=re.MULTILINE)
    found = {Path(name): text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}
    assert set(found) == set(files), done.stdout
    return {path: "" if text == "SUCCESS" else text for path, text in found.items()}
