"""Reasons: closed sets of label values that state why something is missing or limited, with meaning and remedy.

`docs/troubleshooting.md` is generated from every subclass of `Reason`.
"""

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Base of every closed set of reasons. A member is written as `NAME = "label value", "meaning", "remedy"`."""

    meaning: str
    """One line: what was observed."""
    remedy: str
    """One line: what an operator can do about it."""

    def __new__(cls, value: str, meaning: str, remedy: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        member.remedy = remedy
        return member

    @classmethod
    def of(cls, value: str) -> Self:
        """The member with this label value. Raises KeyError when there is none."""
        return {str(member): member for member in cls}[value]


def find_reason(value: str, *sets: type[Reason]) -> Reason | None:
    """The member with this label value of the first set that has one, or None."""
    return next((reason for each in sets for reason in each if reason == value), None)
