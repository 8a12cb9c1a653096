"""Reads one GPU, with its MIG devices, once per collection: discovery, then the wanted fields.

It runs in a worker thread (see contained_calls.py), and everything that a call into NVML uses belongs to one GPU: two
threads are never in the reader of the same GPU.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.fields.read_plan import ReadRequest, fields_of, plan
from exporter.node.devices.readings.processes import GpuProcesses, ProcessReason
from exporter.node.devices.readings.readings import P2pStatus
from exporter.node.nvml.calls.counter_rates import CounterRates
from exporter.node.nvml.calls.nvlink_rates import NvlinkRates
from exporter.node.nvml.entities.discovery import DiscoveredGpu, GpuFacts, discover_gpu
from exporter.node.nvml.entities.links import READ_FIELDS, LinkReader, LinkValues
from exporter.node.nvml.entities.p2p_status import p2p_statuses
from exporter.node.nvml.entities.processes import ProcessReader
from exporter.node.nvml.entities.vgpus import READ_FIELDS as VGPU_FIELDS
from exporter.node.nvml.entities.vgpus import VgpuReader, VgpuReadings
from exporter.node.nvml.events.xid_events import XidEvents, XidMemory
from exporter.node.nvml.native.reasons import NvmlReason
from exporter.node.nvml.native.values import GpuLostError, NvmlValue
from exporter.node.nvml.reading.device_reader import DeviceReader
from exporter.source import SourceError


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """What is known of the GPUs, by UUID, from earlier collections and sessions. Each GPU has entries of its own."""

    xids: XidMemory
    facts: dict[str, GpuFacts] = field(default_factory=dict)
    nvlink: NvlinkRates = field(default_factory=NvlinkRates)
    pcie: CounterRates = field(default_factory=CounterRates)


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """What a collection reads of every GPU."""

    fields: tuple[WantedField, ...]
    driver_version: str
    system: Mapping[int, NvmlValue]
    """Values of the node as a whole, by field."""
    xid_seconds: float | None
    """How long an XID is exposed; None where XIDs are not wanted."""
    processes: bool = False
    """Whether its processes are read."""


@dataclass(slots=True)
class GpuReadings:
    """What was read of the GPU with one NVML index."""

    index: int
    found: DiscoveredGpu | None = None
    failure: Exception | None = None
    """Why it was not found."""
    down: bool = False
    """Whether it was found and then could not be read."""
    values: list[dict[int, NvmlValue | None]] = field(default_factory=list)
    """By device of `found`, by field."""
    links: dict[int, LinkValues] = field(default_factory=dict)
    """By the number of an NVLink, where a field of links is wanted."""
    vgpus: tuple[VgpuReadings, ...] = ()
    """Where a field of vGPUs is wanted."""
    p2p: tuple[P2pStatus, ...] = ()
    processes: GpuProcesses | None = None
    """None where they are not wanted."""
    activity_after: float | None = None
    """Seconds until engine activity, which is still to be read, can be read; None when it was."""

    @contextlib.contextmanager
    def costs_only_this(self) -> Iterator[None]:
        """Run what concerns this GPU: an exception makes it one that cannot be reached. Passes on SourceError."""
        try:
            yield
        except SourceError:
            raise
        except GpuLostError:
            self.down = True
        except Exception as error:  # noqa: BLE001 - also a defect costs one GPU, never the others
            assert self.found is not None
            self.down = True
            self.found.problems.append((NvmlReason.GPU_FAILED, f"{self.found.uuid} cannot be read: {error!r}"))


class GpuReader:
    """Reads the GPU with one NVML index, which stays the same GPU for one session. For use by one thread at a time."""

    def __init__(self, index: int, memory: GpuMemory, clock: Callable[[], float], processes: ProcessReader) -> None:
        self._index, self._memory, self._processes = index, memory, processes
        self._events = XidEvents(memory.xids)
        self._reader = DeviceReader(clock, memory.nvlink, memory.pcie)
        self._links = LinkReader(memory.nvlink, clock)
        self._vgpus = VgpuReader()
        self._planned: tuple[tuple[Device, ...], tuple[WantedField, ...], tuple[ReadRequest, ...]] = ((), (), ())

    def read(self, request: GpuRequest) -> GpuReadings:
        """Read the GPU once. Raises SourceError when the library as a whole fails.

        Engine activity needs two samples some time apart: where the first was taken now, `read_activity` reads it.
        """
        try:
            found = discover_gpu(self._index, request.driver_version, self._memory.facts)
        except SourceError:
            raise
        except Exception as error:  # noqa: BLE001 - also a defect costs one GPU, never the others
            self._reader.keep_only(())
            self._links.forget_samples()
            return GpuReadings(self._index, failure=error)
        readings = GpuReadings(self._index, found, values=[{} for _ in found.devices])
        with readings.costs_only_this():
            self._read_found(request, readings, found)
        return readings

    def read_activity(self, request: GpuRequest, readings: GpuReadings) -> GpuReadings:
        """Read the engine activity that `read` could not read yet."""
        with readings.costs_only_this():
            self._read_requests(request, readings, self._requests(request, readings, activity=True))
        return readings

    def read_p2p(self, readings: GpuReadings, gpus: Mapping[str, Any]) -> GpuReadings:
        """Read the peer-to-peer statuses towards these GPUs, handles by UUID."""
        assert readings.found is not None
        with readings.costs_only_this():
            readings.p2p = tuple(p2p_statuses(readings.found.uuid, gpus))
        return readings

    def stop(self) -> None:
        """Let the thread that receives XIDs end; `close` waits for it."""
        self._events.stop()

    def close(self) -> None:
        """Free what belongs to the session, before it is closed."""
        self._events.close()
        self._reader.close()
        self._links.forget_samples()

    def _read_found(self, request: GpuRequest, readings: GpuReadings, found: DiscoveredGpu) -> None:
        self._reader.keep_only([each.device for each in found.devices])
        if request.xid_seconds is not None:
            self._events.watch(found.uuid, found.devices[0].gpu_handle)
        activity = self._requests(request, readings, activity=True)
        begun = [self._reader.begin(found.devices[i]) for each in activity for i in each.devices]
        self._read_requests(request, readings, self._requests(request, readings, activity=False))
        handle = found.devices[0].gpu_handle
        if of_links := sorted(READ_FIELDS.intersection(fields_of("link", request.fields))):
            readings.links = self._links.read(found.uuid, handle, of_links)
        if of_vgpus := sorted(VGPU_FIELDS.intersection(fields_of("vgpu", request.fields))):
            readings.vgpus = tuple(self._vgpus.read(found, of_vgpus))
        if request.processes:
            readings.processes = self._read_processes(found)
        if any(begun):
            readings.activity_after = self._reader.seconds_until_ready()
        else:
            self._read_requests(request, readings, activity)

    def _read_processes(self, found: DiscoveredGpu) -> GpuProcesses:
        try:
            instances = tuple({id(each.handle): each.handle for each in found.devices[1:]}.values())
            return self._processes.read(found.uuid, found.devices[0].gpu_handle, instances)
        except Exception as error:  # noqa: BLE001 - a defect costs the processes of this GPU, and not the GPU
            message = f"the processes of {found.uuid} cannot be read: {error!r}"
            return GpuProcesses(found.uuid, problem=(ProcessReason.FAILED, message))

    def _requests(self, request: GpuRequest, readings: GpuReadings, *, activity: bool) -> list[ReadRequest]:
        assert readings.found is not None
        devices = tuple(each.device for each in readings.found.devices)
        if (devices, request.fields) != self._planned[:2]:
            self._planned = devices, request.fields, plan(devices, request.fields)
        return [each for each in self._planned[2] if (each.watch == "profiling") == activity]

    def _read_requests(self, request: GpuRequest, readings: GpuReadings, requests: Sequence[ReadRequest]) -> None:
        assert readings.found is not None
        for each in requests:
            for i in each.devices:
                values = readings.values[i]
                values |= self._reader.read(readings.found.devices[i], each.fields)
                values |= {number: value for number, value in request.system.items() if number in each.fields}
                if request.xid_seconds is not None and field_ids.XID in each.fields:
                    values[field_ids.XID] = self._events.last(readings.found.uuid, request.xid_seconds)
