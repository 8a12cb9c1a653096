"""Listening sockets: bound to an address written as dcgm-exporter's `--address` takes it, or passed by systemd.

Every failure is a ListenError with a message for the operator.
"""

import errno
import os
import re
import socket
from collections.abc import MutableMapping

_ADDRESS = re.compile(r"(?:\[(?P<six>[^\[\]]*)\]|(?P<name>[^:\[\]]*)):(?P<port>[0-9]{1,5})")
_FIRST_INHERITED = 3
"""sd_listen_fds(3): passed descriptors begin after stdin, stdout and stderr."""
_MOST_INHERITED = 16


class ListenError(Exception):
    """There is no socket to listen on. The text is one message for the operator."""


def parse(address: str) -> tuple[str, int]:
    """Read `host:port`, `[IPv6]:port` or `:port`. An empty host means all addresses. Raises ListenError."""
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) > 65535:  # noqa: PLR2004 the largest port
        raise ListenError(f'"{address}" is not an address to listen on: use host:port, [IPv6]:port or :port')
    return match["six"] or match["name"] or "", int(match["port"])


def _message(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {port} is already in use: another process listens there; choose one with --address"
        case errno.EACCES:
            return f"port {port} may not be opened by this user: choose one above 1023 with --address"
        case errno.EADDRNOTAVAIL:
            return f'"{host}" is not an address of this machine: choose one with --address'
        case _:
            return f'cannot listen on "{host}", port {port}: {error.strerror or error}'


def _bind_all(port: int) -> socket.socket:
    """Make one socket for IPv6 and IPv4, or for IPv4 alone where the kernel has no IPv6."""
    try:
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    except ValueError:
        pass  # raised by socket.create_server where dual-stack sockets are not available
    except OSError as error:
        if error.errno not in {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT}:
            raise
    return socket.create_server(("", port))


def bind(address: str) -> socket.socket:
    """Make a socket that listens on `address`; on every address of the machine when the host is empty or `::`.

    Raises ListenError.
    """
    host, port = parse(address)
    try:
        if host in {"", "::"}:
            return _bind_all(port)
        family, *_, target = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(target[:2], family=family)
    except socket.gaierror as error:
        raise ListenError(f'"{host}" is not an address or known host name: choose one with --address') from error
    except OSError as error:
        raise ListenError(_message(error, host, port)) from error


def _adopt(descriptor: int) -> socket.socket:
    try:
        os.set_inheritable(descriptor, False)
        adopted = socket.socket(fileno=descriptor)
    except OSError as error:
        raise ListenError(f"descriptor {descriptor} passed by systemd is not an open socket") from error
    if adopted.type != socket.SOCK_STREAM or not adopted.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        adopted.close()
        raise ListenError(f"descriptor {descriptor} passed by systemd is not a listening stream socket")
    return adopted


def inherited(environment: MutableMapping[str, str], pid: int) -> list[socket.socket]:
    """Return the sockets that systemd passed to this process (sd_listen_fds(3)), at least one. Raises ListenError.

    The variables are removed from `environment`: a child process must not mistake the descriptors for its own.
    """
    for_pid = environment.pop("LISTEN_PID", "")
    count = environment.pop("LISTEN_FDS", "")
    for name in ("LISTEN_FDNAMES", "LISTEN_PIDFDID"):  # the second since systemd 258
        environment.pop(name, None)
    if for_pid != str(pid) or not count.isdecimal() or not 1 <= int(count) <= _MOST_INHERITED:
        raise ListenError("systemd passed no socket to this process: LISTEN_PID or LISTEN_FDS does not match")
    return [_adopt(_FIRST_INHERITED + offset) for offset in range(int(count))]
