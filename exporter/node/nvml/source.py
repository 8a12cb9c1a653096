"""The `nvml` source: reads GPUs and MIG devices through NVML, without a DCGM host engine and its privileges.

Runs in the reader process (the child process with the native libraries). A field that NVML does not have is rejected as
not supported. A GPU that cannot be reached is listed in `down` while the others are read.
"""

import time
from collections.abc import Callable, Mapping, Sequence

from exporter.node.devices import field_ids
from exporter.node.devices.device import Device
from exporter.node.devices.device_source import ReaderConfig, SourceChoice, WantedField
from exporter.node.devices.read_plan import ReadRequest, plan, unique
from exporter.node.devices.readings import Readings
from exporter.node.devices.validity import age_limit
from exporter.node.nvml import gpm
from exporter.node.nvml.batches import NvmlValues, assemble
from exporter.node.nvml.device_reader import DeviceReader, system_values
from exporter.node.nvml.discovery import NvmlDevice, NvmlDiscovery, NvmlInventory
from exporter.node.nvml.session import NvmlSession
from exporter.node.nvml.values import NvmlValue
from exporter.node.nvml.xid_events import XidEvents
from exporter.source import SourceError

REOPEN_SECONDS = 60.0
"""Seconds after which the session is closed and opened again while a GPU is lost, unreadable or not listed.

NVML lists the GPUs that were there at nvmlInit: only a new session finds one that came or came back later.
"""


class NvmlSource:
    """The `DeviceSource` over NVML.

    GPM needs two samples. `patience` is how many seconds a read may wait for the second sample of a device that was
    not sampled before; with 0 that device has no engine activity in its first collection.
    """

    name = "nvml"
    choice: SourceChoice | None = None

    def __init__(
        self,
        config: ReaderConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        patience: float = gpm.MIN_SAMPLE_SECONDS,
    ) -> None:
        self._fields, self._wanted = config.fields, {field.id: field for field in unique(config.fields)}
        self._interval, self._clock, self._wall, self._patience = config.interval, clock, wall, patience
        self._session = NvmlSession(clock)
        self._inventory = NvmlInventory()
        self._events = XidEvents(clock)
        self._reader = DeviceReader(clock)
        self._reopen_at: float | None = None
        self._planned: tuple[tuple[Device, ...], tuple[ReadRequest, ...]] = ((), ())

    def read(self) -> Readings:
        """Read every device once.

        Raises SourceError with a reason of `NvmlReason`: library_missing, driver_not_loaded, driver_mismatch,
        no_permission, not_initialized, timeout or failed. After driver_mismatch only a new process can succeed.
        """
        self._close_if_incomplete()
        self._session.open()
        try:
            return self._collect()
        except SourceError as error:
            self._free()
            raise self._session.failed(error) from None

    def want(self, fields: Sequence[WantedField]) -> None:
        """Read these fields from the next read on; the session, the XIDs and the samples of rates stay."""
        self._fields, self._wanted = tuple(fields), {field.id: field for field in unique(fields)}
        self._planned = (), ()

    def close(self) -> None:
        """Free what belongs to the session and close it. A later `read` opens a new one."""
        self._free()
        self._session.close()

    def _free(self) -> None:
        self._events.close()
        self._reader.close()

    def _collect(self) -> Readings:
        taken_at = self._wall()
        found = self._inventory.discover(self._session.versions.get("driver", ""))
        requests = self._plan(tuple(each.device for each in found.devices))
        self._collect_events(found)
        values = self._read_all(found, requests)
        self._reopen_at = None if found.complete else (self._reopen_at or self._clock() + REOPEN_SECONDS)
        return self._readings(taken_at, found, requests, values)

    def _plan(self, inventory: tuple[Device, ...]) -> tuple[ReadRequest, ...]:
        if inventory != self._planned[0]:
            self._planned = inventory, plan(inventory, self._fields)
        return self._planned[1]

    def _close_if_incomplete(self) -> None:
        if self._reopen_at is not None and self._clock() >= self._reopen_at:
            self._reopen_at = None
            self.close()

    def _collect_events(self, found: NvmlDiscovery) -> None:
        if field_ids.XID in self._wanted:
            gpus = [d for d in found.devices if d.device.gi < 0 and d.gpu_handle is not None]
            self._events.collect()
            for gpu in gpus:
                with found.costs_only(gpu.device.uuid):
                    self._events.watch(gpu.device.uuid, gpu.gpu_handle)

    def _read_all(self, found: NvmlDiscovery, requests: Sequence[ReadRequest]) -> NvmlValues:
        """Read every request. Those for engine activity come last: two GPM samples need time between them."""
        devices = found.devices
        self._reader.keep_only([each.device for each in devices if each.gpu_handle is not None])
        activity = [request for request in requests if request.watch == "profiling"]
        begun = [self._begin(found, devices[i]) for request in activity for i in request.devices]
        values: NvmlValues = {index: {} for index in range(len(devices))}
        system = system_values(self._session.versions) if not field_ids.SYSTEM.isdisjoint(self._wanted) else {}
        for request in requests:
            if request.watch != "profiling":
                self._read(found, request, values, system)
        if any(begun):
            time.sleep(min(self._patience, self._reader.seconds_until_ready()))
        for request in activity:
            self._read(found, request, values, system)
        return values

    def _begin(self, found: NvmlDiscovery, target: NvmlDevice) -> bool:
        with found.costs_only(target.device.uuid):
            return target.device.uuid not in found.down and self._reader.begin(target)
        return False

    def _read(
        self, found: NvmlDiscovery, request: ReadRequest, values: NvmlValues, system: Mapping[int, NvmlValue]
    ) -> None:
        for index in request.devices:
            target = found.devices[index]
            uuid = target.device.uuid
            if uuid in found.down:
                continue
            with found.costs_only(uuid):
                values[index] |= self._reader.read(target, request.fields)
            values[index] |= {field: value for field, value in system.items() if field in request.fields}
            if field_ids.XID in request.fields:
                values[index][field_ids.XID] = self._events.last(
                    uuid, age_limit(self._wanted[field_ids.XID], self._interval)
                )

    def _readings(
        self, taken_at: float, found: NvmlDiscovery, requests: Sequence[ReadRequest], values: NvmlValues
    ) -> Readings:
        inventory = tuple(each.device for each in found.devices)
        # Of a GPU that was lost during this collection nothing is exposed, not even what was read before.
        reachable = {i: own for i, own in values.items() if inventory[i].uuid not in found.down}
        batches, rejections = assemble(requests, reachable, self._wanted)
        return Readings(
            source=self.name,
            taken_at=taken_at,
            inventory=inventory,
            batches=batches,
            rejections=rejections,
            down=tuple(device.uuid for device in inventory if device.gi < 0 and device.uuid in found.down),
            problems=tuple(found.problems),
            versions=dict(self._session.versions),
        )
