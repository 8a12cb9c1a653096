"""What a PromQL expression reads: the series it selects, and the labels by which it groups and joins."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import promql_parser

LITERALS = re.compile(r"[A-Za-z0-9_:]+(\|[A-Za-z0-9_:]+)*")


@dataclass(frozen=True)
class Matcher:
    """One label matcher; `op` is `=`, `!=`, `=~` or `!~`."""

    op: str
    value: str


OPERATORS = {"Equal": "=", "NotEqual": "!=", "Re": "=~", "NotRe": "!~"}


def walk(node: promql_parser.Expr) -> Iterator[promql_parser.Expr]:
    """Yield the node and all nodes below it, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def children(node: promql_parser.Expr) -> list[promql_parser.Expr]:
    """The nodes directly below a node."""
    match node:
        case promql_parser.BinaryExpr():
            return [node.lhs, node.rhs]
        case promql_parser.AggregateExpr():
            return [node.param, node.expr] if node.param is not None else [node.expr]
        case promql_parser.Call():
            return list(node.args)
        case promql_parser.MatrixSelector():
            return [node.vector_selector]
        case promql_parser.ParenExpr() | promql_parser.UnaryExpr() | promql_parser.SubqueryExpr():
            return [node.expr]
    return []


def selectors(expression: str) -> list[tuple[str, dict[str, Matcher]]]:
    """Every metric name that the expression selects, with its label matchers.

    A selector on `__name__` with literals separated by `|` counts as one selector for each of them. Raises ValueError
    for any other selector without a metric name.
    """
    found = []
    for node in walk(promql_parser.parse(expression)):
        if isinstance(node, promql_parser.VectorSelector):
            matchers = {
                m.name: Matcher(OPERATORS[str(m.op).removeprefix("MatchOp.")], m.value) for m in node.matchers.matchers
            }
            by_name = matchers.pop("__name__", None)
            found += [(name, matchers) for name in _names(node.name, by_name)]
    return found


def _names(name: str | None, matcher: Matcher | None) -> list[str]:
    if name:
        return [name]
    if matcher is None or matcher.op not in ("=", "=~") or not LITERALS.fullmatch(matcher.value):
        raise ValueError(f"a selector without a metric name: {matcher}")
    return matcher.value.split("|")


def grouping_labels(expression: str) -> set[str]:
    """The labels named by every `by`, `without`, `on`, `ignoring`, `group_left` and `group_right`."""
    labels: set[str] = set()
    for node in walk(promql_parser.parse(expression)):
        modifier = getattr(node, "modifier", None)
        if modifier is None:
            continue
        if isinstance(node, promql_parser.AggregateExpr):
            labels.update(modifier.labels)
        else:
            labels.update(modifier.matching.labels if modifier.matching else [])
            labels.update(modifier.group_labels or [])
    return labels
