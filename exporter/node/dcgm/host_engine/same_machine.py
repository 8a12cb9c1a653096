"""Whether a host engine runs on this machine, as far as its address shows it. No I/O."""

import ipaddress
import socket

from exporter.node.dcgm.host_engine.address import AddressError, parse_address


def on_this_machine(remote: str) -> bool:
    """Whether the address (the value of option `-r`) certainly leads to this machine.

    Only a unix socket, a loopback address or this machine's own name does. Any other may lead to another machine, and
    an address that cannot be parsed leads nowhere.
    """
    try:
        address = parse_address(remote)
    except AddressError:
        return False
    if address.is_unix:
        return True
    host = address.text.rpartition(":")[0].strip("[]")
    return host in {"localhost", socket.gethostname()} or _is_loopback(host)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
