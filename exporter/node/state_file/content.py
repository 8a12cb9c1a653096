"""The content of the state file: the type `RememberedNode`, and its form as JSON. No I/O.

The content has a version; a file of another version cannot be used.
"""

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from exporter.node.devices.computed.device_state import DeviceState
from exporter.node.devices.entities.device import Device
from exporter.node.state_file.reasons import StateFileError, StateFileReason

VERSION = 1
MAX_GPUS = 1024
"""How many GPUs a file can name: several times what a node can have."""
MAX_DEVICES = 16 * MAX_GPUS
"""How many devices a file can count: more than every GPU can be partitioned into."""

Name = Annotated[str, Meta(min_length=1, max_length=256)]


class RememberedGpu(msgspec.Struct, frozen=True, omit_defaults=True):
    """A GPU that was read once: what identifies it, for people too. Nothing that a driver update changes."""

    uuid: Name
    index: int
    pci_bus_id: str = ""
    minor: int = -1
    model: str = ""
    serial: str = ""
    architecture: str = ""
    numa_node: int = -1


class DeviceSeconds(msgspec.Struct, frozen=True):
    """For how many seconds a device was observed in each state."""

    uuid: Name
    gi: int
    ci: int
    profile: str
    seconds: dict[DeviceState, Annotated[float, Meta(ge=0)]]


class RememberedNode(msgspec.Struct, frozen=True):
    """What is remembered of the node."""

    gpus: Annotated[tuple[RememberedGpu, ...], Meta(max_length=MAX_GPUS)] = ()
    simulated: bool = False
    """Whether the GPUs are those of a scenario."""
    devices: Annotated[tuple[DeviceSeconds, ...], Meta(max_length=MAX_DEVICES)] = ()

    @property
    def uuids(self) -> frozenset[str]:
        """The UUIDs of the remembered GPUs."""
        return frozenset(gpu.uuid for gpu in self.gpus)


class _Version(msgspec.Struct):
    version: int


class _Content(msgspec.Struct):
    version: int
    state: RememberedNode


def encode(state: RememberedNode) -> bytes:
    """Write the content of a state file."""
    content = msgspec.json.encode(_Content(VERSION, state))
    return msgspec.json.format(content, indent=1) + b"\n"


def decode(content: bytes) -> RememberedNode:
    """Read the content of a state file. Raises StateFileError with what is wrong, without the name of the file."""
    try:
        version = msgspec.json.decode(content, type=_Version).version
        if version != VERSION:
            raise StateFileError(StateFileReason.UNREADABLE, f"its version is {version}, not {VERSION}")
        return msgspec.json.decode(content, type=_Content).state
    except msgspec.DecodeError as error:  # not JSON, or JSON of another form; the text has the place
        raise StateFileError(StateFileReason.UNREADABLE, str(error)) from None
    except UnicodeDecodeError:
        raise StateFileError(StateFileReason.UNREADABLE, "it is not UTF-8") from None


def remembered(devices: Iterable[Device]) -> tuple[RememberedGpu, ...]:
    """What is remembered of these GPUs, in the order of their UUIDs, so that an unchanged content stays the same."""
    found = (
        RememberedGpu(d.uuid, d.index, d.pci_bus_id, d.minor, d.model, d.serial, d.architecture, d.numa_node)
        for d in devices
    )
    return tuple(sorted(found, key=lambda gpu: gpu.uuid)[:MAX_GPUS])


def device(gpu: RememberedGpu) -> Device:
    """The GPU as a device of which nothing but its identity is known."""
    return Device(
        gpu.uuid,
        gpu.index,
        gpu.pci_bus_id,
        gpu.minor,
        gpu.model,
        serial=gpu.serial,
        architecture=gpu.architecture,
        numa_node=gpu.numa_node,
    )
