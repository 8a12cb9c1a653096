"""Finds in a PromQL text which DCGM metrics, matchers and labels it uses.

It is cut into words and not parsed: texts have variables of Grafana, templates of adapters, and prose around them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from exporter.node.devices.fields.field import fields_by_name

_TOKEN = re.compile(
    r"""\"(?:\\.|[^"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`|[a-zA-Z_:][\w:]*|\d[\w.]*|=~|!~|!=|[^\s]""", re.ASCII
)
_WORD = re.compile(r"[a-zA-Z_:][\w:]*", re.ASCII)
_KEEPS_LABELS = ("by", "on", "group_left", "group_right")
_OPERATORS = ("=", "!=", "=~", "!~")
_NAME = "__name__"
_SOURCE = 2
"""Which text of label_replace and label_join is the label that is read; in label_join, the first of them."""


class LabelMatcher(NamedTuple):
    """One condition in braces."""

    label: str
    operator: str
    value: str

    @property
    def demands_label(self) -> bool:
        """Whether series without the label do not match. A pattern with a variable is taken to demand it."""
        if self.operator in ("=", "!="):
            return bool(self.value) == (self.operator == "=")
        try:
            matches_nothing = re.fullmatch(self.value, "") is not None
        except re.error:
            matches_nothing = False
        return matches_nothing == (self.operator == "!~")

    def __str__(self) -> str:
        return f'{self.label}{self.operator}"{self.value}"'


class Selector(NamedTuple):
    """A metric with a DCGM name, and what is in its braces."""

    metric: str
    matchers: tuple[LabelMatcher, ...]


@dataclass(slots=True)
class ExpressionUse:
    """What a text uses."""

    selectors: list[Selector] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    """Labels that it groups by, joins on, or copies."""


def is_dcgm(word: str) -> bool:
    """Whether a word is the whole name of a metric of dcgm-exporter, today's or that of 1.x."""
    return (word.startswith(("DCGM_FI_", "DCGM_EXP_")) and not word.endswith("_")) or (
        word.startswith("dcgm_") and word in fields_by_name()
    )


def used(text: str) -> ExpressionUse:
    """Find what a text uses."""
    tokens = _TOKEN.findall(text)
    found = ExpressionUse()
    calls: list[tuple[str, list[str]]] = []
    position = 0
    while position < len(tokens):
        token, following = tokens[position], tokens[position + 1] if position + 1 < len(tokens) else ""
        position += 1
        if is_dcgm(token) or token == "{":  # noqa: S105 - a brace
            at = position + (token != "{")  # noqa: S105 - a brace
            braces, end = _matchers(tokens, at) if "{" in (token, following) else ((), position)
            found.selectors += _selectors(token, braces, tokens[end : end + 1])
            position = end
        elif token in _KEEPS_LABELS and following == "(":
            labels, position = _labels(tokens, position + 1)
            found.labels += labels
        elif token == "(":  # noqa: S105 - a parenthesis
            calls.append((tokens[position - 2] if position > 1 else "", []))
        elif token == ")" and calls:  # noqa: S105 - a parenthesis
            found.labels += _read_by_call(*calls.pop())
        elif calls:
            calls[-1][1].append(token)
    return found


def _selectors(token: str, braces: tuple[LabelMatcher, ...], after: Sequence[str]) -> Iterator[Selector]:
    names = [token] if is_dcgm(token) else [word for each in braces if each.label == _NAME for word in _names(each)]
    if after in (["*"], ["."]) and not braces and token.endswith("_"):
        return
    conditions = tuple(each for each in braces if each.label != _NAME)
    yield from (Selector(name, conditions) for name in names)


def _names(matcher: LabelMatcher) -> Iterator[str]:
    if matcher.operator in ("=", "=~"):
        yield from (name for name in re.split(r"[|()^$]", matcher.value) if _WORD.fullmatch(name) and is_dcgm(name))


def _matchers(tokens: Sequence[str], position: int) -> tuple[tuple[LabelMatcher, ...], int]:
    """What is in braces, and the position behind them."""
    found = []
    while position < len(tokens) and tokens[position] != "}":
        label, *rest = tokens[position : position + 3]
        if len(rest) == 2 and rest[0] in _OPERATORS and _WORD.fullmatch(label):  # noqa: PLR2004 - operator and value
            found.append(LabelMatcher(label, rest[0], _unquoted(rest[1])))
            position += 2
        position += 1
    return tuple(found), position + 1


def _labels(tokens: Sequence[str], position: int) -> tuple[list[str], int]:
    end = position
    while end < len(tokens) and tokens[end] != ")":
        end += 1
    return [each for each in tokens[position:end] if _WORD.fullmatch(each)], end + 1


def _read_by_call(function: str, rest: Sequence[str]) -> Sequence[str]:
    """The labels that a call reads, of the words and texts in its parentheses."""
    if function == "label_values" and rest and _WORD.fullmatch(rest[-1]):
        return rest[-1:]
    texts = [_unquoted(each) for each in rest if each[0] in "\"'`"]
    if function == "label_replace":
        return texts[_SOURCE : _SOURCE + 1]
    return texts[_SOURCE:] if function == "label_join" else ()


def _unquoted(token: str) -> str:
    return token[1:-1].replace("\\\\", "\\") if token[0] in "\"'`" else token
