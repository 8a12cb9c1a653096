"""Lets the engine check the health of the GPUs, through NVIDIA's Python bindings.

Their records of the answer change from version to version of DCGM; the bindings are installed with the version that
they fit. In: the GPUs of the engine. Out: the result of each check of each GPU.
"""

from collections.abc import Callable, Mapping
from ctypes import c_void_p
from typing import Any, NamedTuple

from exporter.backoff import Backoff
from exporter.node.dcgm.entities.inventory import EngineInventory
from exporter.node.dcgm.health.bindings import Bindings, BindingsError, load
from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.devices.readings.health import ALL, NO_ERROR, PASSED, WATCHES, HealthReason, HealthStatus

KEEP_SECONDS = 600.0
"""How long the engine keeps the samples that its checks compare."""
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
"""Seconds between two attempts after the engine rejected a group or its checks."""


class HealthReading(NamedTuple):
    """The results of one collection."""

    statuses: tuple[HealthStatus, ...] | None = None
    """None where nothing could be checked."""
    problems: tuple[tuple[str, str], ...] = ()
    """(reason, message)."""


NOTHING = HealthReading()


class HealthChecks:
    """The health checks of one connection, in a group of their own."""

    def __init__(
        self, connection: EngineConnection, interval: float, folder: str | None, clock: Callable[[], float]
    ) -> None:
        """`interval` is between collections, in seconds; `folder` has the bindings; `clock` must be monotonic."""
        self._connection, self._interval, self._folder = connection, interval, folder
        self._handle = c_void_p(connection.handle)
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, clock)
        self._bindings: Bindings | None = None
        self._gpus: Mapping[int, str] = {}
        """UUIDs by engine id, of the GPUs that are checked or were rejected."""
        self._group: c_void_p | None = None
        self._checked: dict[int, str] = {}
        self._problem: tuple[str, str] | None = None

    def read(self, inventory: EngineInventory) -> HealthReading:
        """Read the results of the readable GPUs. Never raises: a failure costs the health checks alone."""
        gpus = {
            entity[1]: device.uuid
            for device, entity in zip(inventory.devices, inventory.entities, strict=True)
            if entity is not None and device.gi < 0
        }
        if gpus != self._gpus or (self._problem is not None and self._backoff.due):
            # The engine has nothing to compare yet, so that its first answer would be that all is well.
            return self._begun(gpus)
        if self._group is None:
            return self._reading(None)
        try:
            return self._reading(self._statuses())
        except Exception as error:  # noqa: BLE001 - see `read`
            self._failed(f"dcgmHealthCheck failed: {error!r}")
            return self._reading(None)

    def close(self) -> None:
        """Destroy the group, and with it the checks. Never raises."""
        self._gpus = {}
        self._destroy_group()

    def _destroy_group(self) -> None:
        group, self._group, self._checked = self._group, None, {}
        if group is not None:
            self._connection.status("dcgmGroupDestroy", group.value)

    def _reading(self, statuses: tuple[HealthStatus, ...] | None) -> HealthReading:
        return HealthReading(statuses, () if self._problem is None else (self._problem,))

    def _begun(self, gpus: Mapping[int, str]) -> HealthReading:
        self.close()
        self._gpus, self._problem = gpus, None
        try:
            self._bindings = self._bindings or load(self._connection.library, self._folder)
            self._begin(self._bindings, gpus)
        except BindingsError as error:
            self._problem = HealthReason.HEALTH_BINDINGS_MISSING, str(error)
            self._backoff.failed()
        except Exception as error:  # noqa: BLE001 - see `read`
            self._destroy_group()  # a group without checks would be answered as one in which all is well
            self._failed(f"the health checks cannot be set up: {error!r}")
        if self._problem is None:
            self._backoff.reset()
        return self._reading(None if self._group is None else ())

    def _begin(self, bindings: Bindings, gpus: Mapping[int, str]) -> None:
        agent, structs = bindings.agent, bindings.structs
        group = agent.dcgmGroupCreate(self._handle, structs.DCGM_GROUP_EMPTY, f"gpugauge-health-{id(self):x}")
        self._group = group
        for gpu_id, uuid in gpus.items():
            try:
                agent.dcgmGroupAddEntity(self._handle, group, layout.ENTITY_GPU, gpu_id)
            except structs.DCGMError as error:
                self._failed(f"the engine does not check the health of {uuid}: {error}")
            else:
                self._checked[gpu_id] = uuid
        interval = round(self._interval * 1e6)
        agent.dcgmHealthSet_v2(self._handle, group, sum(WATCHES.values()), interval, KEEP_SECONDS)

    def _failed(self, message: str) -> None:
        """Report the failure, and try again after a pause."""
        self._problem = HealthReason.HEALTH_FAILED, " ".join(message.split())
        self._backoff.failed()

    def _statuses(self) -> tuple[HealthStatus, ...]:
        """Ask the engine; the worst of several results of one check counts. Raises what the bindings raise."""
        bindings = self._bindings
        if bindings is None:
            return ()
        answer = bindings.agent.dcgmHealthCheck(self._handle, self._group)
        names = {bit: name for name, bit in WATCHES.items()}
        found: dict[tuple[int, str], tuple[int, str]] = {}
        for incident in answer.incidents[: answer.incidentCount]:
            gpu, watch = incident.entityInfo, names.get(incident.system)
            if gpu.entityGroupId == layout.ENTITY_GPU and watch is not None:
                for each in (watch, ALL):
                    worst = found.get((gpu.entityId, each), (PASSED, NO_ERROR))
                    found[gpu.entityId, each] = max(worst, _result(incident, bindings), key=lambda result: result[0])
        return tuple(
            HealthStatus(uuid, watch, *found.get((gpu_id, watch), (PASSED, NO_ERROR)))
            for gpu_id, uuid in self._checked.items()
            for watch in (*WATCHES, ALL)
        )


def _result(incident: Any, bindings: Bindings) -> tuple[int, str]:
    code = int(incident.error.code)
    return int(incident.health), bindings.error_names.get(code, str(code))
