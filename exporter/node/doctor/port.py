"""Checks that nothing else listens where the exporter would serve, by the kernel's list of listening sockets."""

import re
import sys
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address

from exporter.node.doctor.examination import Examination
from exporter.node.doctor.finding import Check, Finding, failed, note, ok, skipped
from exporter.node.doctor.node_root import NodeRoot
from exporter.node.doctor.reasons import DoctorReason
from exporter.web.listener import parse

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENS = "0A"
"""TCP_LISTEN (net/tcp_states.h), in hexadecimal as the table has it."""
_INODE = 9
"""The column of the socket's inode."""
_OWN = re.compile(r"gpugauge|-m\s+exporter\b")
_WORD = 8
"""Hexadecimal digits of 32 bits: an address is written as such words in the byte order of the machine (proc(5))."""


def _port(examination: Examination) -> Iterable[Finding]:
    web = examination.config.web
    if web.systemd_socket:
        return [skipped("systemd passes the socket")]
    return [_at(examination.root, address) for address in (web.address, web.health_address) if address]


def _at(root: NodeRoot, address: str) -> Finding:
    host, port = parse(address)
    inodes = [inode for found, inode in _listening(root, port) if _clash(found, host)]
    if not port or not inodes:
        return ok(f"{address} is free")
    owners = sorted(_owners(root, set(inodes)))
    commands = {pid: root.command(pid) for pid in owners}
    if commands and all(_OWN.search(line) for _, line in commands.values()):
        return note(f"{address}: gpugauge itself runs there, process {owners[0]}")
    listed = ", ".join(f"{program}, process {pid}" for pid, (program, _) in commands.items())
    who = listed or "a process that cannot be seen from here"
    return failed(DoctorReason.PORT_IN_USE, f"{address}: {who}")


def _listening(root: NodeRoot, port: int) -> Iterator[tuple[str, str]]:
    """The addresses at which something listens on a port, each with the inode of its socket."""
    for table in TABLES:
        for line in root.text(table).splitlines()[1:]:
            columns = line.split()
            if len(columns) <= _INODE:  # the last line of a long table is cut off
                continue
            local, _, number = columns[1].partition(":")
            if columns[3] == _LISTENS and int(number, 16) == port:
                yield _address(local), columns[_INODE]


def _address(digits: str) -> str:
    words = (digits[start : start + _WORD] for start in range(0, len(digits), _WORD))
    packed = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
    return str(IPv4Address(packed) if len(packed) == 4 else IPv6Address(packed))  # noqa: PLR2004 bytes of IPv4


def _clash(found: str, host: str) -> bool:
    """Whether a socket at `found` keeps another from `host`. A name may be any address."""
    if found in {"0.0.0.0", "::"} or host in {"", "::", "0.0.0.0"}:  # noqa: S104 - compared, not bound
        return True
    try:
        return ip_address(found) == ip_address(host)
    except ValueError:
        return True


def _owners(root: NodeRoot, inodes: set[str]) -> Iterator[int]:
    """The processes that have one of these sockets."""
    targets = {f"socket:[{inode}]" for inode in inodes}
    for name in root.names("/proc"):
        if name.isdecimal() and not targets.isdisjoint(_links(root, f"/proc/{name}/fd")):
            yield int(name)


def _links(root: NodeRoot, folder: str) -> Iterator[str]:
    for name in root.names(folder):
        try:
            yield str(root.path(f"{folder}/{name}").readlink())
        except OSError:
            continue


CHECKS = (Check("serving", "port", _port),)
