"""Parses the address of a host engine (nv-hostengine), the value of option `-r`, into what libdcgm takes. No I/O."""

from dataclasses import dataclass

from exporter.node.dcgm.reasons import DcgmReason
from exporter.source import SourceError

PORT = 5555
"""The port that nv-hostengine listens on without its option `-p`."""
SOCKET = "/tmp/nv-hostengine"  # noqa: S108 - nv-hostengine's own default (its `-d`)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a host engine listens: `host:port`, or the path of a unix socket.

    This is how dcgmConnect_v2 takes it. Only dcgmConnect_v3 takes URLs, and libdcgm before 4.5 has no v3 (its header).
    """

    text: str
    is_unix: bool = False


def parse_address(remote: str) -> Address:
    """Parse `host` or `host:port` (also after `tcp://`, an IPv6 host in brackets), `unix:///path` or an absolute path.

    Raises SourceError `address_invalid` with a message that names the value.
    """
    if remote.startswith(("unix://", "/")):
        path = remote.removeprefix("unix://")
        if not path.startswith("/"):
            raise SourceError(
                DcgmReason.ADDRESS_INVALID, f"host engine address {remote!r}: the socket's path must be absolute"
            )
        return Address(path, is_unix=True)
    host, port = _host_and_port(remote.removeprefix("tcp://"))
    if not host or "/" in host or not port.isdigit() or not 0 < int(port) < 65536:  # noqa: PLR2004 - the largest port
        raise SourceError(
            DcgmReason.ADDRESS_INVALID,
            f"host engine address {remote!r} is neither host:port, tcp://host:port nor unix:///path",
        )
    return Address(f"{host}:{port}")


def _host_and_port(text: str) -> tuple[str, str]:
    if text.startswith("["):  # an IPv6 address: its colons do not begin a port
        host, _, rest = text.partition("]")
        return f"{host}]", rest.removeprefix(":") or str(PORT)
    host, colon, port = text.partition(":")
    return host, port if colon else str(PORT)
