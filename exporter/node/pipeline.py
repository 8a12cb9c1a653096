"""Makes one collection of the node exporter: in, the sources (devices, kubelet); out, a snapshot (all metric families).

It reads the devices with their samples from the reader process and the allocations from the kubelet, attributes devices
to containers, and makes the metric families.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from exporter.config import DEFAULT_INTERVAL_SECONDS
from exporter.metric import Family, LabelPairs
from exporter.node.attribution import hpc_jobs
from exporter.node.attribution.allocation import Allocations, LastKnownAllocations
from exporter.node.attribution.attribute import Attribution
from exporter.node.attribution.claims import DeviceClaims
from exporter.node.attribution.hpc_job_files import NAME as JOBS
from exporter.node.attribution.hpc_job_files import JobFiles, JobFilesReader
from exporter.node.attribution.hpc_jobs import Jobs, job_info, with_job
from exporter.node.attribution.metrics import AttributionCache
from exporter.node.attribution.normalized_metrics import NormalizedMetrics
from exporter.node.attribution.offer_reader import OfferInCollections, OfferReader
from exporter.node.attribution.pod_metadata import PodMetadata
from exporter.node.attribution.rules import AttributionRules, ReplicaSharing
from exporter.node.attribution.state_seconds import StateSeconds
from exporter.node.audit.audit_log import NO_AUDIT_LOG, AuditLog, KnownOfPods
from exporter.node.devices.component_labels import ComponentLabelCache
from exporter.node.devices.computed_families import ComputedFamilies, CountWindows
from exporter.node.devices.counters_file import Counters
from exporter.node.devices.field import TableScope
from exporter.node.devices.gpu_selection import EVERY, labeled, of_devices, of_parts, selected, selection_problems
from exporter.node.devices.health import HealthReason
from exporter.node.devices.known_gpus import KnownGpus
from exporter.node.devices.labels import DeviceLabelCache, LabelStyle, device_schema
from exporter.node.devices.link_labels import LinkLabelCache, link_schema
from exporter.node.devices.metrics import (
    EntitySamples,
    InventoryMetrics,
    dcgm_families,
    field_names,
    label_rows,
    samples_by_field,
    samples_of_devices,
    unsupported,
)
from exporter.node.devices.mig_repetition import repeated_on_instances
from exporter.node.devices.normalized import DeviceValues, device_values
from exporter.node.devices.readings import Readings, build_labels, with_unread_fields
from exporter.node.devices.selection import Selection
from exporter.node.devices.vgpu_labels import VgpuLabelCache, vgpu_label_rows, vgpu_schema
from exporter.node.devices.vgpu_metrics import vgpu_families
from exporter.node.dra.knowledge import KnownClaims
from exporter.node.pods.known_pods import KnownPods
from exporter.node.pods.options import PodOptions
from exporter.node.processes.collected_use import CollectedUse, ProcessUse
from exporter.node.processes.source import ProcessFinder
from exporter.node.state_file.content import RememberedNode, device, remembered
from exporter.node.state_file.keeper import StateChange
from exporter.snapshot import CollectionCycle, Snapshot, SourceProblem
from exporter.source import Source


@dataclass(frozen=True, slots=True)
class NodeSources:
    """What a collection reads; everything but `devices` is None where that attribution is off."""

    devices: Source[Readings]
    kubelet: Source[Allocations] | None
    jobs: JobFilesReader | None = None
    pods: KnownPods | None = None
    processes: ProcessFinder | None = None
    offer: OfferReader | None = None
    dra: KnownClaims | None = None


class NodePipeline:
    """Makes snapshots of one node. Not thread-safe: used by the collection loop's thread alone."""

    def __init__(
        self,
        sources: NodeSources,
        counters: Counters,
        style: LabelStyle,
        rules: AttributionRules,
        expected_gpus: Callable[[], int] = lambda: 0,
        *,
        clock: Callable[[], float] = time.time,
        last_known: LastKnownAllocations | None = None,
        interval: float = DEFAULT_INTERVAL_SECONDS,
        windows: CountWindows = CountWindows(),  # noqa: B008 - it cannot change
        state: RememberedNode | None = None,
        selection: Selection = EVERY,
        normalized: bool = True,
        pods: PodOptions = PodOptions(),  # noqa: B008 - it cannot change
        virtual_gpus: bool = False,
        replicas: Callable[[], ReplicaSharing] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        audit: AuditLog = NO_AUDIT_LOG,
    ) -> None:
        """`expected_gpus` gives how many GPUs the node should have, 0 where that is not known; `clock` Unix seconds.

        `interval` is between collections, in seconds; `state` is what is remembered from before; `selection` has the
        devices of which the families of the counters file are made; `normalized` tells whether normalized values are
        exposed. With `virtual_gpus` two of those families have series of the pods that share a device; `replicas` gives
        how replicas share one now, without it that is as in `rules`; `audit` notes what is allocated.
        """
        self._sources, self._audit = sources, audit
        self._style, self._selection = style, selection
        self._node = style.hostname
        self._claims = DeviceClaims(sources.dra, labels=style.allocation_labels)
        self._pods = PodMetadata(sources.pods, pods, style.hostname, rules.reservation_namespaces)
        self._pod_names: tuple[str, ...] = ()
        """The names of the labels of pods that the label caches know."""
        self._processes = ProcessUse(sources.processes, style, virtual_gpus)
        self.use(counters)
        self._before = state or RememberedNode()
        self._known = KnownGpus(map(device, self._before.gpus))
        self._state_seconds = StateSeconds(style.hostname, interval, self._before.devices, monotonic)
        self._inventory = InventoryMetrics(style.hostname)
        self._normalized = NormalizedMetrics(style.hostname, all_of_pods=style.allocation_labels)
        self._exposes_normalized = normalized
        self._computed = ComputedFamilies(style.hostname, windows, started_at=clock())
        self._last_known = last_known or LastKnownAllocations()
        self._attribution = AttributionCache(style.hostname, rules)
        self._replicas = replicas or (lambda: rules.replicas)
        self._offer = OfferInCollections(sources.offer, style.hostname, rules.indexed)
        self._expected = expected_gpus
        self.has_read_a_gpu = False
        """Whether a GPU could be read in any collection so far."""
        self._clock = clock

    def use(self, counters: Counters) -> None:
        """Expose the fields of these counters from the next collection on. What is known of the node stays."""
        self._counters = counters
        self._names = field_names(counters)
        self._make_label_caches()
        self._component_labels = ComponentLabelCache(self._style, counters)

    def _make_label_caches(self) -> None:
        rows = (*(row.name for row in self._counters.label_rows), *((hpc_jobs.LABEL,) if self._sources.jobs else ()))
        names = tuple(dict.fromkeys((*rows, *self._claims.names, *self._pod_names)))
        self._schema, self._link_schema = device_schema(self._style, names), link_schema(self._style, names)
        self._labels = DeviceLabelCache(self._style, self._schema)
        self._link_labels = LinkLabelCache(self._style, self._link_schema)
        self._vgpu_schema = vgpu_schema(self._style, names)
        self._vgpu_labels = VgpuLabelCache(self._style, self._vgpu_schema)

    @property
    def state(self) -> RememberedNode:
        """What is to be remembered after a restart, as of the last collection."""
        gpus, devices = remembered(self._known.gpus), self._state_seconds.counted
        return msgspec.structs.replace(self._before, gpus=gpus, devices=devices)

    def take_up(self, change: StateChange) -> None:
        """Take up what somebody else has changed in the state file."""
        self._known.change(map(device, change.state.gpus), change.forgotten)

    def collect(self) -> Snapshot:
        """Read every source once."""
        cycle = CollectionCycle()
        readings = self._readings(cycle)
        self._pods.read(cycle)
        listed = self._allocations(cycle)
        allocations = self._pods.joined(listed)
        self._attribution.share_replicas(self._replicas())
        attribution, allocation_families = self._attribution.get(
            readings.inventory, allocations, readings.down, self._pods.concerning, self._claims.knowledge(allocations)
        )
        use = self._processes.read(cycle, readings, attribution, self._pods.pods)
        self._offer.read(cycle)
        jobs = self._sources.jobs.read() if self._sources.jobs else JobFiles()
        devices, others = self._samples(readings, attribution, jobs.jobs)
        self.has_read_a_gpu = self.has_read_a_gpu or any(gpu.uuid not in readings.down for gpu in readings.inventory)
        self._computed.observe(readings, devices.by_field)
        values = device_values(self._normalized.see(attribution), devices.by_field)
        known = KnownOfPods(listed or (), self._pods.pods) if self._sources.pods is not None else None
        self._audit.note(cycle.health, readings.taken_at, attribution, values, known)
        return Snapshot(
            taken_at=readings.taken_at,
            families=(
                *self._selected_families(readings, devices, others, use),
                *self._inventory.families(readings, max(self._expected(), len(self._known))),
                *self._computed.own(),
                unsupported(readings, self._names, self._node),
                *allocation_families,
                *self._pods.families(),
                *use.families,
                *self._offer.families(readings.inventory, readings.down),
                *self._job_families(readings, jobs.jobs),
                *vgpu_families(readings, self._node),
                *(self._normalized.families(values) if self._exposes_normalized else ()),
                *self._state_families(cycle, attribution, values, readings),
                *self._audit.families(),
            ),
            health=(*cycle.health, *self._claims.health()),
            problems=(
                *self._problems(readings),
                *(SourceProblem(JOBS, *problem) for problem in jobs.problems),
                *self._pods.problems(),
                *use.problems,
                *self._offer.problems(),
                *self._audit.problems(),
            ),
            rejected=self._rejected(readings),
            build=build_labels(readings),
            # Without devices a collection is cheap. A failure of the kubelet must not make device reads more frequent.
            retry_soon=self._down(cycle),
        )

    def close(self) -> None:
        """Close the sources; bounded in time."""
        self._sources.devices.close()
        if self._sources.kubelet is not None:
            self._sources.kubelet.close()
        self._pods.close()
        self._claims.close()

    def _readings(self, cycle: CollectionCycle) -> Readings:
        """Read the devices; add the known GPUs that are missing, and the fields that no source reads.

        Nothing at all while the source is down.
        """
        failed = Readings(self._sources.devices.name, self._clock(), ())
        readings = cycle.read(self._sources.devices, failed)
        if readings is failed:
            return readings
        return with_unread_fields(self._known.completed(readings), self._counters.not_of_devices)

    def _samples(
        self, readings: Readings, attribution: Attribution, jobs: Jobs
    ) -> tuple[EntitySamples, dict[TableScope, EntitySamples]]:
        """Return the samples of the devices, and those of links, vGPUs and components by scope, with labels."""
        by_field, containers = samples_of_devices(readings), attribution.containers
        rows = with_job(label_rows(self._counters, readings, by_field), readings.inventory, jobs)
        rows = self._pods.labeled(self._claims.labeled(rows, attribution), containers)
        if self._pods.names != self._pod_names:
            self._pod_names = self._pods.names
            self._make_label_caches()
        labels = self._labels.labels(readings.inventory, containers, rows)
        link_labels = self._link_labels.labels(readings.links, readings.inventory, containers, rows)
        links = EntitySamples(samples_by_field(readings.link_batches), link_labels, self._link_schema)
        others: dict[TableScope, EntitySamples] = {"link": links, "vgpu": self._vgpus(readings, rows)}
        return EntitySamples(by_field, labels, self._schema), others | self._components(readings)

    def _vgpus(self, readings: Readings, rows: Sequence[LabelPairs]) -> EntitySamples:
        """Return the samples of the vGPUs; `rows` are the values of label rows of the devices."""
        by_field = samples_by_field(readings.vgpu_batches)
        own = vgpu_label_rows(self._counters, readings.vgpus, by_field)
        labels = self._vgpu_labels.labels(readings.vgpus, readings.inventory, rows, own)
        return EntitySamples(by_field, labels, self._vgpu_schema)

    def _components(self, readings: Readings) -> dict[TableScope, EntitySamples]:
        by_field = samples_by_field(readings.component_batches)
        labels = self._component_labels.labels(readings.components, by_field)
        schemas = self._component_labels.schemas
        return {scope: EntitySamples(by_field, labels, schema) for scope, schema in schemas.items()}

    def _selected_families(
        self,
        readings: Readings,
        devices: EntitySamples,
        others: dict[TableScope, EntitySamples],
        use: CollectedUse,
    ) -> Iterator[Family]:
        """Make the families of the counters file, of the devices that are selected, their links and vGPUs."""
        chosen = selected(readings, self._selection)
        others = others | {
            "link": of_parts(others["link"], readings.links, chosen),
            "vgpu": of_parts(others["vgpu"], readings.vgpus, chosen),
        }
        exposed = of_devices(devices, chosen)
        if self._style.repeat_on_instances:
            exposed = exposed._replace(by_field=repeated_on_instances(exposed.by_field, readings.inventory, chosen))
        families = dcgm_families(self._counters, exposed, others)
        yield from self._processes.in_families(families, self._counters, use, devices.labels, chosen)
        own = labeled(readings.inventory, devices.labels, chosen)
        yield from self._computed.of_file(self._counters.computed, *own, self._schema)

    def _job_families(self, readings: Readings, jobs: Jobs) -> tuple[Family, ...]:
        family = job_info(readings.inventory, jobs, self._node)
        return (family,) if family.samples else ()

    def _allocations(self, cycle: CollectionCycle) -> Allocations | None:
        if self._sources.kubelet is None:
            return None
        fresh: Allocations | None = cycle.read(self._sources.kubelet, otherwise=None)
        return self._last_known.latest(fresh)

    def _problems(self, readings: Readings) -> tuple[SourceProblem, ...]:
        found = (*readings.problems, *selection_problems(readings, self._selection))
        problems = [SourceProblem(readings.source, *problem) for problem in found]
        # Not while the source is down. DCGM says itself why there are no health checks.
        if self._counters.need_health and readings.source != "dcgm" and readings.inventory:
            message = f"DCGM_EXP_GPU_HEALTH_STATUS has no series: the source {readings.source} has no health checks"
            problems.append(SourceProblem(readings.source, HealthReason.HEALTH_NOT_IN_SOURCE, message))
        return tuple(problems)

    def _state_families(
        self, cycle: CollectionCycle, attribution: Attribution, values: DeviceValues, readings: Readings
    ) -> tuple[Family, ...]:
        """Count the time since the collection before; nothing while the devices cannot be read."""
        if self._down(cycle):
            self._state_seconds.interrupt()
            return ()
        return (self._state_seconds.count(attribution, values.busy_ratio, readings.down),)

    def _down(self, cycle: CollectionCycle) -> bool:
        return any(health.source == self._sources.devices.name and not health.up for health in cycle.health)

    def _rejected(self, readings: Readings) -> Mapping[tuple[str, str], int]:
        counts: Counter[tuple[str, str]] = Counter()
        for rejection in readings.rejections:
            # A read that began before a reload still has fields that are not configured any more.
            if rejection.field in self._names:
                counts[self._names[rejection.field], rejection.reason] += rejection.count
        return counts
