"""Helpers that fill the demo's Prometheus with an hour of history: raw series, recorded series, ALERTS_FOR_STATE.

Raw series come from the exporters' own pipelines (`raw_history.py`). Recorded series come from range queries with the
rules' own expressions, layer by layer: the rules are sorted so that each reads only series of earlier layers. All
samples are written as blocks of Prometheus' storage. ALERTS_FOR_STATE is since when an alert's condition is true.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from alerts.rules.rule import INTERVAL_SECONDS
from alerts.rules.rulefile import NO_TEAM
from demo.processes import DemoError
from demo.prometheus import PrometheusApi
from exporter.metric import AnyFamily, HistogramFamily, escape

RAW_STEP = 60.0
RULE_STEP = float(INTERVAL_SECONDS)
"""Seconds between two samples of raw series and of recorded series."""
SERIES_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")

HistorySample = tuple[str, str, float, float]
"""Name, text of the labels, value, time in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class ScrapeTarget:
    """The labels that Prometheus adds to every series of one target."""

    labels: Mapping[str, str]
    honor_labels: bool
    """Whether a label of the series takes precedence over the target's; otherwise it is renamed to `exported_…`."""

    def stored_labels(self, pairs: Iterable[tuple[str, str]]) -> str:
        """The labels that Prometheus stores for a series that is exposed with these, as text in braces."""
        merged = dict(self.labels)
        for name, value in dict(pairs).items():
            if name not in self.labels or self.honor_labels:
                merged[name] = value
            else:
                merged[f"exported_{name}"] = value
        return label_text(merged)


def label_text(labels: Mapping[str, str]) -> str:
    """Write labels in braces, without empty ones."""
    return "{" + ",".join(f'{name}="{escape(value)}"' for name, value in sorted(labels.items()) if value) + "}"


def scraped_samples(families: Iterable[AnyFamily], target: ScrapeTarget, at: float) -> Iterator[HistorySample]:
    """The samples that a scrape of these families at this time stores."""
    for family in families:
        if isinstance(family, HistogramFamily):  # no rule and no panel of the demo reads one
            continue
        for labels, value in family.samples:
            yield family.metric.name, target.stored_labels(labels.pairs), float(value), at
    yield "up", label_text(target.labels), 1.0, at


def write_block(samples: Iterable[HistorySample], work: Path, data: Path, promtool: str) -> None:
    """Write samples as a TSDB block below `data`. Raises DemoError when promtool fails.

    The samples of each series must be in order of time. `work` is a folder for an intermediate file.
    """
    source = work / "history.om"
    with source.open("w", encoding="utf-8") as file:
        file.writelines(f"{name}{labels} {value!r} {at:.3f}\n" for name, labels, value, at in samples)
        file.write("# EOF\n")
    done = subprocess.run(  # noqa: S603 - the demo's own command
        [promtool, "tsdb", "create-blocks-from", "openmetrics", "--quiet", str(source), str(data)],
        capture_output=True,
        text=True,
        check=False,
    )
    source.unlink()
    if done.returncode:
        raise DemoError(f"promtool could not write history: {done.stderr.strip()}")


@dataclass(frozen=True, slots=True)
class LoadedRule:
    """One rule of a file; `name` is the name of the recorded series or of the alert."""

    name: str
    expression: str
    labels: Mapping[str, str]
    alert: bool


def load_rules(files: Sequence[Path]) -> list[LoadedRule]:
    """Read every rule of these files."""
    groups = [group for file in files for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]]
    return [_rule(entry) for group in groups for entry in group["rules"]]


def _rule(entry: Mapping[str, Any]) -> LoadedRule:
    name = entry.get("record") or entry["alert"]
    # The namespaces of the demo have no team, for which the rule has a template: Prometheus fills it in.
    labels = {label: NO_TEAM if label == "team" else value for label, value in entry.get("labels", {}).items()}
    return LoadedRule(name, entry["expr"], labels, "alert" in entry)


def layers(rules: Sequence[LoadedRule]) -> list[list[LoadedRule]]:
    """Sort rules into layers: the recorded series that a rule reads all come from earlier layers.

    Raises DemoError when rules read each other's series in a circle.
    """
    recorded = {rule.name for rule in rules if not rule.alert}
    inputs = {id(rule): (set(SERIES_NAME.findall(rule.expression)) & recorded) - {rule.name} for rule in rules}
    available: set[str] = set()
    left = list(rules)
    found = []
    while left:
        ready = [rule for rule in left if inputs[id(rule)] <= available]
        if not ready:
            raise DemoError(f"rules depend on each other in a circle: {', '.join(rule.name for rule in left)}")
        names = {rule.name for rule in ready}
        left = [rule for rule in left if rule not in ready]
        available |= names - {rule.name for rule in left}
        found.append(ready)
    return found


def recorded_samples(
    api: PrometheusApi, rules: Iterable[LoadedRule], start: float, end: float
) -> Iterator[HistorySample]:
    """The samples that these rules would have recorded between two times, computed by the Prometheus behind `api`."""
    for rule in rules:
        for series in api.query_range(rule.expression, start, end, RULE_STEP):
            if rule.alert:
                yield from _alert_samples(rule, series, end)
            else:
                labels = {k: v for k, v in series["metric"].items() if k != "__name__"} | dict(rule.labels)
                for at, value in series["values"]:
                    yield rule.name, label_text(labels), float(value), float(at)


def _alert_samples(rule: LoadedRule, series: Mapping[str, Any], end: float) -> Iterator[HistorySample]:
    """Samples of `ALERTS_FOR_STATE` for an alert whose condition is true at `end`; none for any other.

    There is one for each evaluation since the condition became true, and its value is the time of the first of them.
    Prometheus restores pending alerts from this series when it starts.
    """
    times = [float(at) for at, _ in series["values"]]
    if times[-1] < end - RULE_STEP:
        return
    since = times[-1]
    for at in reversed(times):
        if since - at > RULE_STEP:
            break
        since = at
    labels = {k: v for k, v in series["metric"].items() if k != "__name__"} | dict(rule.labels)
    for at in times:
        if at >= since:
            yield "ALERTS_FOR_STATE", label_text({**labels, "alertname": rule.name}), since, at
