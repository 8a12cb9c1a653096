"""Reads the processes of one GPU through NVML: which run, their framebuffer, and how much they use the multiprocessors.

The functions are called directly, not through pynvml: each has three versions, and what it returns is bounded.
Whatever fails costs the processes of this GPU and nothing else: the calls for its fields find out what is wrong.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pynvml

from exporter.node.devices.readings.processes import MAX_PROCESSES, GpuProcess, GpuProcesses, ProcessReason
from exporter.node.nvml.entities.sm_samples import SmSample, sampling_period, utilizations
from exporter.node.nvml.native.values import (
    DEPRECATED,
    FUNCTION_NOT_FOUND,
    NO_PERMISSION,
    NONE_32,
    NONE_64,
    NOT_FOUND,
    NOT_SUPPORTED,
)

INSUFFICIENT_SIZE: int = pynvml.NVML_ERROR_INSUFFICIENT_SIZE
LISTS = ("Compute", "Graphics", "MPSCompute")
MAX_SAMPLES = 64 * MAX_PROCESSES
"""More than any ring of samples has."""
SETTLED_US = 1_000_000
"""How long after the last known sample a GPU without a new one is idle: the driver samples several times a second."""
ATTEMPTS = 3
"""A process may start between the call for the size and the one for the list."""


class _OldestRecord(ctypes.Structure):
    """nvmlProcessInfo_v1_t, of drivers before MIG: no ids of MIG devices."""

    _fields_ = (("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong))


VERSIONS: tuple[tuple[str, type[ctypes.Structure]], ...] = (
    ("_v3", pynvml.c_nvmlProcessInfo_v3_t),
    ("_v2", pynvml.c_nvmlProcessInfo_v2_t),
    ("", _OldestRecord),
)
"""Suffix of the functions, and the record that they fill, the newest first."""


class _CallError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"return code {code}")
        self.code = code


class _TooManyError(Exception):
    pass


class ProcessReader:
    """Reads the processes of one GPU; keeps what must be known from one read to the next. For one thread at a time."""

    def __init__(self, wall: Callable[[], float], interval: float) -> None:
        """`wall` gives Unix seconds; `interval` is between reads, in seconds."""
        self._wall, self._interval_us = wall, round(interval * 1e6)
        self._seen = 0
        """Until when (Unix microseconds, by the driver) samples were read."""
        self._period_us: int | None = None
        """Microseconds between samples of a process, where NVML returns several of one."""

    def read(self, uuid: str, handle: Any, instances: Sequence[Any] = ()) -> GpuProcesses:
        """Return the processes of this GPU and its MIG devices, or why they are not known.

        `instances` are the handles of its compute instances: without the privilege to list the processes of all of them
        at once, NVML lists those of each (NVML reference, nvmlDeviceGetComputeRunningProcesses_v3).
        """
        try:
            found = _running_on_any(handle, instances)
        except _CallError as error:
            reasons = {NOT_SUPPORTED: ProcessReason.NOT_SUPPORTED, NO_PERMISSION: ProcessReason.NO_PERMISSION}
            reason = reasons.get(error.code, ProcessReason.FAILED)
            return GpuProcesses(uuid, problem=(reason, f"the processes of {uuid} cannot be listed: {error}"))
        except _TooManyError:
            return GpuProcesses(uuid, problem=(ProcessReason.TOO_MANY, f"{uuid} has more than {MAX_PROCESSES}"))
        shares = self._shares(handle)
        if shares is None:
            return GpuProcesses(uuid, found)
        with_sm = (
            GpuProcess(each.pid, each.gi, each.ci, each.memory, min(shares.get(each.pid, 0.0), 1.0), each.mps)
            for each in found
        )
        return GpuProcesses(uuid, tuple(with_sm), sm_known=True)

    def _shares(self, handle: Any) -> dict[int, float] | None:
        """Return the utilization of each process since the read before; None where it is not known."""
        now = round(self._wall() * 1e6)
        if not 0 < now - self._seen <= 2 * self._interval_us + SETTLED_US:  # first, after a pause, or another clock
            self._seen = now - self._interval_us
        since = self._seen
        try:
            samples = _samples(handle, since)
        except (_CallError, _TooManyError):
            return None
        newest = max((each.at for each in samples), default=0)
        if newest > since:
            self._seen = newest
            self._period_us = sampling_period(samples, self._period_us)
            return utilizations(samples, since, self._period_us)
        if now - since < SETTLED_US:  # the driver may not have sampled yet
            return None
        self._seen = max(since, now - SETTLED_US)
        return {}


def _running_on_any(handle: Any, instances: Sequence[Any]) -> tuple[GpuProcess, ...]:
    try:
        return _running(handle)
    except _CallError as error:
        if error.code != NO_PERMISSION or not instances:
            raise
    found = {process for each in instances for process in _running(each)}
    return tuple(sorted(found, key=lambda each: (each.pid, each.gi, each.ci)))


def _running(handle: Any) -> tuple[GpuProcess, ...]:
    """Return the processes of every list, each once: one that is in several has the same framebuffer in each."""
    found: dict[tuple[int, int, int], GpuProcess] = {}
    for name in LISTS:
        for pid, gi, ci, memory in _list(handle, name):
            before = found.get((pid, gi, ci))
            known = [each for each in (memory, before.memory if before else None) if each is not None]
            mps = name == "MPSCompute" or (before is not None and before.mps)
            found[pid, gi, ci] = GpuProcess(pid, gi, ci, max(known, default=None), mps=mps)
            if len(found) > MAX_PROCESSES:
                raise _TooManyError
    return tuple(found[key] for key in sorted(found))


def _list(handle: Any, name: str) -> Iterator[tuple[int, int, int, int | None]]:
    """Yield PID, GPU instance id, compute instance id and bytes of each process of one list of NVML."""
    for suffix, record in VERSIONS:
        function = getattr(pynvml.nvmlLib, f"nvmlDeviceGet{name}RunningProcesses{suffix}", None)
        if function is None:
            continue
        try:
            records = _filled(partial(_call_list, function, handle), record, MAX_PROCESSES)
        except _CallError as error:
            if error.code == FUNCTION_NOT_FOUND:
                continue
            if name != "Compute" and error.code == NOT_SUPPORTED:  # as graphics on a GPU that only computes
                return
            raise
        for each in records:
            gi, ci = (getattr(each, key, NONE_32) for key in ("gpuInstanceId", "computeInstanceId"))
            memory = None if each.usedGpuMemory == NONE_64 else each.usedGpuMemory
            yield each.pid, -1 if gi == NONE_32 else gi, -1 if ci == NONE_32 else ci, memory
        return
    if name == "Compute":
        raise _CallError(NOT_SUPPORTED)


def _call_list(function: Callable[..., int], handle: Any, count: ctypes.c_uint, array: Any) -> int:
    return function(handle, ctypes.byref(count), array)


def _samples(handle: Any, since: int) -> list[SmSample]:
    """Return the samples after `since`; none where the driver has none."""
    try:
        function = getattr(pynvml.nvmlLib, "nvmlDeviceGetProcessUtilization", None)
        if function is None:
            raise _CallError(FUNCTION_NOT_FOUND)
        records = _filled(
            lambda count, array: function(handle, array, ctypes.byref(count), ctypes.c_ulonglong(since)),
            pynvml.c_nvmlProcessUtilizationSample_t,
            MAX_SAMPLES,
        )
    except _CallError as error:
        if error.code == NOT_FOUND:
            return []
        if error.code not in {FUNCTION_NOT_FOUND, DEPRECATED}:
            raise
        records = _newer_samples(handle, since)
    return [SmSample(each.pid, each.timeStamp, each.smUtil) for each in records]


def _newer_samples(handle: Any, since: int) -> list[Any]:
    """Read the samples with the function that is to replace the other one."""
    function = getattr(pynvml.nvmlLib, "nvmlDeviceGetProcessesUtilizationInfo", None)
    if function is None:
        raise _CallError(FUNCTION_NOT_FOUND)

    def fill(count: ctypes.c_uint, array: Any) -> int:
        info = pynvml.c_nvmlProcessesUtilizationInfo_v1_t()
        info.version, info.lastSeenTimeStamp = pynvml.ProcessesUtilizationInfo_v1, since
        info.processSamplesCount = count.value
        if array is not None:
            info.procUtilArray = array
        code = int(function(handle, ctypes.byref(info)))
        count.value = info.processSamplesCount
        return code

    try:
        return _filled(fill, pynvml.c_nvmlProcessUtilizationInfo_v1_t, MAX_SAMPLES)
    except _CallError as error:
        if error.code == NOT_FOUND:
            return []
        raise


def _filled(call: Callable[[ctypes.c_uint, Any], int], record: type[ctypes.Structure], most: int) -> list[Any]:
    """Call with no room, then with as much as is needed and some more. Raises _CallError or _TooManyError."""
    count, array = ctypes.c_uint(0), None
    for _ in range(ATTEMPTS):
        code = int(call(count, array))
        if code == pynvml.NVML_SUCCESS:
            return list(array[: count.value]) if array is not None else []
        if code != INSUFFICIENT_SIZE:
            raise _CallError(code)
        if count.value > most:
            raise _TooManyError
        count.value = min(count.value * 2 + 5, most)
        array = (record * count.value)()
    raise _CallError(INSUFFICIENT_SIZE)
