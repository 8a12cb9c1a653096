"""The rows that the bench prints: what was measured, what the budget is, and whether it holds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WIDTHS = (58, 12, 12, 5)


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure; `budget` is the largest that is allowed, None where the figure is only told."""

    what: str
    value: float
    unit: str
    budget: float | None = None
    note: str = ""

    @property
    def over(self) -> bool:
        return self.budget is not None and self.value > self.budget

    def cells(self) -> tuple[str, str, str, str]:
        """As text: what, value, budget, verdict."""
        budget = "" if self.budget is None else f"{figure(self.budget)} {self.unit}"
        verdict = "" if self.budget is None else ("OVER" if self.over else "ok")
        return self.what, f"{figure(self.value)} {self.unit}", budget, verdict


@dataclass(frozen=True, slots=True)
class Section:
    """Rows under one heading, with remarks on how they were measured."""

    title: str
    rows: Sequence[Row]
    remarks: Sequence[str] = ()

    def text(self) -> str:
        """The section as it is printed."""
        lines = ["", self.title, "-" * len(self.title), *map(_line, self.rows)]
        return "\n".join([*lines, *(f"  {remark}" for remark in self.remarks)])


def figure(value: float) -> str:
    """Three digits that matter."""
    for bound, places in ((100, 0), (10, 1), (1, 2)):
        if abs(value) >= bound:
            return f"{value:.{places}f}"
    return f"{value:.3f}"


def over(sections: Iterable[Section]) -> list[Row]:
    """Every row that is over its budget."""
    return [row for section in sections for row in section.rows if row.over]


def _line(row: Row) -> str:
    what, value, budget, verdict = row.cells()
    line = f"{what:<{WIDTHS[0]}}{value:>{WIDTHS[1]}}{budget:>{WIDTHS[2]}}  {verdict:<{WIDTHS[3]}}"
    return f"{line} {row.note}".rstrip()
