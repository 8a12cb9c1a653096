"""Judges what texts use against a response: what would find nothing after a switch, and what replaces it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from exporter.commands.compare.absent import absent_metric
from exporter.commands.compare.identity import quantity
from exporter.commands.compare.labels import CONTAINER, absent_label, written
from exporter.commands.compare.reasons import CompareReason
from exporter.commands.compare.response import MetricsResponse
from exporter.commands.compare.uses.expression import LabelMatcher, Selector, used
from exporter.commands.compare.uses.passages import Passage
from exporter.node.devices.counters.computed_metrics import COMPUTED
from exporter.node.devices.fields.field import fields_by_name
from exporter.node.devices.series.labels import MIG_LABELS

_EXPORTED = "exported_"
_OF_THE_TARGET = frozenset({"instance", "job", "cluster", "node", "endpoint", "service", "prometheus"})
"""Labels that a scrape gives every series."""
_OF_THE_VALUE = frozenset({"err_code", "err_msg"}).union(*(each.labels for each in COMPUTED.values()))
"""Labels that only some metrics have."""
_ALLOCATIONS = "gpugauge_allocation_info"


@dataclass(slots=True)
class SwitchUse:
    """A metric, label or matcher that would find nothing, or that no exporter writes."""

    kind: str
    """`metric`, `label` or `matcher`."""
    what: str
    reason: CompareReason
    replacement: str
    places: list[str] = field(default_factory=list)

    @property
    def loses_data(self) -> bool:
        return self.reason != CompareReason.FROM_ELSEWHERE


@dataclass(frozen=True)
class UsesJudge:
    """What the texts ask for is looked up in this response."""

    new: MetricsResponse

    @cached_property
    def _labels(self) -> frozenset[str]:
        return written(self.new)

    @cached_property
    def _spellings(self) -> dict[str | int, str]:
        return {quantity(name): name for name in self.new.by_name}

    def judge(self, texts: Iterable[Passage]) -> list[SwitchUse]:
        """Every use that needs a look, each once with all its places; those that lose data first."""
        found: dict[tuple[str, str], SwitchUse] = {}
        for text in texts:
            for use in self._of(text):
                kept = found.setdefault((use.kind, use.what), use)
                if text.place not in kept.places:
                    kept.places.append(text.place)
        return sorted(
            found.values(), key=lambda each: (not each.loses_data, each.reason, each.replacement, each.kind, each.what)
        )

    def _of(self, text: Passage) -> Iterator[SwitchUse]:
        use = used(text.text)
        for selector in use.selectors:
            yield from self._metric(selector.metric)
            for matcher in selector.matchers:
                if matcher.demands_label:
                    yield from self._matcher(selector, matcher)
        if use.selectors:
            for label in (*use.labels, *text.legend):
                reason = self._absent(label)
                if reason is not None:
                    yield SwitchUse("label", label, reason, reason.remedy)

    def _metric(self, name: str) -> Iterator[SwitchUse]:
        if name in self.new.by_name:
            return
        other = self._spellings.get(quantity(name))
        if other is not None:
            yield SwitchUse("metric", name, CompareReason.METRIC_SPELLING, f"Ask for {other}.")
            return
        reason = absent_metric(name, self.new)
        yield SwitchUse("metric", name, reason, reason.remedy)

    def _matcher(self, selector: Selector, matcher: LabelMatcher) -> Iterator[SwitchUse]:
        reason = self._lost(selector.metric, _plain(matcher.label)) or self._absent(matcher.label)
        if reason is not None:
            yield SwitchUse("matcher", f"{selector.metric}{{{matcher}}}", reason, reason.remedy)
        elif not self._known(matcher.label):
            unknown = CompareReason.FROM_ELSEWHERE
            yield SwitchUse("matcher", str(matcher), unknown, unknown.remedy)

    def _lost(self, metric: str, label: str) -> CompareReason | None:
        """Why no series of a metric can have a value of a label that NEW writes on others."""
        series = self.new.by_name.get(metric, ())
        if any(each.labels.get(label) for each in series):
            return None
        if label in MIG_LABELS:
            field = fields_by_name().get(metric)
            of_gpu = field is not None and field.scope == "gpu" and field.mig != "own"
            return CompareReason.GPU_QUANTITY_BY_INSTANCE if of_gpu else None
        shared = any(each.labels.get("sharing") for each in self.new.by_name.get(_ALLOCATIONS, ()))
        return CompareReason.SHARED_DEVICE if series and shared and label in CONTAINER else None

    def _absent(self, label: str) -> CompareReason | None:
        plain = _plain(label)
        return None if plain in self._labels or plain in MIG_LABELS else absent_label(plain)

    def _known(self, label: str) -> bool:
        known = (*self._labels, *MIG_LABELS, *_OF_THE_TARGET, *_OF_THE_VALUE)
        return _plain(label) in known or label.startswith(_EXPORTED)


def _plain(label: str) -> str:
    """The label as an exporter writes it, where a scrape has renamed it."""
    short = label.removeprefix(_EXPORTED)
    return short if short in CONTAINER else label
