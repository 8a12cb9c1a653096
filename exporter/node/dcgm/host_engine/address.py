"""Parses the address of a host engine (nv-hostengine), the value of option `-r`, into what libdcgm takes. No I/O."""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address

PORT = 5555
"""The port that nv-hostengine listens on without its option `-p`."""
SOCKET = "/tmp/nv-hostengine"  # noqa: S108 - nv-hostengine's own default (its `-d`)
MAX_PORT = 65535
MAX_PATH_BYTES = 107
"""The longest path of a unix socket (unix(7))."""

_HOST_AND_PORT = re.compile(r"(?:\[(?P<six>[^\[\]]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?")
_CONTEXT_AND_PORT = re.compile(r"vsock://(?P<id>[0-9]{1,10})(?::(?P<port>[0-9]{1,10}))?")
"""The context id of a virtual machine (vsock(7)) and a port, both of 32 bits."""


class AddressError(Exception):
    """The text is no address of a host engine. The message names it."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a host engine listens: `host:port`, the path of a unix socket, or `vsock://cid:port` of a virtual machine.

    The first two are how dcgmConnect_v2 takes it. Only dcgmConnect_v3 takes URLs, and libdcgm before 4.5 has no v3 (its
    header).
    """

    text: str
    is_unix: bool = False
    is_vsock: bool = False

    @property
    def host(self) -> str:
        """The host, an IPv6 address without brackets; empty where it is not TCP."""
        return "" if self.is_unix or self.is_vsock else self.text.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port; 0 where it is not TCP."""
        return 0 if self.is_unix or self.is_vsock else int(self.text.rpartition(":")[2])


def parse_address(remote: str) -> Address:
    """Parse `host:port` (also after `tcp://`, an IPv6 host in brackets), `unix:///path`, a path or `vsock://cid:port`.

    The port may be left out. Raises AddressError.
    """
    if remote.startswith(("unix://", "/")):
        return Address(_path(remote), is_unix=True)
    if context := _CONTEXT_AND_PORT.fullmatch(remote):
        return Address(f"vsock://{context['id']}:{context['port'] or PORT}", is_vsock=True)
    found = _HOST_AND_PORT.fullmatch(remote.removeprefix("tcp://"))
    if found is None or not 0 < int(found["port"] or PORT) <= MAX_PORT or not _is_ipv6(found["six"]):
        forms = "host:port, tcp://host:port, [IPv6]:port, unix:///path and vsock://cid:port"
        raise AddressError(f"{remote!r} is none of {forms}")
    host = found["name"] or f"[{found['six']}]"
    return Address(f"{host}:{found['port'] or PORT}")


def _path(remote: str) -> str:
    path = remote.removeprefix("unix://")
    # What is not printable includes the bytes that are not UTF-8, which cannot be encoded.
    if not path.startswith("/") or not path.isprintable() or len(path.encode()) > MAX_PATH_BYTES:
        raise AddressError(
            f"{remote!r} is no socket: its path must be absolute, printable, at most {MAX_PATH_BYTES} bytes"
        )
    return path


def _is_ipv6(host: str | None) -> bool:
    """Whether the host in brackets is an IPv6 address; there may be none."""
    try:
        IPv6Address(host or "::")
    except AddressValueError:
        return False
    return True
