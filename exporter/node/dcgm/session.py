"""Reads one engine through one connection: discovers the devices, watches their fields, then reads in each collection.

It discovers and watches again when the devices change or samples become stale. In: an open connection and the
configuration. Out: `Readings` (devices, samples, rejected values, problems).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from exporter.backoff import Backoff
from exporter.node.dcgm.clocks import Clocks
from exporter.node.dcgm.entities.discovery import discover
from exporter.node.dcgm.entities.inventory import DescribedGpus, EngineInventory
from exporter.node.dcgm.entities.topology import EngineTopology, read_topology
from exporter.node.dcgm.health.checks import NOTHING, HealthChecks, HealthReading
from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.native.live_reader import LiveReader
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.dcgm.native.status_scope import OF_THE_ENGINE
from exporter.node.dcgm.reading.p2p_status import read_p2p
from exporter.node.dcgm.reading.sampling import Sampling
from exporter.node.dcgm.targets.components import EngineComponents, find_components
from exporter.node.dcgm.targets.links import EngineLinks, find_links
from exporter.node.dcgm.targets.targets import WatchTarget
from exporter.node.devices.counters.computed_metrics import HEALTH_STATUS, P2P_STATUS
from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.driver_bindings import DriverBindings
from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.device_source import ReaderConfig, WantedField
from exporter.node.devices.fields.read_plan import unique
from exporter.node.devices.readings.readings import (
    Batch,
    P2pStatus,
    Readings,
    Rejection,
    RejectionCounts,
    RejectionReason,
    SampleValue,
)

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
"""Seconds between two attempts to discover and watch again because samples were stale or a device had no identity.

