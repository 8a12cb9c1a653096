"""Mutants: rules from which one clause is left out, in every possible way. Tests must fail for each of them."""

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass

import promql_parser as pp

from alerts import GROUPS
from alerts.rules.rule import Alert, Group, Rule
from tests.promql import selectors, walk

ALERT = "GPUPodLowUtilization"
NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")

RULES_OF_ALERT = frozenset(
    {
        "pod:gpu_elsewhere:info",
        "pod:gpu_moved:info",
        "pod:gpu_devices:count",
        "pod:gpu_workload:info",
        "global:gpu_pod_activity:info",
        "pod:gpu_busy:count",
        "pod:gpu_busy:ratio",
        "pod:gpu_exempt:info",
        "namespace:gpu_exempt:info",
        "pod:gpu_running:seconds",
        "pod:gpu_judged:info",
        "pod:gpu_low_utilization_threshold:ratio",
        ALERT,
    }
)
"""The alert and every aggregate that it depends on; a test compares this with what the expressions select.

Without what the adapters record under the names of exposed series: a mutant could not be told from those. Without the
thresholds, of which several have one name.
"""


@dataclass(frozen=True)
class Mutant:
    rule: str
    what: str
    mutated: Rule

    def chain(self, number: int) -> "Chain":
        """The mutated rule and all rules that depend on it, renamed, so that they run beside the original ones."""
        downstream = {self.rule}
        rules = [
            self.mutated if rule.name == self.rule else rule for group in groups_of_alert() for rule in group.rules
        ]
        for rule in rules:
            if any(name in downstream for name, _ in selectors(rule.expr)):
                downstream.add(rule.name)
        chain = Chain(number, frozenset(downstream))
        renamed = (
            dataclasses.replace(rule, name=chain.rename(rule.name), expr=chain.rename(rule.expr, but=ALERT))
            for rule in rules
            if rule.name in downstream
        )
        return dataclasses.replace(chain, rules=tuple(renamed))


@dataclass(frozen=True)
class Chain:
    number: int
    names: frozenset[str]
    rules: tuple[Rule, ...] = ()

    def rename(self, text: str, but: str = "") -> str:
        """Add the number of the mutant to every name of the chain in the text.

        `but` is not renamed: in the expression of a rule the name of the alert is the value of a label.
        """
        names = self.names - {but}
        return NAME.sub(lambda m: f"{m[0]}_mutant{self.number}" if m[0] in names else m[0], text)


def groups_of_alert() -> tuple[Group, ...]:
    groups = []
    for group in GROUPS:
        kept = tuple(rule for rule in group.rules if rule.name in RULES_OF_ALERT)
        if kept:
            groups.append(Group(group.name, kept))
    return tuple(groups)


def mutants() -> Iterator[Mutant]:
    seen = set()
    for group in groups_of_alert():
        for rule in group.rules:
            root = pp.parse(rule.expr)
            for what, changed in changes(root):
                key = (rule.name, changed)
                if changed != str(root) and key not in seen:
                    seen.add(key)
                    pp.parse(changed)  # a mutant that no parser accepts would prove nothing
                    yield Mutant(rule.name, what, dataclasses.replace(rule, expr=changed))
            if isinstance(rule, Alert):
                yield Mutant(rule.name, "no for", dataclasses.replace(rule, for_="0s"))
                yield Mutant(rule.name, "no keep_firing_for", dataclasses.replace(rule, keep_firing_for=""))


def changes(root: pp.Expr) -> Iterator[tuple[str, str]]:
    text = str(root)
    for node in walk(root):
        for what, replacement in _instead(node):
            whole = str(node)
            for number in range(text.count(whole)):
                yield f"{what} in {whole[:160]} #{number}", _replaced(text, whole, replacement, number)


def _replaced(text: str, old: str, new: str, number: int) -> str:
    at = -1
    for _ in range(number + 1):
        at = text.index(old, at + 1)
    return text[:at] + new + text[at + len(old) :]


def _instead(node: pp.Expr) -> Iterator[tuple[str, str]]:
    match node:
        case pp.BinaryExpr():
            yield from _binary(node)
        case pp.AggregateExpr():
            if str(node.op) == "avg":
                yield "max for avg", f"max{str(node)[3:]}"
                yield "min for avg", f"min{str(node)[3:]}"
            if str(node.op) == "topk":
                yield "no topk", str(node.expr)
        case pp.Call():
            yield from _call(node)
        case pp.VectorSelector():
            yield from _matchers(node)


def _binary(node: pp.BinaryExpr) -> Iterator[tuple[str, str]]:
    match str(node.op):
        case "or":
            yield "no left of or", str(node.rhs)
            yield "no right of or", str(node.lhs)
        case "and" | "unless" as word:
            yield f"no {word}", str(node.lhs)
        case "<" | ">" | ">=" | "==" | "/" as sign:
            yield f"no {sign}", str(node.lhs)


def _call(node: pp.Call) -> Iterator[tuple[str, str]]:
    match node.func.name:
        case "label_replace":
            yield f"no label_replace of {node.args[1]}", str(node.args[0])
        case "avg_over_time":
            inner = str(node.args[0])
            for other in ("max_over_time", "min_over_time", "last_over_time"):
                yield f"{other} for avg_over_time", f"{other}({inner})"
            yield "5m for 15m", f"avg_over_time({inner.replace('[15m]', '[5m]')})"


def _matchers(node: pp.VectorSelector) -> Iterator[tuple[str, str]]:
    text = str(node)
    for matcher in node.matchers.matchers:
        if matcher.name != "__name__":
            for op in ("=~", "!=", "!~", "="):
                written = f'{matcher.name}{op}"{matcher.value}"'
                if written in text:
                    yield (
                        f"no {written}",
                        text.replace(written, "").replace(",,", ",").replace("{,", "{").replace(",}", "}"),
                    )
                    break
