"""Which labels and annotations of pods are meant, by patterns of their names. No I/O."""

import re
import warnings
from dataclasses import dataclass
from typing import Self


class PatternError(ValueError):
    """A pattern cannot be used. The text says why, and has the pattern."""


@dataclass(frozen=True, slots=True)
class NamePatterns:
    """Patterns of names: `name in patterns`. Without a pattern no name is meant."""

    expressions: tuple[re.Pattern[str], ...] = ()

    def __contains__(self, name: str) -> bool:
        return any(expression.search(name) for expression in self.expressions)

    @classmethod
    def whole(cls, texts: tuple[str, ...]) -> Self:
        """Each text is a name, or an expression that matches the whole of it. Raises PatternError."""
        return cls(tuple(_compiled(text, rf"\A(?:{text})\Z") for text in texts))

    @classmethod
    def anywhere(cls, texts: tuple[str, ...]) -> Self:
        """Each text is an expression that matches any part of a name, as in dcgm-exporter. Raises PatternError."""
        return cls(tuple(_compiled(text, text) for text in texts))


def _compiled(text: str, expression: str) -> re.Pattern[str]:
    """What another language reads otherwise, Python warns of: it is an error, because more names could be meant."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(text)  # by itself: parentheses of a part of one could close those around it
            return re.compile(expression)
    except (re.error, Warning, OverflowError, RecursionError) as error:
        raise PatternError(f"{text!r} is not a regular expression: {error}") from None
