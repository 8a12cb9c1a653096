"""Makes one collection of the node exporter: in, the sources (devices, kubelet); out, a snapshot (all metric families).

It reads the devices with their samples from the reader process and the allocations from the kubelet, attributes devices
to containers, and makes the metric families.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from exporter.config import DEFAULT_INTERVAL_SECONDS
from exporter.metric import Family
from exporter.node.attribution.allocation import Allocations, LastKnownAllocations
from exporter.node.attribution.jobs import hpc_jobs
from exporter.node.attribution.jobs.hpc_job_files import NAME as JOBS
from exporter.node.attribution.jobs.hpc_job_files import JobFiles, JobFilesReader
from exporter.node.attribution.jobs.hpc_jobs import Jobs, job_info, with_job
from exporter.node.attribution.matching.attribute import Attribution
from exporter.node.attribution.matching.rules import AttributionRules, ReplicaSharing
from exporter.node.attribution.offer.reader import OfferInCollections, OfferReader
from exporter.node.attribution.pods.claims import DeviceClaims
from exporter.node.attribution.pods.pod_metadata import PodMetadata
from exporter.node.attribution.series.metrics import AttributionCache
from exporter.node.attribution.series.normalized_metrics import NormalizedMetrics
from exporter.node.attribution.series.state_seconds import StateSeconds
from exporter.node.audit.audit_log import NO_AUDIT_LOG, AuditLog, KnownOfPods
from exporter.node.counter_series import CounterSeries, LabeledSamples
from exporter.node.devices.computed.computed_families import ComputedFamilies, CountWindows
from exporter.node.devices.computed.normalized import DeviceValues, device_values
from exporter.node.devices.counters.counters_file import Counters
from exporter.node.devices.entities.selection import Selection
from exporter.node.devices.readings.known_gpus import KnownGpus
from exporter.node.devices.readings.readings import Readings, build_labels, with_unread_fields
from exporter.node.devices.series.gpu_selection import EVERY
from exporter.node.devices.series.labels import LabelStyle
from exporter.node.devices.series.metrics import (
    InventoryMetrics,
    label_rows,
    samples_of_devices,
    unsupported,
)
from exporter.node.devices.series.vgpu_metrics import vgpu_families
from exporter.node.dra.knowledge import KnownClaims
from exporter.node.pods.known_pods import KnownPods
from exporter.node.pods.options import PodOptions
from exporter.node.processes.collected_use import ProcessUse
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
        self._node = style.hostname
        self._claims = DeviceClaims(sources.dra, labels=style.allocation_labels)
        self._pods = PodMetadata(sources.pods, pods, style.hostname, rules.reservation_namespaces)
        self._processes = ProcessUse(sources.processes, style, virtual_gpus)
        names = (*((hpc_jobs.LABEL,) if sources.jobs else ()), *self._claims.names)
        self._series = CounterSeries(counters, style, selection, self._processes, names)
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
        self._series.use(counters)

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
        samples = self._samples(readings, attribution, jobs.jobs)
        self.has_read_a_gpu = self.has_read_a_gpu or any(gpu.uuid not in readings.down for gpu in readings.inventory)
        self._computed.observe(readings, samples.devices.by_field)
        values = device_values(self._normalized.see(attribution), samples.devices.by_field)
        known = KnownOfPods(listed or (), self._pods.pods) if self._sources.pods is not None else None
        self._audit.note(cycle.health, readings.taken_at, attribution, values, known)
        return Snapshot(
            taken_at=readings.taken_at,
            families=(
                *self._series.families(readings, samples, use, self._computed),
                *self._inventory.families(readings, max(self._expected(), len(self._known))),
                *self._computed.own(),
                unsupported(readings, self._series.field_names, self._node),
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
                *self._series.problems(readings),
                *(SourceProblem(JOBS, *problem) for problem in jobs.problems),
                *self._pods.problems(),
                *use.problems,
                *self._offer.problems(),
                *self._audit.problems(),
            ),
            rejected=self._series.rejected(readings),
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
        return with_unread_fields(self._known.completed(readings), self._series.counters.not_of_devices)

    def _samples(self, readings: Readings, attribution: Attribution, jobs: Jobs) -> LabeledSamples:
        """Return the samples with the labels of devices, and of their jobs, claims and pods."""
        by_field, containers = samples_of_devices(readings), attribution.containers
        rows = with_job(label_rows(self._series.counters, readings, by_field), readings.inventory, jobs)
        rows = self._pods.labeled(self._claims.labeled(rows, attribution), containers)
        return self._series.labeled(readings, by_field, containers, rows, self._pods.names)

    def _job_families(self, readings: Readings, jobs: Jobs) -> tuple[Family, ...]:
        family = job_info(readings.inventory, jobs, self._node)
        return (family,) if family.samples else ()

    def _allocations(self, cycle: CollectionCycle) -> Allocations | None:
        if self._sources.kubelet is None:
            return None
        fresh: Allocations | None = cycle.read(self._sources.kubelet, otherwise=None)
        return self._last_known.latest(fresh)

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
