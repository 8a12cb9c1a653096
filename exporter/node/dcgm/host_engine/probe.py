"""Finds out with a plain socket whether something accepts connections where a host engine should listen."""

import socket

from exporter.node.dcgm.host_engine.address import Address


def refusal(address: Address, seconds: float) -> str | None:
    """Return why no connection can be made at `address` within so many seconds; None when one can.

    A host name is looked up first, which the time does not limit.
    """
    try:
        _connect(address, seconds).close()
    except OSError as error:
        return f"nothing accepts connections at {address.text}: {error.strerror or error}"
    return None


def _connect(address: Address, seconds: float) -> socket.socket:
    if not address.is_unix:
        return socket.create_connection((address.host, address.port), seconds)
    connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connecting.settimeout(seconds)
        connecting.connect(address.text)
    except OSError:
        connecting.close()
        raise
    return connecting
