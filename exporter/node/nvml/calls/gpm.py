"""Reads engine activity through NVML's GPU Performance Monitoring (GPM, Hopper and newer), as DCGM's profiling fields.

GPM samples hardware counters. A value is computed from two samples of one device, as a ratio or in bytes per second.

NVML has the functions since driver R520. Metric ids and units are those of `nvml.h`: shares of time are percent,
rates are MiB/s.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pynvml

from exporter.node.devices.fields import field_ids
from exporter.node.devices.readings.readings import RejectionReason
from exporter.node.nvml.native.values import NOT_SUPPORTED, NvmlValue, RejectedValue, raw_reason, rejected

MIN_SAMPLE_SECONDS = 0.1
"""Least seconds between two samples: the counters are refreshed every 100 ms (nvmlGpmMetricsGet in `nvml.h`)."""

DECODERS = range(8)
"""Numbers of video decoders, and of JPEG decoders."""
LINKS = range(18)
"""Numbers of NVLinks that have a field of the GPU."""

RATIOS: Mapping[int, int] = {
    field_ids.GR_ENGINE_ACTIVE: pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL,
    field_ids.SM_ACTIVE: pynvml.NVML_GPM_METRIC_SM_UTIL,
    field_ids.SM_OCCUPANCY: pynvml.NVML_GPM_METRIC_SM_OCCUPANCY,
    field_ids.PIPE_TENSOR_ACTIVE: pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
    field_ids.DRAM_ACTIVE: pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
    field_ids.PIPE_FP64_ACTIVE: pynvml.NVML_GPM_METRIC_FP64_UTIL,
    field_ids.PIPE_FP32_ACTIVE: pynvml.NVML_GPM_METRIC_FP32_UTIL,
    field_ids.PIPE_FP16_ACTIVE: pynvml.NVML_GPM_METRIC_FP16_UTIL,
    field_ids.PIPE_TENSOR_IMMA_ACTIVE: pynvml.NVML_GPM_METRIC_IMMA_TENSOR_UTIL,
    field_ids.PIPE_TENSOR_HMMA_ACTIVE: pynvml.NVML_GPM_METRIC_HMMA_TENSOR_UTIL,
    field_ids.PIPE_TENSOR_DFMA_ACTIVE: pynvml.NVML_GPM_METRIC_DFMA_TENSOR_UTIL,
    field_ids.PIPE_INT_ACTIVE: pynvml.NVML_GPM_METRIC_INTEGER_UTIL,
    **{field_ids.NVDEC0_ACTIVE + n: pynvml.NVML_GPM_METRIC_NVDEC_0_UTIL + n for n in DECODERS},
    **{field_ids.NVJPG0_ACTIVE + n: pynvml.NVML_GPM_METRIC_NVJPG_0_UTIL + n for n in DECODERS},
    field_ids.NVOFA0_ACTIVE: pynvml.NVML_GPM_METRIC_NVOFA_0_UTIL,
    field_ids.NVOFA1_ACTIVE: pynvml.NVML_GPM_METRIC_NVOFA_1_UTIL,
}
"""DCGM field -> GPM metric in percent; the field is a ratio."""

RATES: Mapping[int, int] = {
    field_ids.PCIE_TX_BYTES: pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC,
    field_ids.PCIE_RX_BYTES: pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC,
    field_ids.NVLINK_TX_BYTES: pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC,
    field_ids.NVLINK_RX_BYTES: pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC,
    field_ids.C2C_TX_ALL_BYTES: pynvml.NVML_GPM_METRIC_C2C_TOTAL_TX_PER_SEC,
    field_ids.C2C_TX_DATA_BYTES: pynvml.NVML_GPM_METRIC_C2C_DATA_TX_PER_SEC,
    field_ids.C2C_RX_ALL_BYTES: pynvml.NVML_GPM_METRIC_C2C_TOTAL_RX_PER_SEC,
    field_ids.C2C_RX_DATA_BYTES: pynvml.NVML_GPM_METRIC_C2C_DATA_RX_PER_SEC,
    **{field_ids.NVLINK_L0_TX_BYTES + 2 * n: pynvml.NVML_GPM_METRIC_NVLINK_L0_TX_PER_SEC + 2 * n for n in LINKS},
    **{field_ids.NVLINK_L0_RX_BYTES + 2 * n: pynvml.NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC + 2 * n for n in LINKS},
}
"""DCGM field -> GPM metric in MiB/s; the field is bytes per second."""

FIELDS = frozenset(RATIOS) | frozenset(RATES)


def _metric_of_links(direction: str) -> tuple[int, ...]:
    numbers = range(pynvml.NVML_NVLINK_MAX_LINKS)
    return tuple(getattr(pynvml, f"NVML_GPM_METRIC_NVLINK_L{n}_{direction}_PER_SEC") for n in numbers)


LINK_RATES: Mapping[int, tuple[int, ...]] = {
    field_ids.NVLINK_TX_BYTES_PER_LINK: _metric_of_links("TX"),
    field_ids.NVLINK_RX_BYTES_PER_LINK: _metric_of_links("RX"),
}
"""DCGM field of an NVLink, in bytes per second -> the GPM metric in MiB/s of each link of a GPU."""
MIB = 1 << 20

SampleKey = tuple[str, int, tuple[str, ...]]
"""What is sampled: UUID of the GPU, GPU instance id (-1 for the whole GPU), `MIG-…` UUIDs inside.

