"""The `nvml` source: reads GPUs and MIG devices through NVML, without a DCGM host engine and its privileges.

Runs in the reader process (the child process with the native libraries). A field that NVML does not have is rejected as
not supported. A GPU that cannot be reached, or whose calls hang, is listed in `down` while the others are read.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import pynvml

from exporter.node.devices.counters.computed_metrics import P2P_STATUS
from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.device_source import ReaderConfig, SourceChoice, WantedField
from exporter.node.devices.fields.read_plan import ReadRequest, plan, unique
from exporter.node.devices.fields.validity import age_limit
from exporter.node.devices.readings.processes import ProcessReadings
from exporter.node.devices.readings.readings import Readings, VgpuUtilization, XidReport
from exporter.node.nvml.calls import gpm
from exporter.node.nvml.calls.batches import assemble, assemble_parts
from exporter.node.nvml.calls.calls import library_problems
from exporter.node.nvml.entities.processes import ProcessReader
from exporter.node.nvml.events.driver_events import DriverEvents
from exporter.node.nvml.events.xid_events import XidMemory
from exporter.node.nvml.native.contained_calls import ContainedCalls
from exporter.node.nvml.native.session import NvmlSession
from exporter.node.nvml.native.values import source_error
from exporter.node.nvml.reading.device_reader import system_values
from exporter.node.nvml.reading.gpu_reader import GpuMemory, GpuReader, GpuReadings, GpuRequest
from exporter.node.nvml.reading.inventory import InventoryMemory, NvmlInventory, links_of, vgpus_of
from exporter.source import SourceError

REOPEN_SECONDS = 60.0
"""Seconds after which the session is closed and opened again while a GPU is lost, unreadable or not listed.

NVML lists the GPUs that were there at nvmlInit: only a new session finds one that came or came back later. Where the
driver reports that it was bound to a GPU, the session is opened again at once.
"""
BUDGET_SHARE, MIN_BUDGET_SECONDS, MAX_BUDGET_SECONDS = 0.5, 2.0, 5.0
"""How long the GPUs that have not answered are waited for in a collection: this share of its interval, within limits.

