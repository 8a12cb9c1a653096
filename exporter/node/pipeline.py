"""The whole flow of the node exporter on one screen: read devices and kubelet, attribute, give a snapshot."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from exporter.node.attribution.allocation import Allocations, HeldAllocations
from exporter.node.attribution.attribute import AttributionRules
from exporter.node.attribution.metrics import AllocationView
from exporter.node.devices.counters_file import Counters
from exporter.node.devices.labels import DeviceLabelCache, LabelStyle
from exporter.node.devices.metrics import (
    InventoryFamilies,
    columns,
    dcgm_families,
    field_names,
    label_rows,
    unsupported,
)
from exporter.node.devices.readings import Readings
from exporter.snapshot import Pass, Snapshot, SourceProblem
from exporter.source import Source


@dataclass(frozen=True, slots=True)
class NodeSources:
    """What a pass reads; `kubelet` is None where devices are not attributed."""

    devices: Source[Readings]
    kubelet: Source[Allocations] | None


class NodePipeline:
    """Takes snapshots of one node. Not thread-safe: the sampler's thread owns it."""

    def __init__(
        self,
        sources: NodeSources,
        counters: Counters,
        style: LabelStyle,
        rules: AttributionRules,
        expected_gpus: Callable[[], int] = lambda: 0,
        clock: Callable[[], float] = time.time,
        held: HeldAllocations | None = None,
    ) -> None:
        self._sources = sources
        self._counters = counters
        self._names = field_names(counters)
        self._hostname = style.hostname
        self._labels = DeviceLabelCache(style)
        self._inventory = InventoryFamilies(style.hostname)
        self._held = held or HeldAllocations()
        self._allocation = AllocationView(style.hostname, rules)
        self._expected = expected_gpus
        self._clock = clock

    def take(self) -> Snapshot:
        """One pass over every source."""
        this = Pass()
        readings = this.read(self._sources.devices, Readings(self._sources.devices.name, self._clock(), ()))
        allocations = self._allocations(this)
        attribution, allocation_families = self._allocation.of(readings.inventory, allocations)
        by_field = columns(readings)
        rows = label_rows(self._counters, readings, by_field)
        labels = self._labels.labels(readings.inventory, attribution.holders, rows)
        return Snapshot(
            taken_at=readings.taken_at,
            families=(
                *dcgm_families(self._counters, by_field, labels),
                *self._inventory.families(readings, self._expected()),
                unsupported(readings, self._names, self._hostname),
                *allocation_families,
            ),
            health=tuple(this.health),
            problems=tuple(SourceProblem(readings.source, *problem) for problem in readings.problems),
            rejected=self._rejected(readings),
            build=_build(readings),
        )

    def close(self) -> None:
        """End what the sources hold open; bounded in time."""
        self._sources.devices.close()
        if self._sources.kubelet is not None:
            self._sources.kubelet.close()

    def _allocations(self, this: Pass) -> Allocations | None:
        if self._sources.kubelet is None:
            return None
        fresh: Allocations | None = this.read(self._sources.kubelet, otherwise=None)
        return self._held.latest(fresh)

    def _rejected(self, readings: Readings) -> Mapping[tuple[str, str], int]:
        counts: Counter[tuple[str, str]] = Counter()
        for rejection in readings.rejections:
            counts[self._names.get(rejection.field, str(rejection.field)), rejection.reason] += rejection.count
        return counts


def _build(readings: Readings) -> dict[str, str]:
    """Versions for the build series; an empty text where a library is not in use."""
    return {
        "dcgm_version": readings.versions.get("dcgm", "") if readings.source != "nvml" else "",
        "nvml_version": readings.versions.get("nvml", ""),
        "source": readings.source,
    }
