"""Clients that several tests of hostile clients share."""

import contextlib
import os
import resource
import socket
from pathlib import Path

from tests.waiting import LIMIT_SECONDS

EXPOSITION = os.urandom(150_000)


NEVER = 600.0
"""A deadline in seconds that no test reaches."""


def connect(server, timeout=LIMIT_SECONDS):
    return socket.create_connection(("127.0.0.1", server.port), timeout=timeout)


def ask(client):
    client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
    received = b""
    while not received.endswith(b"\r\n\r\nOK"):
        received += client.recv(4096)


def ended(client):
    """Whether the server has closed this connection (waits as long as the socket's timeout)."""
    try:
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@contextlib.contextmanager
def many(server, count, sent=b""):
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(server)) for _ in range(count)]
        for client in clients:
            with contextlib.suppress(OSError):  # dropped at the limit already
                client.sendall(sent)
        yield clients


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
