"""Makes the DCGM-named series: those of the fields in the counters file, with the labels of what they were read of."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from exporter.metric import Family, LabelPairs
from exporter.node.devices.computed.computed_families import ComputedFamilies
from exporter.node.devices.counters.counters_file import Counters
from exporter.node.devices.entities.selection import Selection
from exporter.node.devices.fields.field import TableScope
from exporter.node.devices.readings.health import HealthReason
from exporter.node.devices.readings.mig_layout import mig_problems
from exporter.node.devices.readings.readings import Readings
from exporter.node.devices.series.component_labels import ComponentLabelCache
from exporter.node.devices.series.gpu_selection import labeled, of_devices, of_parts, selected, selection_problems
from exporter.node.devices.series.labels import DeviceLabelCache, ExclusiveContainer, LabelStyle, device_schema
from exporter.node.devices.series.link_labels import LinkLabelCache, link_schema
from exporter.node.devices.series.metrics import (
    EntitySamples,
    SamplesByField,
    dcgm_families,
    field_names,
    samples_by_field,
)
from exporter.node.devices.series.mig_repetition import repeated_on_instances
from exporter.node.devices.series.vgpu_labels import VgpuLabelCache, vgpu_label_rows, vgpu_schema
from exporter.node.processes.collected_use import CollectedUse, ProcessUse
from exporter.snapshot import SourceProblem


class LabeledSamples(NamedTuple):
    """The samples of one collection, with labels: those of devices, and by scope of their fields those of the rest."""

    devices: EntitySamples
    others: dict[TableScope, EntitySamples]


class CounterSeries:
    """The series of the counters file, of the devices that are selected. For use by one thread."""

    def __init__(
        self, counters: Counters, style: LabelStyle, selection: Selection, processes: ProcessUse, names: tuple[str, ...]
    ) -> None:
        """`processes` adds series of pods that share a device; `names` are of labels that devices have besides."""
        self._style, self._selection, self._processes, self._names = style, selection, processes, names
        self._pod_names: tuple[str, ...] = ()
        """The names of the labels of pods that the label caches know."""
        self.use(counters)

    def use(self, counters: Counters) -> None:
        """Expose the fields of these counters from the next collection on."""
        self.counters = counters
        self.field_names = field_names(counters)
        self._make_label_caches()
        self._component_labels = ComponentLabelCache(self._style, counters)

    def labeled(
        self,
        readings: Readings,
        by_field: SamplesByField,
        containers: Sequence[ExclusiveContainer],
        rows: Sequence[LabelPairs],
        pod_names: tuple[str, ...],
    ) -> LabeledSamples:
        """Label the samples.

        `by_field` are those of the devices; `rows` are per device the labels that it has besides, among them, by
        `pod_names`, those of pods.
        """
        if pod_names != self._pod_names:
            self._pod_names = pod_names
            self._make_label_caches()
        labels = self._labels.labels(readings.inventory, containers, rows)
        link_labels = self._link_labels.labels(readings.links, readings.inventory, containers, rows)
        links = EntitySamples(samples_by_field(readings.link_batches), link_labels, self._link_schema)
        others: dict[TableScope, EntitySamples] = {"link": links, "vgpu": self._vgpus(readings, rows)}
        return LabeledSamples(EntitySamples(by_field, labels, self._schema), others | self._components(readings))

    def families(
        self, readings: Readings, samples: LabeledSamples, use: CollectedUse, computed: ComputedFamilies
    ) -> Iterator[Family]:
        """Make the families of the selected devices, their links and vGPUs; last those that are computed here."""
        chosen = selected(readings, self._selection)
        others = samples.others | {
            "link": of_parts(samples.others["link"], readings.links, chosen),
            "vgpu": of_parts(samples.others["vgpu"], readings.vgpus, chosen),
        }
        exposed = of_devices(samples.devices, chosen)
        if self._style.repeat_on_instances:
            exposed = exposed._replace(by_field=repeated_on_instances(exposed.by_field, readings.inventory, chosen))
        families = dcgm_families(self.counters, exposed, others)
        yield from self._processes.in_families(families, self.counters, use, samples.devices.labels, chosen)
        own = labeled(readings.inventory, samples.devices.labels, chosen)
        yield from computed.of_file(self.counters.computed, *own, self._schema)

    def problems(self, readings: Readings) -> Iterator[SourceProblem]:
        """What is wrong with the source of the devices, and with what is asked of it."""
        found = *readings.problems, *selection_problems(readings, self._selection), *mig_problems(readings)
        for problem in found:
            yield SourceProblem(readings.source, *problem)
        # Not while the source is down. DCGM says itself why there are no health checks.
        if self.counters.need_health and readings.source != "dcgm" and readings.inventory:
            message = f"DCGM_EXP_GPU_HEALTH_STATUS has no series: the source {readings.source} has no health checks"
            yield SourceProblem(readings.source, HealthReason.HEALTH_NOT_IN_SOURCE, message)

    def rejected(self, readings: Readings) -> Mapping[tuple[str, str], int]:
        """Count rejected values by the name of their field and by reason."""
        counts: Counter[tuple[str, str]] = Counter()
        for rejection in readings.rejections:
            # A read that began before a reload still has fields that are not configured any more.
            if rejection.field in self.field_names:
                counts[self.field_names[rejection.field], rejection.reason] += rejection.count
        return counts

    def _make_label_caches(self) -> None:
        rows = (row.name for row in self.counters.label_rows)
        names = tuple(dict.fromkeys((*rows, *self._names, *self._pod_names)))
        self._schema, self._link_schema = device_schema(self._style, names), link_schema(self._style, names)
        self._vgpu_schema = vgpu_schema(self._style, names)
        self._labels = DeviceLabelCache(self._style, self._schema)
        self._link_labels = LinkLabelCache(self._style, self._link_schema)
        self._vgpu_labels = VgpuLabelCache(self._style, self._vgpu_schema)

    def _vgpus(self, readings: Readings, rows: Sequence[LabelPairs]) -> EntitySamples:
        """Return the samples of the vGPUs; `rows` are the values of label rows of the devices."""
        by_field = samples_by_field(readings.vgpu_batches)
        own = vgpu_label_rows(self.counters, readings.vgpus, by_field)
        labels = self._vgpu_labels.labels(readings.vgpus, readings.inventory, rows, own)
        return EntitySamples(by_field, labels, self._vgpu_schema)

    def _components(self, readings: Readings) -> dict[TableScope, EntitySamples]:
        by_field = samples_by_field(readings.component_batches)
        labels = self._component_labels.labels(readings.components, by_field)
        schemas = self._component_labels.schemas
        return {scope: EntitySamples(by_field, labels, schema) for scope, schema in schemas.items()}
