"""Reads one engine through one connection: discovers the devices, watches their fields, then reads in each collection.

It discovers and watches again when the devices change or samples become stale. In: an open connection and the
configuration. Out: `Readings` (devices, samples, rejected values, problems).
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from exporter.backoff import Backoff
from exporter.node.dcgm import layout
from exporter.node.dcgm.connection import EngineConnection
from exporter.node.dcgm.discovery import discover
from exporter.node.dcgm.inventory import DescribedGpus, EngineInventory
from exporter.node.dcgm.library import StatusError
from exporter.node.dcgm.links import EngineLinks, find_links, link_targets
from exporter.node.dcgm.live_reader import LiveReader
from exporter.node.dcgm.profiling import ProfilingRetry, RejectedWatch, watch_profiling
from exporter.node.dcgm.reads import BatchRead, WatchTarget, batch_reads, targets_of
from exporter.node.dcgm.reasons import DcgmReason
from exporter.node.dcgm.topology import EngineTopology, read_topology
from exporter.node.dcgm.values import status_reason
from exporter.node.dcgm.watch import Watches
from exporter.node.devices import field_ids
from exporter.node.devices.device import Device
from exporter.node.devices.device_source import ReaderConfig, WantedField
from exporter.node.devices.read_plan import plan, unique
from exporter.node.devices.readings import Batch, Readings, Rejection, RejectionCounts, RejectionReason, SampleValue

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
"""Seconds between two attempts to watch again because samples were stale or not watched."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """`wall` gives Unix seconds, for the age of values; `steady` never jumps, for pauses."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class _CurrentPlan:
    """What every collection reads until the devices change."""

    inventory: EngineInventory
    reads: tuple[BatchRead, ...]
    system_batches: tuple[Batch, ...]
    """The node's own values, such as the driver version, which are read once: they change only with the engine."""
    never_read: RejectionCounts
    """Samples that no collection has, because the engine does not watch their fields."""
    links: EngineLinks


