"""Reads the wanted fields of one device through NVML: one value or rejection for each field.

Name, UUID and PCI address are those of the `Device`; the others come from plain calls, field values (NVML_FI_*, among
them the NVLink counters) or GPM. The samples that rates and GPM need are kept between reads. `system_values` reads the
fields of the node as a whole.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import pynvml

from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields import field_ids
from exporter.node.devices.readings.readings import RejectionReason
from exporter.node.nvml.calls import calls, field_values, gpm
from exporter.node.nvml.calls.calls import NvmlCall
from exporter.node.nvml.calls.counter_rates import CounterRates
from exporter.node.nvml.calls.gpm import Gpm, SampleKey
from exporter.node.nvml.calls.nvlink_rates import NvlinkRates
from exporter.node.nvml.calls.older_calls import OlderCalls, older_calls_for
from exporter.node.nvml.entities.discovery import NvmlDevice
from exporter.node.nvml.native.values import NvmlValue, RawValue, RejectedValue, is_unsupported, nvml_value


@dataclass(frozen=True, slots=True)
class ReadRoute:
    """The fields of one request by the part of NVML that has them. Name, UUID and PCI address need none."""

    calls: tuple[NvmlCall, ...]
    field_values: tuple[int, ...]
    older_calls: tuple[NvmlCall, ...]
    """For those of the field values that the driver does not have."""
    link_rates: tuple[int, ...]
    gpm: tuple[int, ...]
    pcie_rates: tuple[int, ...]
    """Those of `gpm` that a GPU without GPM may have counters for."""


def route_for(fields: Collection[int], device: Device) -> ReadRoute:
    """Return the route for these fields on such a device: a GPU, a MIG device or a compute instance.

    NVML accepts the handle of a MIG device for few calls and for no field value; it has no GPM of compute instances.
    """
    mig_device = device.gi >= 0
    as_field_values = () if mig_device else tuple(f for f in fields if f in field_values.FIELD_VALUES)
    return ReadRoute(
        calls=calls.calls_for(fields, mig_device=mig_device),
        field_values=as_field_values,
        older_calls=older_calls_for(as_field_values),
        link_rates=() if mig_device else tuple(f for f in fields if f in field_values.NVLINK_RATES),
        gpm=() if device.ci >= 0 else tuple(f for f in fields if f in gpm.FIELDS),
        pcie_rates=() if mig_device else tuple(f for f in fields if f in field_values.PCIE_BYTES),
    )


class DeviceReader:
    """Reads the devices of one GPU one after another; keeps the samples and counters that need a second reading."""

    def __init__(self, clock: Callable[[], float], nvlink: NvlinkRates, pcie: CounterRates) -> None:
        """The rates may be shared by the readers of several GPUs; everything else belongs to one thread at a time."""
        self._gpm = Gpm(clock)
        self._nvlink, self._pcie = nvlink, pcie
        self._missing_counters: set[tuple[int, ...]] = set()
        """Counters that stand for something else and that the GPU does not have either: they are not read again."""
        self._older_calls = OlderCalls()
        self._routes: dict[tuple[tuple[int, ...], bool, bool], ReadRoute] = {}

    def begin(self, found: NvmlDevice) -> bool:
        """Take a first GPM sample of a device that has none. Returns whether one was taken.

        None is taken of a compute instance, where GPM is not supported, and where the call fails.
        """
        return found.device.ci < 0 and self._gpm.begin(sample_key(found.device), found.gpu_handle)

    def seconds_until_ready(self) -> float:
        """Seconds until engine activity can be read of every sampled device."""
        return self._gpm.seconds_until_ready()

    def keep_only(self, devices: Collection[Device]) -> None:
        """Free the GPM samples of all devices but these."""
        self._gpm.keep_only([sample_key(device) for device in devices])

    def close(self) -> None:
        """Free every GPM sample. To be called before the session with the library is closed."""
        self._gpm.close()

    def read(self, found: NvmlDevice, fields: tuple[int, ...]) -> dict[int, NvmlValue]:
        """Read every one of these fields. Raises GpuLostError, or SourceError when the library as a whole fails."""
        device = found.device
        route = self._route(fields, device)
        values: dict[int, NvmlValue] = dict.fromkeys(fields, RejectedValue(RejectionReason.NOT_SUPPORTED))
        values |= _identity(device)
        for call in route.calls:
            values |= calls.read_call(call, found.handle)
        if route.field_values or route.link_rates:
            values |= self._field_values(device.uuid, found.handle, route)
        if route.gpm:
            values |= self._gpm.read(sample_key(device), found.gpu_handle, route.gpm)
            values |= self._pcie_rates(
                device.uuid, found.handle, [f for f in route.pcie_rates if is_unsupported(values[f])]
            )
        return {field: values[field] for field in fields}

    def _route(self, fields: tuple[int, ...], device: Device) -> ReadRoute:
        key = (fields, device.gi >= 0, device.ci >= 0)
        if key not in self._routes:
            self._routes[key] = route_for(fields, device)
        return self._routes[key]

    def _field_values(self, uuid: str, handle: Any, route: ReadRoute) -> dict[int, NvmlValue]:
        requests = [field_values.request_for(field) for field in route.field_values]
        if route.link_rates:
            requests += [(number, field_values.ALL_LINKS) for number in field_values.NVLINK_KIB.values()]
        results = field_values.read_field_values(handle, requests)
        values = {
            field: raw if isinstance(raw, RejectedValue) else nvml_value(field, raw)
            for field, (raw, _) in zip(route.field_values, results, strict=False)
        }
        values |= self._older_calls.read(route.older_calls, handle, values)
        if route.link_rates:
            counters = dict(zip(field_values.NVLINK_KIB, results[len(route.field_values) :], strict=True))
            values |= self._nvlink.rates(uuid, counters, route.link_rates)
            if all(is_unsupported(count) for count, _ in counters.values()):
                values |= self._nvlink_5_rates(uuid, handle, route.link_rates)
        return values

    def _nvlink_5_rates(self, uuid: str, handle: Any, fields: Collection[int]) -> dict[int, NvmlValue]:
        numbers = tuple(field_values.NVLINK_BYTES.values())
        counters = self._counters(handle, [(number, field_values.ALL_LINKS) for number in numbers])
        if not counters:
            return {}
        return self._nvlink.rates(uuid, dict(zip(field_values.NVLINK_BYTES, counters, strict=True)), fields, unit=1)

    def _pcie_rates(self, uuid: str, handle: Any, fields: Collection[int]) -> dict[int, NvmlValue]:
        counters = self._counters(handle, [(field_values.PCIE_BYTES[field], 0) for field in fields])
        rates = zip(fields, counters, strict=False)
        found = {field: self._pcie.per_second((uuid, str(field)), *counter) for field, counter in rates}
        return {field: rate if isinstance(rate, RejectedValue) else round(rate) for field, rate in found.items()}

    def _counters(self, handle: Any, requests: list[tuple[int, int]]) -> list[tuple[RawValue | RejectedValue, int]]:
        """Read counters that stand for what the GPU does not have; none where it does not have these either."""
        numbers = tuple(number for number, _ in requests)
        if not numbers or numbers in self._missing_counters:
            return []
        counters = field_values.read_field_values(handle, requests)
        if all(is_unsupported(count) for count, _ in counters):
            self._missing_counters.add(numbers)
            return []
        return counters


def sample_key(device: Device) -> SampleKey:
    """Return what GPM samples for this device: its GPU or its GPU instance."""
    return device.uuid, device.gi, device.mig_uuids


def _identity(device: Device) -> dict[int, NvmlValue]:
    name, uuid = device.model, device.uuid
    if device.gi >= 0:
        name, uuid = device.profile, device.mig_uuids[0]
    texts = {field_ids.NAME: name, field_ids.UUID: uuid, field_ids.PCI_BUS_ID: device.pci_bus_id}
    return {field: text or RejectedValue(RejectionReason.BLANK) for field, text in texts.items()}


def system_values(versions: dict[str, str]) -> dict[int, NvmlValue]:
    """Read the fields of the node as a whole (field_ids.SYSTEM), except the versions that the session has read."""
    named = {field_ids.DRIVER_VERSION: "driver", field_ids.NVML_VERSION: "nvml"}
    functions = {
        field_ids.GPU_COUNT: pynvml.nvmlDeviceGetCount,
        field_ids.CUDA_DRIVER_VERSION: pynvml.nvmlSystemGetCudaDriverVersion,
    }
    values: dict[int, NvmlValue] = {field: versions[name] for field, name in named.items() if name in versions}
    for field, function in functions.items():
        try:
            values[field] = function()
        except pynvml.NVMLError:
            values[field] = RejectedValue(RejectionReason.BLANK)
    return values
