"""Which boards and MIG devices NVML lists now, and which of the known boards do not answer.

MIG devices are listed anew in each pass: their handles die with a reconfiguration, of which NVML tells nobody.
NVML lists an instance only through its compute instances; one without any cannot be seen.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pynvml

from exporter.node.devices.readings import Device
from exporter.node.nvml.values import INVALID_ARGUMENT, LOST, NOT_FOUND, BoardLostError, failure, refusal

ARCHITECTURES: Mapping[int, str] = {
    2: "kepler",
    3: "maxwell",
    4: "pascal",
    5: "volta",
    6: "turing",
    7: "ampere",
    8: "ada",
    9: "hopper",
    10: "blackwell",
    13: "rubin",
}
"""nvmlDeviceArchitecture_t."""

_PROFILE = re.compile(r"\bMIG (\S+)$")
"""The profile at the end of a MIG device's name."""

_OF_COMPUTE = re.compile(r"^\d+c\.")
"""What the profile of a compute instance that is smaller than its GPU instance puts before that one's: `1c.`"""


@dataclass(frozen=True, slots=True)
class Place:
    """A device of the inventory and what NVML calls it: its own handle and that of its board."""

    device: Device
    handle: Any
    board: Any


@dataclass(slots=True)
class Found:
    """The answer of one look. The handle of a lost board is None."""

    places: list[Place] = field(default_factory=list)
    down: set[str] = field(default_factory=set)
    problems: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _MigDevice:
    gi: int
    ci: int
    uuid: str
    handle: Any


class Inventory:
    """Remembers what every board was, so that a lost one keeps its name."""

    def __init__(self) -> None:
        self._facts: dict[str, Device] = {}
        self._last: dict[str, tuple[Device, ...]] = {}
        self._uuids: dict[int, str] = {}

    def look(self, driver_version: str) -> Found:
        """Everything there is. Raises SourceError when the library as a whole does not answer."""
        found = Found()
        for index in range(_or_fail(pynvml.nvmlDeviceGetCount)):
            self._board(index, driver_version, found)
        seen = {place.device.uuid for place in found.places}
        for uuid in self._last.keys() - seen:
            self._miss(uuid, found)
        found.places.sort(key=lambda place: (place.device.index, place.device.gi, place.device.ci))
        return found

    def _board(self, index: int, driver_version: str, found: Found) -> None:
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid = pynvml.nvmlDeviceGetUUID(handle)
            board = self._facts_of(uuid, index, handle, driver_version)
            places = _places(board, handle, found.problems)
        except pynvml.NVMLError as error:
            self._unreadable(index, error.value, found)
        except BoardLostError:
            self._unreadable(index, next(iter(LOST)), found)
        else:
            self._uuids[index] = uuid
            self._last[uuid] = tuple(place.device for place in places)
            found.places += places

    def _unreadable(self, index: int, code: int, found: Found) -> None:
        if code not in LOST:
            refusal(code)  # raises when no board can be read
            reason = "no_permission" if code == pynvml.NVML_ERROR_NO_PERMISSION else "board_unreadable"
            found.problems.append((reason, f"the GPU with NVML index {index} cannot be opened: return code {code}"))
        elif index not in self._uuids:
            found.problems.append(("board_lost", f"the GPU with NVML index {index} is lost and was never seen"))

    def _miss(self, uuid: str, found: Found) -> None:
        found.places += [Place(device, None, None) for device in self._last[uuid]]
        found.down.add(uuid)

    def _facts_of(self, uuid: str, index: int, handle: Any, driver_version: str) -> Device:
        known = self._facts.get(uuid)
        if known is None or (known.index, known.driver_version) != (index, driver_version):
            known = self._facts[uuid] = _facts(uuid, index, handle, driver_version)
        return known


def _or_fail(function: Callable[[], int]) -> int:
    try:
        return function()
    except pynvml.NVMLError as error:
        raise failure(error.value) from error