So a slow GPU does not make the whole reader slow (four fifths of the interval) or hung (10 s). The least time is one
that healthy GPUs do not need even on a busy node; at intervals below 4 s a GPU that hangs delays one collection more.
"""


def time_budget(interval: float, *, first: bool) -> float:
    """Seconds for the GPUs in a collection; in the `first` of a session the driver may have to initialize each."""
    return MAX_BUDGET_SECONDS if first else min(max(interval * BUDGET_SHARE, MIN_BUDGET_SECONDS), MAX_BUDGET_SECONDS)


class NvmlSource:
    """The `DeviceSource` over NVML.

    GPM needs two samples. `patience` is how many seconds a read may wait for the second sample of a device that was
    not sampled before; with 0 that device has no engine activity in its first collection. `unbound` is called, in
    another thread, when the driver is to be unbound from a GPU, with the XIDs that may not have arrived; without it
    that is not watched.
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
        unbound: Callable[[Sequence[XidReport]], None] | None = None,
    ) -> None:
        self._fields, self._wanted = config.fields, {field.id: field for field in unique(config.fields)}
        self._wants_processes = config.processes
        self._interval, self._clock, self._wall, self._patience = config.interval, clock, wall, patience
        self._calls: ContainedCalls[GpuReadings] = ContainedCalls()
        self._session = NvmlSession(clock, in_use=lambda: bool(self._calls.unreturned()))
        self._gpus: dict[int, GpuReader] = {}
        """By NVML index, in this session."""
        self._gpu_memory, self._inventory_memory = GpuMemory(XidMemory(clock, wall)), InventoryMemory()
        self._reopen_at: float | None = None
        self._unbound = unbound
        self._driver_events: DriverEvents | None = None
        """Of this session, where unbinding is watched."""
        self._planned: tuple[tuple[Device, ...], tuple[ReadRequest, ...]] = ((), ())

    def read(self) -> Readings:
        """Read every device once.

        Raises SourceError with a reason of `NvmlReason`: library_missing, driver_not_loaded, driver_mismatch,
        no_permission, not_initialized, timeout or failed. After driver_mismatch only a new process can succeed.
        """
        self._close_if_outdated()
        first = not self._session.is_open
        if first:
            self._end_driver_events()
        try:
            self._session.open()
        finally:
            self._watch_driver()
        try:
            return self._collect(time_budget(self._interval, first=first))
        except SourceError as error:
            self._free()
            failed = self._session.failed(error)
            self._watch_driver()
            raise failed from None

    def want(self, fields: Sequence[WantedField]) -> None:
        """Read these fields from the next read on; the session, the XIDs and the samples of rates stay."""
        self._fields, self._wanted = tuple(fields), {field.id: field for field in unique(fields)}
        self._planned = (), ()

    def close(self) -> None:
        """Free what belongs to the session and close it, except what a hanging call uses. A `read` opens a new one."""
        self._free()
        self._session.close()
        self._calls.release()

    def _free(self) -> None:
        in_use = self._calls.unreturned()
        if self._driver_events is not None:
            self._driver_events.stop()  # all at once: each needs a moment to end
        for gpu in self._gpus.values():
            gpu.stop()
        self._end_driver_events()
        for index, gpu in self._gpus.items():
            if index not in in_use:
                gpu.close()
        self._gpus = {}

    def _watch_driver(self) -> None:
        """Watch the driver while NVML has the GPUs open: also after a failure, while a call that hangs uses them."""
        if self._unbound is not None and self._driver_events is None and self._session.has_gpus_open:
            unbound, xids = self._unbound, self._gpu_memory.xids
            self._driver_events = DriverEvents(lambda: unbound(xids.unconfirmed()))

    def _end_driver_events(self) -> None:
        """End the watch, whose event set a shutdown of NVML frees."""
        events, self._driver_events = self._driver_events, None
        if events is not None:
            events.close()

    def _collect(self, budget: float) -> Readings:
        taken_at = self._wall()
        count = _gpu_count()
        for index in range(count):
            if index not in self._gpus:
                processes = ProcessReader(self._wall, self._interval)
                self._gpus[index] = GpuReader(index, self._gpu_memory, self._clock, processes)
        read = self._read_gpus(range(count), self._request(), time.monotonic() + budget)
        found = self._inventory_memory.inventory(read.values(), set(range(count)) - read.keys())
        self._reopen_at = None if found.complete else (self._reopen_at or self._clock() + REOPEN_SECONDS)
        readings = self._readings(taken_at, found, tuple(read.values()))
        if not self._wants_processes:
            return readings
        of_gpus = (each.processes for each in read.values() if not each.down)
        listed = tuple(each for each in of_gpus if each is not None)
        return msgspec.structs.replace(readings, processes=ProcessReadings(listed))

    def _request(self) -> GpuRequest:
        versions = self._session.versions
        system = system_values(versions) if not field_ids.SYSTEM.isdisjoint(self._wanted) else {}
        xid = self._wanted.get(field_ids.XID)
        return GpuRequest(
            self._fields,
            versions.get("driver", ""),
            system,
            age_limit(xid, self._interval) if xid else None,
            self._wants_processes,
        )

    def _read_gpus(self, indexes: Sequence[int], request: GpuRequest, until: float) -> dict[int, GpuReadings]:
        """Read every GPU; one that has not answered at the monotonic time `until` is not in the result."""
        reads = {index: partial(self._gpus[index].read, request) for index in indexes}
        read = self._calls.run(reads, until - time.monotonic())
        waits = {index: each.activity_after for index, each in read.items() if each.activity_after is not None}
        if waits:
            time.sleep(min(self._patience, max(waits.values())))
            reads = {index: partial(self._gpus[index].read_activity, request, read[index]) for index in waits}
            done = self._calls.run(reads, until - time.monotonic())
            read = {index: each for index, each in read.items() if index in done or index not in waits}
        return self._with_p2p(read, until) if P2P_STATUS in self._wanted else read

    def _with_p2p(self, read: dict[int, GpuReadings], until: float) -> dict[int, GpuReadings]:
        """Read the peer-to-peer statuses of the GPUs that answer; a GPU that hangs in it is not in the result."""
        found = {index: each.found for index, each in read.items() if each.found is not None and not each.down}
        handles = {each.uuid: each.devices[0].gpu_handle for each in found.values()}
        reads = {index: partial(self._gpus[index].read_p2p, read[index], handles) for index in found}
        done = self._calls.run(reads, until - time.monotonic())
        return {index: each for index, each in read.items() if index in done or index not in found}

    def _plan(self, inventory: tuple[Device, ...]) -> tuple[ReadRequest, ...]:
        if inventory != self._planned[0]:
            self._planned = inventory, plan(inventory, self._fields)
        return self._planned[1]

    def _close_if_outdated(self) -> None:
        due = self._reopen_at is not None and self._clock() >= self._reopen_at
        bound = self._driver_events is not None and self._driver_events.bound
        if (due or bound) and not self._calls.unreturned():
            self._reopen_at = None
            self.close()

    def _readings(self, taken_at: float, found: NvmlInventory, read: Sequence[GpuReadings]) -> Readings:
        inventory = tuple(found.devices)
        values = {index: own for index, own in enumerate(found.values) if own is not None}
        batches, rejections = assemble(self._plan(inventory), values, self._wanted)
        links, vgpus = links_of(read, found), vgpus_of(read, found)
        link_batches, of_links = assemble_parts(list(links.values()), self._wanted)
        vgpu_batches, of_vgpus = assemble_parts([each.values for _, each in vgpus], self._wanted)
        return Readings(
            source=self.name,
            taken_at=taken_at,
            inventory=inventory,
            batches=batches,
            rejections=(*rejections, *of_links, *of_vgpus),
            down=tuple(device.uuid for device in inventory if device.gi < 0 and device.uuid in found.down),
            xids=self._gpu_memory.xids.take(),
            p2p=tuple(pair for each in read for pair in each.p2p),
            problems=(*found.problems, *library_problems(self._wanted)),
            versions=dict(self._session.versions),
            links=tuple(links),
            link_batches=link_batches,
            vgpus=tuple(vgpu for vgpu, _ in vgpus),
            vgpu_batches=vgpu_batches,
            vgpu_utilization=tuple(
                VgpuUtilization(n, *each.utilization) for n, (_, each) in enumerate(vgpus) if each.utilization
            ),
        )


def _gpu_count() -> int:
    try:
        return int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError as error:
        raise source_error(error.value) from error
