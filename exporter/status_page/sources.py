"""The tables that both programs have: their sources with problems, and reasons with meaning and remedy."""

from collections.abc import Callable

from exporter.reason import Reason
from exporter.snapshot import Snapshot
from exporter.status_page.content import Cell, Mark, StatusPage, StatusTable, absent, table, text

FindReason = Callable[[str, str], Reason | None]
"""Returns the reason with this label value of a source; None where no table has it."""


def sources_table(snapshot: Snapshot, find: FindReason) -> StatusTable:
    """Each source, whether it was read, and each of its problems. Messages stay in the log: they may have paths."""
    rows = [
        (text(each.source), _state(each.up), *explained(each.reason, find(each.source, each.reason)))
        for each in snapshot.health
    ]
    rows += [
        (text(each.source), text("problem", mark=Mark.BAD), *explained(each.reason, find(each.source, each.reason)))
        for each in snapshot.problems
    ]
    return table("Sources", ("Source", "State", "Reason", "Meaning", "Remedy"), rows, "No source was read yet.")


def in_order_of_need(snapshot: Snapshot, sources: StatusTable, *data: StatusTable) -> tuple[StatusTable, ...]:
    """The sources come before the data while one has a problem, else after them."""
    healthy = all(each.up for each in snapshot.health) and not snapshot.problems
    return (*data, sources) if healthy else (sources, *data)


def explained(value: str, reason: Reason | None) -> tuple[Cell, Cell, Cell]:
    """The label value of a reason, its meaning and its remedy."""
    name = text(value) if value else absent()
    if reason is None:
        return name, absent("see the log" if value else ""), absent()
    return name, text(reason.meaning), text(reason.remedy)


def _state(up: bool) -> Cell:  # noqa: FBT001 - the value of `gpugauge_source_up`
    return text("up", mark=Mark.GOOD) if up else text("down", mark=Mark.BAD)


def failed_page(collections: int, facts: tuple[tuple[str, Cell], ...]) -> StatusPage:
    """The page while there is no snapshot, after so many collections."""
    why = "the last one failed because of a defect in gpugauge; the log has the traceback"
    state = text(why, mark=Mark.BAD) if collections else text("the first one has not ended yet")
    return StatusPage((*facts, ("Collection", state)), ())
