"""What a comparison found: groups of series, labels and values with one reason each."""

from dataclasses import dataclass, field
from enum import StrEnum

from exporter.commands.compare.reasons import FACTS, HARMLESS, CompareReason, SwitchCause


class SwitchGroup(StrEnum):
    """What became of a series, a label or a value."""

    SAME = "same"
    RENAMED = "renamed"
    MISSING = "missing"
    DIFFERENT = "different"
    NEW = "new"


@dataclass(slots=True)
class SwitchFinding:
    """Series with the same fate for the same reason."""

    group: SwitchGroup
    reason: CompareReason | None
    """None where nothing changed."""
    label: str = ""
    """The label that the finding is about; empty where it is about whole series."""
    metrics: dict[str, int] = field(default_factory=dict)
    """The number of series of each metric."""
    example: str = ""
    """One of them, in words."""

    @property
    def series(self) -> int:
        return sum(self.metrics.values())

    @property
    def cause(self) -> SwitchCause | None:
        return None if self.reason is None else FACTS[self.reason][0]

    @property
    def link(self) -> str:
        """The page that explains it; empty where nothing changed."""
        return "" if self.reason is None else FACTS[self.reason][1]

    @property
    def harmless(self) -> bool:
        return self.cause is None or self.cause in HARMLESS


class SwitchFindings:
    """Collects findings; those of a group with the same reason and label are one."""

    def __init__(self) -> None:
        self._found: dict[tuple[SwitchGroup, CompareReason | None, str], SwitchFinding] = {}

    def add(
        self,
        group: SwitchGroup,
        reason: CompareReason | None,
        metric: str,
        *,
        label: str = "",
        example: str = "",
        series: int = 1,
    ) -> None:
        """Count series of a metric. The first example is kept."""
        found = self._found.setdefault((group, reason, label), SwitchFinding(group, reason, label))
        found.metrics[metric] = found.metrics.get(metric, 0) + series
        found.example = found.example or example

    def sorted(self) -> list[SwitchFinding]:
        """By group, those that need somebody first."""
        order = list(SwitchGroup)
        return sorted(
            self._found.values(),
            key=lambda each: (order.index(each.group), each.harmless, each.reason or "", each.label),
        )
