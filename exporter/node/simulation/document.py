"""The JSON of a scenario as types: devices, instances, value sets, timed events and holders.

docs/scenario.md describes it for people. Keys that are not written here are refused.
"""

from typing import Literal

import msgspec

from exporter.node.simulation.script import Script, Sentinel

Fields = dict[str, Script]
"""Values by DCGM field name (any generation) or number."""


class Versions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    driver: str = "570.133.20"
    nvml: str = "12.570.133.20"
    dcgm: str = "4.2.3"
    cuda: int = 12080


class Compute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A compute instance; a field it does not give has the value of its GPU instance."""

    ci: int
    uuid: str
    """`MIG-…`"""
    profile: str = ""
    """Such as `1c.2g.20gb`; empty means the profile of the GPU instance."""
    slices: int = 1
    use: tuple[str, ...] = ()
    fields: Fields = {}


class Instance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A GPU instance of a board in MIG mode."""

    gi: int
    profile: str
    slices: int
    memory_mib: int
    compute: tuple[Compute, ...] = ()
    profile_id: int = 0
    use: tuple[str, ...] = ()
    fields: Fields = {}


class Board(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A GPU. `minor` -1 means the index; `mig` null means a board that knows no MIG."""

    uuid: str
    index: int
    pci_bus_id: str
    model: str
    memory_mib: int
    minor: int = -1
    serial: str = ""
    architecture: str = ""
    numa_node: int = -1
    vbios: str = ""
    compute_capability: tuple[int, int] = (9, 0)
    mig: bool | None = None
    max_slices: int = 7
    use: tuple[str, ...] = ()
    fields: Fields = {}
    instances: tuple[Instance, ...] = ()

    @property
    def device_minor(self) -> int:
        return self.index if self.minor < 0 else self.minor


class Cells(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="cells", rename={"for_": "for"}
):
    """Some cells carry a sentinel, a status, or a timestamp that stands still.

    `devices` holds addresses (`GPU-…`, `GPU-…/gi`, `GPU-…/gi/ci`); empty means every one, as `fields` does.
    """

    at: float = 0.0
    for_: float | None = None
    devices: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    sentinel: Sentinel | None = None
    status: int = 0
    stale: bool = False


class Call(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="call", rename={"for_": "for"}
):
    """A library function fails, is slow, hangs or crashes.

    `*` means every function, `read` the simulated source's own.
    """

    function: str
    at: float = 0.0
    for_: float | None = None
    status: int = 0
    delay: float = 0.0
    hang: bool = False
    crash: bool = False


class Disconnect(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="event",
    tag="disconnect",
    rename={"for_": "for"},
):
    """The host engine cannot be reached; connections made before stay dead."""

    at: float
    for_: float | None = None


class Restart(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="restart", rename={"for_": "for"}
):
    """The engine stops for so many seconds and comes back with other entity ids and without its groups."""

    at: float
    for_: float = 0.0


class Lost(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="event",
    tag="lost",
    rename={"for_": "for", "seen": "as"},
):
    """A board falls off: its cells carry status -18 or fresh blanks, or it is not listed at all (`absent`)."""

    device: str
    at: float
    for_: float | None = None
    seen: Literal["status", "blank", "absent"] = "status"


class Mig(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="mig", rename={"for_": "for"}
):
    """From now on the board has these instances and no others."""

    device: str
    at: float
    for_: float | None = None
    mig: bool = True
    instances: tuple[Instance, ...] = ()


class Xid(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="xid"):
    """The driver reports an XID on a board or an instance (an address)."""

    device: str
    at: float
    xid: int


Event = Cells | Call | Disconnect | Restart | Lost | Mig | Xid


class Holder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """A container that holds devices, with the ids that a device plugin gave the kubelet."""

    namespace: str
    pod: str
    container: str
    resource: str
    devices: tuple[str, ...]
    from_: float = 0.0
    until: float | None = None


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole scenario. `epoch` (Unix seconds) fixes its beginning; without it that is the player's start."""

    about: str
    devices: tuple[Board, ...]
    versions: Versions = Versions()
    values: dict[str, Fields] = {}
    events: tuple[Event, ...] = ()
    holders: tuple[Holder, ...] = ()
    epoch: float | None = None