The UUIDs distinguish a GPU instance that was created again under the id of an earlier one.
"""


def gpm_value(field: int, raw: float) -> NvmlValue:
    """Return a GPM value in DCGM's unit. GPM returns NaN where it has no value; DCGM makes a blank value of it too."""
    reason = raw_reason(raw)
    if reason is not None:
        return RejectedValue(reason)
    return raw / 100 if field in RATIOS else round(raw * MIB)


@dataclass(slots=True)
class SamplePair:
    """Two sample buffers of the library: the last sample, and the one before, which the next sample overwrites."""

    older: Any
    newer: Any
    taken_at: float
    """When the newer sample was taken."""


class Gpm:
    """Takes samples of a GPU and its instances, and compares each with the one before. For one thread at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pairs: dict[SampleKey, SamplePair] = {}
        self._request = pynvml.c_nvmlGpmMetricsGet_t()  # large: made once, filled again in every read

    def begin(self, key: SampleKey, gpu_handle: Any) -> bool:
        """Take the first sample of a device without one. Returns whether one was taken.

        None is taken where there is one already, where GPM is not supported, and where the call fails.
        """
        if key in self._pairs:
            return False
        try:
            if not pynvml.nvmlGpmQueryDeviceSupport(gpu_handle).isSupportedDevice:
                return False
            self._start(key, gpu_handle)
        except pynvml.NVMLError:
            return False  # read() tries again and returns the reason
        return True

    def _start(self, key: SampleKey, gpu_handle: Any) -> None:
        older, newer = pynvml.nvmlGpmSampleAlloc(), None
        try:
            newer = pynvml.nvmlGpmSampleAlloc()
            _fill(key, gpu_handle, newer)
        except pynvml.NVMLError:
            _free(older, newer)
            raise
        self._pairs[key] = SamplePair(older, newer, self._clock())

    def seconds_until_ready(self) -> float:
        """Seconds until the next sample of every sampled device can be taken."""
        youngest = max((pair.taken_at for pair in self._pairs.values()), default=float("-inf"))
        return max(0.0, youngest + MIN_SAMPLE_SECONDS - self._clock())

    def read(self, key: SampleKey, gpu_handle: Any, fields: Collection[int]) -> dict[int, NvmlValue]:
        """Take a sample and return the change since the one before.

        The values are blank when there is none to compare with or it is less than MIN_SAMPLE_SECONDS old, and rejected
        with another reason when NVML fails. Raises GpuLostError when the GPU is lost, SourceError when NVML as a whole
        fails.
        """
        raws = self.metrics(key, gpu_handle, [RATIOS.get(field) or RATES[field] for field in fields])
        return {
            field: raw if isinstance(raw, RejectedValue) else gpm_value(field, raw)
            for field, raw in zip(fields, raws, strict=True)
        }

    def metrics(self, key: SampleKey, gpu_handle: Any, ids: Sequence[int]) -> list[float | RejectedValue]:
        """Take a sample as `read` does, and return these GPM metrics in their own unit."""
        try:
            if not self._sample(key, gpu_handle):
                return [RejectedValue(RejectionReason.BLANK)] * len(ids)
            return self._compare(self._pairs[key], ids)
        except pynvml.NVMLError as error:
            return [rejected(error.value)] * len(ids)

    def _sample(self, key: SampleKey, gpu_handle: Any) -> bool:
        """Take this collection's sample. Returns whether it can be compared with the one before."""
        pair = self._pairs.get(key)
        if pair is None:
            if not pynvml.nvmlGpmQueryDeviceSupport(gpu_handle).isSupportedDevice:
                raise pynvml.NVMLError(NOT_SUPPORTED)
            self._start(key, gpu_handle)
            return False
        if self._clock() - pair.taken_at < MIN_SAMPLE_SECONDS:
            return False
        try:
            _fill(key, gpu_handle, pair.older)
        except pynvml.NVMLError:
            # The GPU was lost or the instance destroyed: counters from before may not be compared with later ones.
            self.forget(key)
            raise
        pair.older, pair.newer, pair.taken_at = pair.newer, pair.older, self._clock()
        return True

    def _compare(self, pair: SamplePair, ids: Sequence[int]) -> list[float | RejectedValue]:
        request = self._request
        request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(ids)
        request.sample1, request.sample2 = pair.older, pair.newer
        for position, metric_id in enumerate(ids):
            request.metrics[position].metricId = metric_id
        pynvml.nvmlGpmMetricsGet(request)  # each metric has a return code of its own
        metrics = request.metrics[: len(ids)]
        return [rejected(metric.nvmlReturn) if metric.nvmlReturn else metric.value for metric in metrics]

    def keep_only(self, keys: Collection[SampleKey]) -> None:
        """Free the samples of all keys that are not in `keys`."""
        for key in self._pairs.keys() - set(keys):
            self.forget(key)

    def forget(self, key: SampleKey) -> None:
        """Free the samples of one key; the next sample is a first one again."""
        pair = self._pairs.pop(key, None)
        if pair is not None:
            _free(pair.older, pair.newer)

    def close(self) -> None:
        """Free every sample."""
        self.keep_only(())


def _fill(key: SampleKey, gpu_handle: Any, sample: Any) -> None:
    # A GPU instance is sampled through its GPU's handle and its id; NVML has no GPM for a compute instance.
    gpu_instance = key[1]
    if gpu_instance < 0:
        pynvml.nvmlGpmSampleGet(gpu_handle, sample)
    else:
        pynvml.nvmlGpmMigSampleGet(gpu_handle, gpu_instance, sample)


def _free(*samples: Any) -> None:
    for sample in filter(None, samples):
        with contextlib.suppress(pynvml.NVMLError):  # nvmlShutdown frees it too
            pynvml.nvmlGpmSampleFree(sample)
