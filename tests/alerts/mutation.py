"""Every way to leave one clause out of a rule: what a test suite must notice."""

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass

import promql_parser as pp

from alerts import GROUPS
from alerts.rule import Alert, Group, Rule
from tests.promql import selectors, walk

ALERT = "GPUPodLowUtilization"
NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")

JUDGING = frozenset(
    {
        "global:gpugauge_threshold:value",
        "gpu_instance:active:ratio",
        "gpu_instance:video_active:ratio",
        "gpu_instance:busy:ratio",
        "namespace_pod_gpu:gpugauge_holder:info",
        "namespace_pod:gpugauge_gpu_pod:info",
        "namespace_pod_gpu:gpugauge_allocation:info",
        "gpu_instance:holders:count",
        "pod:gpu_devices:count",
        "pod:gpu_workload:info",
        "namespace_pod_gpu:gpu_busy:ratio",
        "pod:gpu_busy:ratio",
        "pod:gpu_start_timestamp:seconds",
        "pod:gpu_running:info",
        "pod:gpu_low_utilization_threshold:ratio",
        ALERT,
    }
)
"""The alert and every recorded series it rests on; a test holds this to what the expressions select."""


@dataclass(frozen=True)
class Mutant:
    rule: str
    what: str
    mutated: Rule

    def chain(self, number: int) -> "Chain":
        """The mutated rule and all that rest on it, under names of their own: they run beside the true ones."""
        downstream = {self.rule}
        rules = [self.mutated if rule.name == self.rule else rule for group in judging_groups() for rule in group.rules]
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
        """The text with every name of the chain marked as this mutant's.

        `but`: the name that stays. In an expression of a rule the alert's name is a value that users write.
        """
        names = self.names - {but}
        return NAME.sub(lambda m: f"{m[0]}_mutant{self.number}" if m[0] in names else m[0], text)


def judging_groups() -> tuple[Group, ...]:
    groups = []
    for group in GROUPS:
        kept = tuple(rule for rule in group.rules if rule.name in JUDGING)
        if kept:
            groups.append(Group(group.name, kept))
    return tuple(groups)


def mutants() -> Iterator[Mutant]:
    seen = set()
    for group in judging_groups():
        for rule in group.rules:
            root = pp.parse(rule.expr)
            for what, changed in _changes(root):
                key = (rule.name, changed)
                if changed != str(root) and key not in seen:
                    seen.add(key)
                    pp.parse(changed)  # a mutant that no parser accepts would prove nothing
                    yield Mutant(rule.name, what, dataclasses.replace(rule, expr=changed))
            if isinstance(rule, Alert):
                yield Mutant(rule.name, "no for", dataclasses.replace(rule, wait="0s"))
                yield Mutant(rule.name, "no keep_firing_for", dataclasses.replace(rule, keep=""))


def _changes(root: pp.Expr) -> Iterator[tuple[str, str]]:
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