Also between two attempts to read the UUIDs of compute instances that had none.
"""

ReadBindings = Callable[[Sequence[Device]], DriverBindings]


class EngineSession:
    """Reads through one connection. After any SourceError close it, and open another connection and session."""

    def __init__(
        self,
        connection: EngineConnection,
        config: ReaderConfig,
        known: dict[str, Device],
        clocks: Clocks,
        bindings: ReadBindings,
    ) -> None:
        """`known` is updated: it has every GPU that any session of the source found and that was not replaced.

        `bindings` gives what changes with each binding of the driver to one of these GPUs.
        """
        self._bindings, self._bound = bindings, DriverBindings()
        self._connection, self._known, self._clocks = connection, DescribedGpus(known), clocks
        self._live = LiveReader(connection, clocks.wall)
        self._wanted = {field.id: field for field in unique(config.fields)}
        self._sampling = Sampling(connection, config, self._wanted, clocks)
        self._health = HealthChecks(connection, config.interval, config.bindings, clocks.steady)
        self._topology: EngineTopology | None = None
        self._inventory, self._links = EngineInventory((), (), {}, (), ()), EngineLinks()
        self._components, self._selections = EngineComponents(), config.selections
        self._changed = False
        """Whether other fields are wanted than those that are watched."""
        self._system_values: Mapping[int, SampleValue] = {}
        """The node's own values, such as the driver version, which are read once: they change only with the engine."""
        self._p2p_problems: tuple[tuple[str, str], ...] = ()
        self._suspect: Sequence[WatchTarget] = ()
        self._rewatch = Backoff(FIRST_PAUSE, LONGEST_PAUSE, clocks.steady)
        self._naming = Backoff(FIRST_PAUSE, LONGEST_PAUSE, clocks.steady)

    def read(self) -> Readings:
        """Read everything once. Raises SourceError."""
        taken_at = self._clocks.wall()
        self._follow(read_topology(self._connection))
        sampled = self._sampling.read()
        self._suspect = sampled.suspect
        if not sampled.suspect and self._is_complete():
            self._rewatch.reset()
        p2p, self._p2p_problems = self._p2p()
        down = self._inventory.down + tuple(sorted(self._sampling.down()))
        system_batches = _system_batches(self._inventory, down, self._system_values, self._wanted)
        counts = sampled.counts + self._system_rejections(system_batches)
        health = self._read_health()
        return Readings(
            source="dcgm",
            taken_at=taken_at,
            inventory=self._inventory.devices,
            batches=(*system_batches, *sampled.batches),
            rejections=tuple(Rejection(*key, count) for key, count in sorted(counts.items())),
            down=down,
            xids=tuple(sorted(sampled.xids, key=lambda report: report.at)),
            p2p=p2p,
            problems=(*self._problems(), *health.problems),
            health=health.statuses,
            versions=self._versions(),
            links=self._links.links,
            engine_ids=tuple(-1 if entity is None else entity[1] for entity in self._inventory.entities),
            link_batches=tuple(sampled.link_batches),
            components=self._components.components,
            component_batches=tuple(sampled.component_batches),
        )

    def want(self, fields: Sequence[WantedField]) -> None:
        """Watch and read these fields from the next read on. What is watched already stays so."""
        self._wanted = {field.id: field for field in unique(fields)}
        self._changed = True

    def close(self) -> None:
        """Remove every watch and group, then close the connection. Never raises."""
        self._health.close()
        self._sampling.close()
        self._connection.close()

    def _read_health(self) -> HealthReading:
        if HEALTH_STATUS in self._wanted:
            return self._health.read(self._inventory)
        self._health.close()
        return NOTHING

    def _follow(self, topology: EngineTopology) -> None:
        """Discover and watch again if the topology changed or the last samples were suspect, or retry rejections."""
        # When a driver is unbound from a GPU or bound to it, the engine closes all GPUs and forgets the watches of
        # groups that a client made (4.6.0, source). Both may have happened since the last read.
        rebound = self._bindings(self._inventory.devices) != self._bound
        if topology != self._topology or rebound:
            detached = self._topology is not None and self._topology.detached != topology.detached
            anew = detached or rebound
            self._topology = None  # so that a failure half-way is not taken for a finished discovery
            self._rewatch.reset()  # only watching again what did not change waits longer each time
            self._naming.reset()
            self._sampling.wanted = self._wanted
            self._components = find_components(self._connection, self._wanted, self._selections)
            self._watch(self._discovered(topology), anew=anew)
            self._topology = topology
        elif self._components_changed() or self._changed:
            self._watch_changed()
        # A MIG device made again with the same ids and profile does not change the topology. Its watch is the old one,
        # whose value no longer changes (4.6.0, source), so it becomes stale.
        elif self._may_have_changed():
            self._watch_again(self._discovered(topology))
        else:
            self._sampling.retry()

    def _components_changed(self) -> bool:
        """List the components anew; return whether they are others than before."""
        before, self._components = self._components, find_components(self._connection, self._wanted, self._selections)
        return before != self._components

    def _p2p(self) -> tuple[tuple[P2pStatus, ...], tuple[tuple[str, str], ...]]:
        if P2P_STATUS not in self._wanted:
            return (), ()
        return read_p2p(self._connection, self._inventory)

    def _discovered(self, topology: EngineTopology) -> EngineInventory:
        self._system_values = self._read_system(self._system_fields())
        inventory = discover(self._connection, topology, self._known, self._driver(), self._live)
        self._known.remember(inventory)
        if inventory.lacks_uuids:
            self._naming.failed()
        return inventory

    def _watch(self, inventory: EngineInventory, *, anew: bool = False) -> None:
        """Watch every wanted field of these devices; with `anew`, also what is watched already."""
        self._inventory = inventory
        self._links = find_links(self._connection, inventory, self._wanted)
        self._sampling.start(inventory, self._links, self._components, anew=anew)
        self._bound = self._bindings(inventory.devices)
        self._changed = False
        self._rewatch.failed()  # until the samples are found to be good; then `read` resets it

    def _watch_changed(self) -> None:
        """Watch other fields, or other components, beside the same devices."""
        self._system_values = self._read_system(self._system_fields())
        self._links = find_links(self._connection, self._inventory, self._wanted)
        self._sampling.wanted = self._wanted
        self._sampling.start(self._inventory, self._links, self._components)
        self._changed = False

    def _watch_again(self, inventory: EngineInventory) -> None:
        """Watch everything if another discovery found other devices or links, else only what was suspect."""
        links = find_links(self._connection, inventory, self._wanted)
        if (inventory, links) != (self._inventory, self._links):
            self._watch(inventory)
        else:
            self._sampling.watch_again(self._suspect)
            self._rewatch.failed()

    def _may_have_changed(self) -> bool:
        """Whether it is time for another discovery although the topology is the same."""
        if self._inventory.lacks_uuids and self._naming.due:
            return True
        return bool(self._suspect or not self._is_complete()) and self._rewatch.due

    def _is_complete(self) -> bool:
        """Whether another discovery could not find more."""
        return self._inventory.complete and not self._links.problems

    def _driver(self) -> str:
        return str(self._system_values.get(field_ids.DRIVER_VERSION) or "")

    def _versions(self) -> dict[str, str]:
        return {
            "dcgm": self._connection.engine_version or self._connection.library.version,
            "nvml": str(self._system_values.get(field_ids.NVML_VERSION) or ""),
            "driver": self._driver(),
        }

    def _read_system(self, fields: Sequence[WantedField]) -> dict[int, SampleValue]:
        """Read the node's own fields, by halves where one of them fails the whole read.

        In 4.6.0 an event field does so, such as 6 (bind and unbind), with -3; a field that the engine does not know has
        status -13 in its own record instead (measured).
        """
        try:
            values = self._live([(layout.ENTITY_NONE, 0)], fields)
            return {field: value for (_, _, field), value in values.items()}
        except StatusError as error:
            if error.status in OF_THE_ENGINE:
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

    def _system_rejections(self, batches: Sequence[Batch]) -> RejectionCounts:
        counts: RejectionCounts = Counter()
        for batch in batches:
            for field, column in zip(batch.fields, batch.columns, strict=True):
                if self._wanted[field].watch != "event" and None in column:
                    counts[field, RejectionReason.NOT_SUPPORTED] += len(column)
        return counts

    def _problems(self) -> tuple[tuple[str, str], ...]:
        """Return (reason, message), one message per reason."""
        found = (self._inventory, self._links, self._components)
        problems = [problem for each in found for problem in each.problems]
        problems += [*self._sampling.problems(), *self._p2p_problems]
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


def _system_batches(
    inventory: EngineInventory,
    down: Sequence[str],
    values: Mapping[int, SampleValue],
    wanted: Mapping[int, WantedField],
) -> tuple[Batch, ...]:
    """Return the node's own values as values of every GPU that can be read."""
    devices = inventory.devices
    gpus = tuple(i for i in inventory.readable if devices[i].gi < 0 and devices[i].uuid not in down)
    fields = tuple(field.id for field in wanted.values() if field.scope == "system")
    if not gpus or not fields:
        return ()
    return (Batch(gpus, fields, tuple((values.get(field),) * len(gpus) for field in fields)),)
