"""Compares two responses, series by series. In: what OLD and NEW answered. Out: findings. No I/O."""

from exporter.commands.compare.absent import absent_series, keys_of, xid_zero
from exporter.commands.compare.finding import SwitchFinding, SwitchFindings, SwitchGroup
from exporter.commands.compare.identity import PREFIX, QuantityKey, canonical, device_of, without_instance
from exporter.commands.compare.labels import CONTAINER, absent_label, other_value, spelled, without_label
from exporter.commands.compare.reasons import CompareReason
from exporter.commands.compare.response import MetricSeries, MetricsResponse
from exporter.node.devices.series.labels import INSTANCE_IDS

CLOSE = 5e-7
"""dcgm-exporter before 4.8.3 writes six decimal places."""
NEAR = 0.1
"""By what share two readings of a quantity that moves may differ."""
_OF_THE_PROGRAM = ("go_", "process_", "python_", "promhttp_", "scrape_")
_ALLOCATED_PODS = "gpugauge_device_allocated_pods"


class ResponseComparison:
    """Two responses and what was found."""

    def __init__(self, old: MetricsResponse, new: MetricsResponse) -> None:
        self.old, self.new = old, new
        self._found = SwitchFindings()
        self._olds, self._news = keys_of(old), keys_of(new)
        self._seen: set[QuantityKey] = set()
        """Keys of NEW that stand for a series of OLD."""
        self._labels = {label for each in new.series if each.name.startswith(PREFIX) for label in each.written()}

    def findings(self) -> list[SwitchFinding]:
        """Compare everything."""
        for key, positions in self._olds.items():
            self._one(key, [self.old.series[each] for each in positions])
        for key, positions in self._news.items():
            if key not in self._seen:
                self._new(self.new.series[positions[0]], len(positions))
        for response, name in ((self.old, "OLD"), (self.new, "NEW")):
            for each in response.rejected:
                self._found.add(
                    SwitchGroup.DIFFERENT, CompareReason.LINE_REJECTED, name, example=f"{response.origin}: {each}"
                )
        return self._found.sorted()

    def _one(self, key: QuantityKey, olds: list[MetricSeries]) -> None:
        name, found = olds[0].name, self._news.get(key)
        whole = without_instance(key)
        if found is None and whole != key and whole in self._news:
            self._seen.add(whole)
            self._found.add(SwitchGroup.MISSING, CompareReason.ONCE_PER_GPU, name, series=len(olds))
            return
        if found is None:
            self._missing(key, olds)
            return
        self._seen.add(key)
        if len(olds) > 1 and len(found) < len(olds):
            series = len(olds) - len(found)
            self._found.add(SwitchGroup.MISSING, CompareReason.ONCE_PER_DEVICE, name, series=series)
        self._pair(key, olds, self._alike(olds[0], [self.new.series[each] for each in found]))

    @staticmethod
    def _alike(old: MetricSeries, news: list[MetricSeries]) -> MetricSeries:
        """Of several series of a device, the one with the same replicas."""
        return min(news, key=lambda each: each.labels.get("vgpu", "") != old.labels.get("vgpu", ""))

    def _missing(self, key: QuantityKey, olds: list[MetricSeries]) -> None:
        name = olds[0].name
        if name.startswith(_OF_THE_PROGRAM):
            reason = CompareReason.OF_THE_PROGRAM
        elif name.startswith(PREFIX):
            reason = absent_series(name, key, self.new, self._news.keys())
        else:
            reason = CompareReason.VALUE_MISSING
        if reason == CompareReason.PER_MIG_DEVICE:
            self._seen.update(other for other in self._news if other[0] == key[0] and other[1] > key[1])
        self._found.add(SwitchGroup.MISSING, reason, name, example=_named(key), series=len(olds))

    def _pair(self, key: QuantityKey, olds: list[MetricSeries], new: MetricSeries) -> None:
        old = olds[0]
        changed = False
        if old.name != new.name:
            self._found.add(SwitchGroup.RENAMED, CompareReason.METRIC_SPELLING, old.name, example=f"{new.name} in NEW")
            changed = True
        if old.name.startswith(PREFIX):
            changed |= self._compare_labels(key, olds, new)
        changed |= self._compare_values(key, old, new)
        if not changed:
            self._found.add(SwitchGroup.SAME, None, old.name)

    def _compare_labels(self, key: QuantityKey, olds: list[MetricSeries], new: MetricSeries) -> bool:
        old, changed = olds[0], False
        after = canonical(new.written())
        for label, value in canonical(old.written()).items():
            spelling, other = spelled(old, label), spelled(new, label)
            example = f"{value!r} and {after.get(label, '')!r}{_of(key)}"
            if label not in after:
                self._label_missing(key, olds, label, f"{spelling}={value!r} in OLD{_of(key)}")
            elif spelling != other and not new.labels.get(spelling):
                reason = absent_label(spelling) or CompareReason.OTHER_LABEL
                self._found.add(SwitchGroup.RENAMED, reason, old.name, label=spelling, example=f"{other} in NEW")
            elif after[label] != value and label not in ("err_code", *self._shared(olds)):
                self._found.add(SwitchGroup.DIFFERENT, other_value(label), old.name, label=spelling, example=example)
            else:
                continue
            changed = True
        return changed

    def _label_missing(self, key: QuantityKey, olds: list[MetricSeries], label: str, example: str) -> None:
        reason = without_label(label, names_some=label in self._labels, several=self._several(key, olds))
        if label not in CONTAINER:
            self._found.add(SwitchGroup.MISSING, reason, olds[0].name, label=spelled(olds[0], label), example=example)
        elif label == "pod":  # the three are there or not there together
            self._found.add(SwitchGroup.MISSING, reason, olds[0].name, label=", ".join(CONTAINER), example=example)

    @staticmethod
    def _shared(olds: list[MetricSeries]) -> tuple[str, ...]:
        """Labels that say nothing, because OLD has the series once with each of their values."""
        return (*CONTAINER, "pod_uid", "vgpu") if len(olds) > 1 else ()

    def _several(self, key: QuantityKey, olds: list[MetricSeries]) -> bool:
        """Whether the device has several users, or MIG devices or compute instances that may have users."""
        device = device_of(key)
        if len(olds) > 1 or device is None:
            return True
        here = _part(key)
        if any(_part(other) > here for other in self._news):
            return True
        return any(value > 1 for value in self.new.values_of(_ALLOCATED_PODS, UUID=device[1]))

    def _compare_values(self, key: QuantityKey, old: MetricSeries, new: MetricSeries) -> bool:
        apart = abs(old.value - new.value)
        if apart <= CLOSE or str(old.value) == str(new.value):
            return False
        near = apart <= NEAR * max(abs(old.value), abs(new.value))
        reason = CompareReason.READ_LATER if near else CompareReason.VALUE_DIFFERS
        if xid_zero(new.name, new.value):
            reason = CompareReason.XID_ENDED
        example = f"{old.value:g} and {new.value:g}{_of(key)}"
        self._found.add(SwitchGroup.DIFFERENT, reason, old.name, example=example)
        return True

    def _new(self, series: MetricSeries, number: int) -> None:
        if not series.name.startswith(PREFIX):
            program = series.name.startswith(_OF_THE_PROGRAM)
            reason = CompareReason.OF_THE_PROGRAM if program else CompareReason.OWN_METRICS
        elif xid_zero(series.name, series.value):
            reason = CompareReason.XID_ZERO
        else:
            reason = CompareReason.MORE_COUNTERS
        self._found.add(SwitchGroup.NEW, reason, series.name, series=number)


def _part(key: QuantityKey) -> frozenset[tuple[str, str]]:
    """The GPU, GPU instance or compute instance of a key."""
    return frozenset(pair for pair in key[1] if pair[0] in ("UUID", *INSTANCE_IDS))


def _named(key: QuantityKey) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(key[1])[:3])


def _of(key: QuantityKey) -> str:
    named = _named(key)
    return f" of {named}" if named else ""