class EngineSession:
    """Reads through one connection. After any SourceError close it, and open another connection and session."""

    def __init__(
        self, connection: EngineConnection, config: ReaderConfig, known: dict[str, Device], clocks: Clocks
    ) -> None:
        """`known` is updated: it has every GPU that any session of the source found and that was not replaced."""
        self._connection, self._known, self._fields = connection, DescribedGpus(known), config.fields
        self._interval = config.interval
        self._clocks, self._live = clocks, LiveReader(connection, clocks.wall)
        self._wanted = {field.id: field for field in unique(config.fields)}
        self._watches = Watches(connection, config.interval)
        self._topology: EngineTopology | None = None
        self._current = _CurrentPlan(EngineInventory((), (), {}, (), ()), (), (), Counter(), EngineLinks())
        self._targets: list[WatchTarget] = []
        self._watched: list[WatchTarget] = []
        self._rejected: list[RejectedWatch] = []
        self._retry = ProfilingRetry(clocks.steady)
        self._suspect = False
        self._rewatch = Backoff(FIRST_PAUSE, LONGEST_PAUSE, clocks.steady)
        self._versions: dict[str, str] = {}

    def read(self) -> Readings:
        """Read everything once. Raises SourceError."""
        taken_at = self._clocks.wall()
        self._follow(read_topology(self._connection))
        counts: RejectionCounts = Counter(self._current.never_read)
        batches, link_batches = [*self._current.system_batches], list[Batch]()
        suspect = not self._current.inventory.complete
        for batch_read in self._current.reads:
            batch, decoded = batch_read.read(self._connection, self._clocks.wall)
            (link_batches if batch_read.of_links else batches).append(batch)
            counts.update(decoded.rejected)
            suspect = suspect or decoded.suspect
        self._suspect = suspect
        if not suspect:
            self._rewatch.reset()
        return Readings(
            source="dcgm",
            taken_at=taken_at,
            inventory=self._current.inventory.devices,
            batches=tuple(batches),
            rejections=tuple(Rejection(*key, count) for key, count in sorted(counts.items())),
            down=self._current.inventory.down,
            problems=self._problems(),
            versions=self._versions,
            links=self._current.links.links,
            link_batches=tuple(link_batches),
        )

    def want(self, fields: Sequence[WantedField]) -> None:
        """Watch and read these fields from the next read on."""
        self._fields = tuple(fields)
        self._wanted = {field.id: field for field in unique(fields)}
        self._topology = None

    def close(self) -> None:
        """Remove every watch and group, then close the connection. Never raises."""
        self._watches.close()
        self._connection.close()

    def _follow(self, topology: EngineTopology) -> None:
        """Discover and watch again if the topology changed or the last samples were suspect, or retry profiling."""
        if topology != self._topology:
            self._topology = None  # so that a failure half-way is not taken for a finished discovery
            self._rewatch.reset()  # only watching again what did not change waits longer each time
            self._discover(topology)
            self._topology = topology
        # A MIG device made again with the same ids and profile does not change the topology. Its watch is the old one,
        # whose value no longer changes (4.6.0, source), so it becomes stale.
        elif self._suspect and self._rewatch.due:
            self._discover(topology)
        elif self._retry.due:
            self._watch_rejected()

    def _discover(self, topology: EngineTopology) -> None:
        system_values = self._read_system(self._system_fields())
        driver = str(system_values.get(field_ids.DRIVER_VERSION) or "")
        inventory = discover(self._connection, topology, self._known, driver, self._live)
        self._known.remember(inventory)
        self._versions = {
            "dcgm": self._connection.engine_version or self._connection.library.version,
            "nvml": str(system_values.get(field_ids.NVML_VERSION) or ""),
            "driver": driver,
        }
        system_batches = _system_batches(inventory, system_values, self._wanted)
        links = find_links(self._connection, inventory, self._wanted)
        self._current = _CurrentPlan(inventory, (), system_batches, Counter(), links)
        self._watch()

    def _watch(self) -> None:
        """Watch every wanted field of the current devices."""
        self._watches.close()
        inventory = self._current.inventory
        self._targets = targets_of(inventory, plan(inventory.devices, self._fields), self._wanted)
        self._targets += link_targets(self._current.links, self._wanted)
        self._watched, self._rejected = [], []
        # Profiling fields last: whatever fails there, the others are watched by then.
        self._watch_more(sorted(self._targets, key=lambda target: target.watch == "profiling"))
        self._rewatch.failed()  # until the samples are found to be good; then `read` resets it

    def _watch_rejected(self) -> None:
        """Try again to watch the profiling fields that were rejected; all other watches remain."""
        rejected, self._rejected = self._rejected, []
        profiling = [target for target in self._targets if target.watch == "profiling"]
        device_of = {entity: device for target in profiling for entity, device in target.entities_with_devices()}
        again = [
            WatchTarget(
                "profiling", watch.entities, tuple(device_of[entity] for entity in watch.entities), watch.fields
            )
            for watch in rejected
        ]
        self._watch_more(again)

    def _watch_more(self, targets: Sequence[WatchTarget]) -> None:
        max_entities = layout.ENTITIES_PER_CALL[self._connection.library.major]
        for target in targets:
            for piece in target.split(max_entities):
                watched, rejected = self._watch_piece(piece)
                self._watched += watched
                self._rejected += rejected
        self._retry.plan(self._rejected)
        reads = tuple(batch_reads(self._watched, self._wanted, self._interval))
        self._current = replace(self._current, reads=reads, never_read=self._never_read())

    def _watch_piece(self, target: WatchTarget) -> tuple[list[WatchTarget], list[RejectedWatch]]:
        """Watch what the engine accepts of a target. Returns that, and the profiling fields that it rejected."""
        if target.watch == "profiling":
            gpus = [self._gpu_of(target, position) for position in target.entity_devices]
            watched, rejected = watch_profiling(self._watches, target.entities, target.fields, gpus)
            return [target.restricted_to(entities, fields) for entities, fields in watched], rejected
        supported = self._watches.watch_supported(target.entities, target.fields, target.watch)
        return [target.restricted_to(target.entities, supported)] if supported else [], []

    def _gpu_of(self, target: WatchTarget, position: int) -> int:
        """Return the index of the GPU of a device or of a link of the target."""
        device = self._current.links.links[position].gpu if target.of_links else position
        return self._current.inventory.devices[device].index

    def _read_system(self, fields: Sequence[WantedField]) -> dict[int, SampleValue]:
        """Read the node's own fields, by halves where one of them fails the whole read.

        In 4.6.0 an event field does so, such as 6 (bind and unbind), with -3; a field that the engine does not know has
        status -13 in its own record instead (measured).
        """
        try:
            values = self._live([(layout.ENTITY_NONE, 0)], fields)
            return {field: value for (_, _, field), value in values.items()}
        except StatusError as error:
            if error.status not in (layout.GENERIC_ERROR, layout.BAD_PARAMETER, layout.UNKNOWN_FIELD):
                raise
            if len(fields) == 1:
                return {fields[0].id: None}
        middle = len(fields) // 2
        return self._read_system(fields[:middle]) | self._read_system(fields[middle:])

    def _system_fields(self) -> list[WantedField]:
        """Return the wanted fields of the node, and its versions. No profiling field is among them (see LiveReader)."""
        wanted = {field.id: field for field in self._wanted.values() if field.scope == "system"}
        for number in (field_ids.DRIVER_VERSION, field_ids.NVML_VERSION):
            wanted.setdefault(number, WantedField(number, "string", "system", "basic"))
        return list(wanted.values())

    def _never_read(self) -> RejectionCounts:
        counts: RejectionCounts = Counter()
        for batch in self._current.system_batches:
            for field, column in zip(batch.fields, batch.columns, strict=True):
                if self._wanted[field].watch != "event" and None in column:
                    counts[field, RejectionReason.NOT_SUPPORTED] += len(column)
        for target in self._targets:
            for field in target.fields:
                error = self._watches.unsupported.get((target.entities[0][0], field))
                if error is not None:
                    counts[field, _unsupported_reason(error)] += len(target.devices)
        for watch in self._rejected:
            for field in watch.fields:
                reason = status_reason(watch.error.status) or RejectionReason.BLANK
                counts[field, reason] += len(watch.entities)
        return counts

    def _problems(self) -> tuple[tuple[str, str], ...]:
        """Return (reason, message), one message per reason."""
        problems = [
            *self._current.inventory.problems,
            *self._current.links.problems,
            *(watch.problem for watch in self._rejected),
        ]
        if self._watches.unsupported:
            numbers = ", ".join(map(str, sorted({field for _, field in self._watches.unsupported})))
            problems.append((DcgmReason.UNKNOWN_FIELD, f"the engine does not support these fields: {numbers}"))
        if self._is_newer_than_engine():
            library, engine = self._connection.library.version, self._connection.engine_version
            message = f"libdcgm {library} is newer than the engine {engine}, which may not understand its requests"
            problems.append((DcgmReason.LIBRARY_NEWER_THAN_ENGINE, message))
        return tuple({reason: (reason, message) for reason, message in reversed(problems)}.values())

    def _is_newer_than_engine(self) -> bool:
        # Requests have versions: libdcgm 4.6 sends reads in version 4, which an engine up to 4.5 does not have, while
        # engine 4.6 accepts versions 1 to 4 (source of 3.x to 4.6.0). So the library may be older, but not newer.
        engine = self._connection.engine_version
        return bool(engine) and _release(self._connection.library.version) > _release(engine)


def _release(version: str) -> tuple[int, ...]:
    """Return (4, 5) for `4.5.3`: no patch version has changed a request (source of 3.x to 4.6.0)."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _unsupported_reason(error: StatusError) -> RejectionReason:
    """Return why a field that the engine does not watch has no value."""
    reason = status_reason(error.status)
    return RejectionReason.NOT_SUPPORTED if reason in (None, RejectionReason.BLANK) else reason


def _system_batches(
    inventory: EngineInventory, values: Mapping[int, SampleValue], wanted: Mapping[int, WantedField]
) -> tuple[Batch, ...]:
    """Return the node's own values as values of every GPU that can be read."""
    gpus = tuple(index for index in inventory.readable if inventory.devices[index].gi < 0)
    fields = tuple(field.id for field in wanted.values() if field.scope == "system")
    if not gpus or not fields:
        return ()
    return (Batch(gpus, fields, tuple((values.get(field),) * len(gpus) for field in fields)),)