def _facts(uuid: str, index: int, handle: Any, driver_version: str) -> Device:
    return Device(
        uuid=uuid,
        index=index,
        pci_bus_id=_optional(_bus_id, handle, ""),
        minor=_optional(pynvml.nvmlDeviceGetMinorNumber, handle, -1),
        model=_optional(pynvml.nvmlDeviceGetName, handle, ""),
        serial=_optional(pynvml.nvmlDeviceGetSerial, handle, ""),
        architecture=ARCHITECTURES.get(_optional(pynvml.nvmlDeviceGetArchitecture, handle, 0), ""),
        driver_version=driver_version,
        numa_node=_optional(pynvml.nvmlDeviceGetNumaNodeId, handle, -1),
    )


def _bus_id(handle: Any) -> str:
    return str(pynvml.nvmlDeviceGetPciInfo(handle).busId).upper()


def _optional(function: Callable[[Any], Any], handle: Any, otherwise: Any) -> Any:
    """A fact that a board may do without. Raises BoardLostError."""
    try:
        return function(handle)
    except pynvml.NVMLError as error:
        refusal(error.value)
        return otherwise


def _places(board: Device, handle: Any, problems: list[tuple[str, str]]) -> list[Place]:
    mode = _optional(pynvml.nvmlDeviceGetMigMode, handle, None)
    enabled = None if mode is None else mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE
    board = msgspec.structs.replace(board, mig_enabled=enabled)
    parts: dict[int, list[_MigDevice]] = {}
    for part in _mig_devices(board, handle, problems) if enabled else ():
        parts.setdefault(part.gi, []).append(part)
    places = [Place(board, handle, handle)]
    for gi in sorted(parts):
        places += _instance(board, handle, sorted(parts[gi], key=lambda part: part.ci))
    return places


def _instance(board: Device, handle: Any, parts: list[_MigDevice]) -> Iterator[Place]:
    """A GPU instance; and, where several share it, its compute instances."""
    first = parts[0]
    profile = _OF_COMPUTE.sub("", _profile(first.handle))
    uuids = tuple(part.uuid for part in parts)
    device = msgspec.structs.replace(board, gi=first.gi, profile=profile, mig_uuids=uuids)
    yield Place(device, first.handle, handle)
    for part in parts if len(parts) > 1 else ():
        own = msgspec.structs.replace(device, ci=part.ci, profile=_profile(part.handle), mig_uuids=(part.uuid,))
        yield Place(own, part.handle, handle)


def _mig_devices(board: Device, handle: Any, problems: list[tuple[str, str]]) -> Iterator[_MigDevice]:
    codes: set[int] = set()
    for index in range(_optional(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle, 0)):
        try:
            yield _mig_device(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index))
        except pynvml.NVMLError as error:
            codes.add(error.value)
    # What is left is neither a hole in the numbering nor an instance that went away between two calls.
    for code in sorted(codes - {NOT_FOUND, INVALID_ARGUMENT}):
        refusal(code)  # raises when the board is lost
        problems.append(("mig_unreadable", f"MIG devices of {board.uuid} cannot be read: return code {code}"))


def _mig_device(handle: Any) -> _MigDevice:
    return _MigDevice(
        gi=pynvml.nvmlDeviceGetGpuInstanceId(handle),
        ci=pynvml.nvmlDeviceGetComputeInstanceId(handle),
        uuid=pynvml.nvmlDeviceGetUUID(handle),
        handle=handle,
    )


def _profile(handle: Any) -> str:
    """`1g.10gb` or `1c.2g.20gb`: from the name of the MIG device, else from its slices and memory."""
    match = _PROFILE.search(_optional(pynvml.nvmlDeviceGetName, handle, ""))
    if match:
        return match[1]
    attributes = _optional(pynvml.nvmlDeviceGetAttributes, handle, None)
    if attributes is None:
        return ""
    return f"{attributes.gpuInstanceSliceCount}g.{round(attributes.memorySizeMB / 1024)}gb"
