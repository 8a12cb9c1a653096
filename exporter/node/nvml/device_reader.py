"""Reads the wanted fields of one device, each from the part of NVML that has it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import pynvml

from exporter.node.devices.readings import Device
from exporter.node.nvml import calls, gpm
from exporter.node.nvml.calls import Call
from exporter.node.nvml.discovery import Place
from exporter.node.nvml.gpm import Gpm, Key
from exporter.node.nvml.nvlink_rates import LinkRates
from exporter.node.nvml.values import Answer, Rejected


@dataclass(frozen=True, slots=True)
class Route:
    """Where the fields of one request are got. Fields in none of these NVML does not have."""

    calls: tuple[Call, ...]
    field_values: tuple[int, ...]
    links: tuple[int, ...]
    gpm: tuple[int, ...]


def route(fields: Collection[int], device: Device) -> Route:
    """The way to these fields on a device of that sort: MIG devices answer little, compute instances no GPM."""
    of_instance = device.gi >= 0
    return Route(
        calls=calls.calls_for(fields, of_instance=of_instance),
        field_values=() if of_instance else tuple(f for f in fields if f in calls.FIELD_VALUES),
        links=() if of_instance else tuple(f for f in fields if f in calls.NVLINK_RATES),
        gpm=() if device.ci >= 0 else tuple(f for f in fields if f in gpm.FIELDS),
    )


class BoardReader:
    """Reads devices one after another; keeps what needs two readings."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._gpm = Gpm(clock)
        self._links = LinkRates()
        self._routes: dict[tuple[tuple[int, ...], bool, bool], Route] = {}

    def begin(self, place: Place) -> bool:
        """Take a first sample of engine activity where there was none. True when one was taken."""
        return place.device.ci < 0 and self._gpm.begin(key_of(place.device), place.board)

    def wait(self) -> float:
        """Seconds until engine activity can be read everywhere."""
        return self._gpm.wait()

    def keep(self, devices: Collection[Device]) -> None:
        """Forget the samples of every other device."""
        self._gpm.keep([key_of(device) for device in devices])

    def close(self) -> None:
        """Free the samples; their library is about to be closed."""
        self._gpm.close()

    def read(self, place: Place, fields: tuple[int, ...]) -> dict[int, Answer]:
        """Every one of these fields. Raises BoardLostError, or SourceError when the library as a whole fails."""
        device = place.device
        way = self._route(fields, device)
        answers: dict[int, Answer] = dict.fromkeys(fields, Rejected("not_supported"))
        answers |= _identity(device)
        for call in way.calls:
            answers |= calls.ask(call, place.handle)
        if way.field_values or way.links:
            answers |= self._field_values(device.uuid, place.handle, way)
        if way.gpm:
            answers |= self._gpm.read(key_of(device), place.board, way.gpm)
        return {field: answers[field] for field in fields}

    def _route(self, fields: tuple[int, ...], device: Device) -> Route:
        key = (fields, device.gi >= 0, device.ci >= 0)
        if key not in self._routes:
            self._routes[key] = route(fields, device)
        return self._routes[key]

    def _field_values(self, uuid: str, handle: Any, way: Route) -> dict[int, Answer]:
        requests = [(calls.FIELD_VALUES[field], 0) for field in way.field_values]
        if way.links:
            requests += [(number, calls.NVLINK_ALL) for number in calls.NVLINK_KIB.values()]
        results = calls.field_values(handle, requests)
        answers = {
            field: raw if isinstance(raw, Rejected) else calls.answer_of(field, raw)
            for field, (raw, _) in zip(way.field_values, results, strict=False)
        }
        if way.links:
            counters = dict(zip(calls.NVLINK_KIB, results[len(way.field_values) :], strict=True))
            answers |= self._links.rates(uuid, counters, way.links)
        return answers


def key_of(device: Device) -> Key:
    """What is sampled: the board, or the GPU instance."""
    return device.uuid, device.gi, device.mig_uuids


def _identity(device: Device) -> dict[int, Answer]:
    name, uuid = device.model, device.uuid
    if device.gi >= 0:
        name, uuid = device.profile, device.mig_uuids[0]
    return {50: name, 54: uuid, 57: device.pci_bus_id}


def system_answers(versions: dict[str, str]) -> dict[int, Answer]:
    """Fields of the node as a whole, the same on each board."""
    answers: dict[int, Answer] = {
        field: versions[name] for field, name in ((1, "driver"), (2, "nvml")) if name in versions
    }
    for field, function in ((4, pynvml.nvmlDeviceGetCount), (5, pynvml.nvmlSystemGetCudaDriverVersion)):
        try:
            answers[field] = function()
        except pynvml.NVMLError:
            answers[field] = Rejected("blank")
    return answers
