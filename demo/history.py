"""An hour of the past for the demo's Prometheus: raw and recorded series, and since when alerts would be true.

Raw series are played from the scenarios by the very pipelines that serve the present. Recorded series are asked of a
Prometheus that holds the layers below them, with the rules' own expressions: nothing is computed here.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from demo.processes import DemoError
from demo.prometheus import Api
from exporter.metric import Family, escape

RAW_STEP = 60.0
RULE_STEP = 30.0
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")

Line = tuple[str, str, float, float]
"""Name, label text, value, time in seconds."""


@dataclass(frozen=True, slots=True)
class Target:
    """The labels that a scrape adds to every series of one page."""

    labels: Mapping[str, str]
    honor_labels: bool

    def text(self, pairs: Iterable[tuple[str, str]]) -> str:
        """The labels that Prometheus would store for a series with these pairs."""
        given = dict(pairs)
        merged = dict(self.labels)
        for name, value in given.items():
            if name not in self.labels or self.honor_labels:
                merged[name] = value
            else:
                merged[f"exported_{name}"] = value
        return label_text(merged)


def label_text(labels: Mapping[str, str]) -> str:
    """Labels in braces, without those that are empty."""
    return "{" + ",".join(f'{name}="{escape(value)}"' for name, value in sorted(labels.items()) if value) + "}"


def page_lines(families: Iterable[Family], target: Target, at: float) -> Iterator[Line]:
    """What a scrape of these families at this time would store."""
    for family in families:
        for labels, value in family.samples:
            yield family.metric.name, target.text(labels.pairs), float(value), at
    yield "up", label_text(target.labels), 1.0, at


def write_block(lines: Iterable[Line], work: Path, data: Path, promtool: str) -> None:
    """Turn lines, in order of time for each series, into a block below `data`."""
    source = work / "history.om"
    with source.open("w", encoding="utf-8") as file:
        file.writelines(f"{name}{labels} {value!r} {at:.3f}\n" for name, labels, value, at in lines)
        file.write("# EOF\n")
    made = subprocess.run(  # noqa: S603 - the demo's own command
        [promtool, "tsdb", "create-blocks-from", "openmetrics", "--quiet", str(source), str(data)],
        capture_output=True,
        text=True,
        check=False,
    )
    source.unlink()
    if made.returncode:
        raise DemoError(f"promtool could not write history: {made.stderr.strip()}")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a file; `name` is what it records, or the alert's name."""

    name: str
    expression: str
    labels: Mapping[str, str]
    alert: bool


def load_rules(files: Sequence[Path]) -> list[Rule]:
    """Every rule of these files."""
    groups = [group for file in files for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]]
    return [_rule(entry) for group in groups for entry in group["rules"]]


def _rule(entry: Mapping[str, Any]) -> Rule:
    name = entry.get("record") or entry["alert"]
    return Rule(name, entry["expr"], entry.get("labels", {}), "alert" in entry)


def layers(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Rules in layers: each reads only series that are recorded in layers before its own."""
    recorded = {rule.name for rule in rules if not rule.alert}
    needs = {id(rule): (set(NAME.findall(rule.expression)) & recorded) - {rule.name} for rule in rules}
    done: set[str] = set()
    left = list(rules)
    found = []
    while left:
        ready = [rule for rule in left if needs[id(rule)] <= done]
        if not ready:
            raise DemoError(f"rules wait for each other: {', '.join(rule.name for rule in left)}")
        names = {rule.name for rule in ready}
        left = [rule for rule in left if rule not in ready]
        done |= names - {rule.name for rule in left}
        found.append(ready)
    return found


def recorded_lines(api: Api, rules: Iterable[Rule], start: float, end: float) -> Iterator[Line]:
    """What these rules would have stored between two times."""
    for rule in rules:
        for series in api.query_range(rule.expression, start, end, RULE_STEP):
            if rule.alert:
                yield from _alert_lines(rule, series, end)
            else:
                labels = {k: v for k, v in series["metric"].items() if k != "__name__"} | dict(rule.labels)
                for at, value in series["values"]:
                    yield rule.name, label_text(labels), float(value), float(at)


def _alert_lines(rule: Rule, series: Mapping[str, Any], end: float) -> Iterator[Line]:
    """`ALERTS_FOR_STATE` of an alert that is true at the end: since when, at each evaluation since."""
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
