"""Writes measured figures as the tables that the bench prints: value, budget, and whether the budget is kept."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WIDTHS = (58, 12, 12, 5)


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure; `budget` is the largest allowed value, None where there is no budget."""

    what: str
    value: float
    unit: str
    budget: float | None = None
    note: str = ""

    @property
    def over(self) -> bool:
        """Whether the figure is over its budget."""
        return self.budget is not None and self.value > self.budget

    def columns(self) -> tuple[str, str, str, str]:
        """The row as text: what, value, budget, result."""
        budget = "" if self.budget is None else f"{figure(self.budget)} {self.unit}"
        result = "" if self.budget is None else ("OVER" if self.over else "ok")
        return self.what, f"{figure(self.value)} {self.unit}", budget, result


@dataclass(frozen=True, slots=True)
class BenchSection:
    """Rows under one heading, with remarks on how they were measured."""

    title: str
    rows: Sequence[Figure]
    remarks: Sequence[str] = ()

    def text(self) -> str:
        """Write the section as it is printed."""
        lines = ["", self.title, "-" * len(self.title), *map(_line, self.rows)]
        return "\n".join([*lines, *(f"  {remark}" for remark in self.remarks)])


def figure(value: float) -> str:
    """Write a number with three significant digits."""
    for bound, places in ((100, 0), (10, 1), (1, 2)):
        if abs(value) >= bound:
            return f"{value:.{places}f}"
    return f"{value:.3f}"


def over(sections: Iterable[BenchSection]) -> list[Figure]:
    """Find every row that is over its budget."""
    return [row for section in sections for row in section.rows if row.over]


def _line(row: Figure) -> str:
    what, value, budget, result = row.columns()
    line = f"{what:<{WIDTHS[0]}}{value:>{WIDTHS[1]}}{budget:>{WIDTHS[2]}}  {result:<{WIDTHS[3]}}"
    return f"{line} {row.note}".rstrip()
