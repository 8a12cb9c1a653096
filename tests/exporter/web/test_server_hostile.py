"""The web server against clients that are slow, silent, malformed or gone: nobody else is delayed, nothing piles up."""

import contextlib
import gc
import http.client
import logging
import os
import socket
import subprocess
import sys
import time

import pytest

from exporter.web.limits import Limits
from exporter.web.server import HttpServer
from tests.exporter.web.hostile_clients import EXPOSITION, NEVER, ask, connect, ended, many, resident_bytes
from tests.fakes.endpoints import FixedEndpoints, exposition_of, serving, wait_until_stopped
from tests.waiting import LIMIT_SECONDS, until


def scrape(server):
    """The status of a scrape on a new connection, which must get the whole exposition."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT_SECONDS)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        assert response.read() == EXPOSITION
        return response.status
    finally:
        connection.close()


def still_open(client):
    client.settimeout(0.05)
    return not ended(client)


def drained(client):
    """How many bytes the client still gets until its connection ends."""
    received = 0
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(1 << 20):
            received += len(piece)
    return received


HALF_SENT = b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-More: " + b"a" * 4000


def test_two_hundred_half_sent_requests_neither_delay_a_scrape_nor_occupy_memory():
    limits = Limits(request_seconds=NEVER)
    with serving(FixedEndpoints(exposition_of(EXPOSITION)), limits=limits) as server:
        assert scrape(server) == 200
        gc.collect()
        before = resident_bytes()
        with many(server, 200, HALF_SENT):
            assert {scrape(server) for _ in range(20)} == {200}
            assert server.connections <= limits.connections
            # 200 clients and 128 connections of the server, in one process.
            assert resident_bytes() - before < 8 * 2**20


def test_two_hundred_half_sent_requests_are_closed_at_the_deadline():
    with serving(limits=Limits(request_seconds=1.0)) as server, many(server, 200, HALF_SENT) as clients:
        assert all(ended(client) for client in clients)
        until(lambda: server.connections == 0)


def test_every_scrape_during_a_flood_is_answered():
    """A client that opens connections all the time, faster than any scraper."""
    flood = (
        "import socket, sys, collections\nconnections = collections.deque(maxlen=400)\n"
        "while True:\n"
        " try:\n  connections.append(socket.create_connection(('127.0.0.1', int(sys.argv[1]))))\n"
        "  connections[-1].sendall(b'GET /')\n"
        " except OSError: pass\n"
    )
    with (
        serving(FixedEndpoints(exposition_of(EXPOSITION)), limits=Limits(connections=128)) as server,
        subprocess.Popen([sys.executable, "-c", flood, str(server.port)]) as attacker,
    ):
        try:
            until(lambda: server.connections >= 100)
            assert {scrape(server) for _ in range(30)} == {200}
        finally:
            attacker.kill()


@pytest.mark.parametrize("sent", [b"", b"G", HALF_SENT, b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1"])
def test_a_request_that_does_not_end_is_closed_at_the_deadline(sent):
    limits = Limits(request_seconds=0.3, response_seconds=NEVER, idle_seconds=NEVER)
    began = time.monotonic()
    with serving(limits=limits) as server, connect(server) as client:
        client.sendall(sent)
        drained(client)
        assert time.monotonic() - began > 0.2


def test_bytes_that_trickle_do_not_extend_the_deadline():
    limits = Limits(request_seconds=0.4, header_bytes=2**20, request_bytes=2**20)
    with serving(limits=limits) as server, connect(server, timeout=0.05) as client:
        began = time.monotonic()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(b"GET / HTTP/1.1\r\n")
            while not ended(client):
                assert time.monotonic() - began < LIMIT_SECONDS
                client.sendall(b"A: b\r\n")


def test_the_second_request_of_a_connection_has_a_deadline_too():
    with serving(limits=Limits(request_seconds=0.3, idle_seconds=NEVER)) as server, connect(server) as client:
        ask(client)
        client.sendall(b"GET /hea")
        assert ended(client)


def test_an_idle_connection_outlives_the_request_deadline_and_ends_at_its_own():
    with serving(limits=Limits(request_seconds=0.2, idle_seconds=0.8)) as server, connect(server) as client:
        began = time.monotonic()  # the deadline of an idle connection counts from its last response
        ask(client)
        assert ended(client)
        assert time.monotonic() - began > 0.7


def test_at_the_limit_the_connection_that_is_idle_for_longest_is_closed():
    with serving(limits=Limits(connections=4, idle_seconds=NEVER)) as server, contextlib.ExitStack() as stack:
        clients = []
        for _ in range(4):
            client = stack.enter_context(connect(server))
            ask(client)
            clients.append(client)
        ask(clients[0])  # the first connection is now the one that is idle for the shortest time
        ask(stack.enter_context(connect(server)))
        assert [still_open(client) for client in clients] == [True, False, True, True]


def stalled_readers(server, count, stack):
    """Clients that ask for the exposition and never read; their kernels take little of it."""
    clients = []
    for _ in range(count):
        client = stack.enter_context(socket.socket())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 5)
        clients.append(client)
    return clients


def test_a_connection_that_gets_its_response_is_not_closed_for_new_ones():
    big = FixedEndpoints(exposition_of(os.urandom(20_000_000)))
    with serving(big, limits=Limits(connections=4, response_seconds=NEVER)) as server, contextlib.ExitStack() as stack:
        (reader,) = stalled_readers(server, 1, stack)
        until(lambda: server.connections == 1)
        for _ in range(10):
            stack.enter_context(connect(server))
        until(lambda: server.connections == 4)
        reader.settimeout(LIMIT_SECONDS)
        received = 0
        while received < 20_000_000:
            piece = reader.recv(1 << 20)
            assert piece, "the connection was closed in the middle of its response"
            received += len(piece)


def test_readers_that_stall_occupy_little_memory():
    big = FixedEndpoints(exposition_of(os.urandom(4_000_000)))
    limits = Limits(response_seconds=NEVER)
    with serving(big, limits=limits) as server, contextlib.ExitStack() as stack:
        gc.collect()
        before = resident_bytes()
        stalled_readers(server, 60, stack)
        until(lambda: server.connections == 60)
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT_SECONDS)
        connection.request("GET", "/health")
        assert connection.getresponse().read() == b"OK"
        connection.close()
        assert resident_bytes() - before < 24 * 2**20  # the first responses alone are 240 MB, all of them 1.2 GB


def test_readers_that_stall_are_closed_at_the_deadline_without_a_log_line(caplog):
    big = FixedEndpoints(exposition_of(os.urandom(20_000_000)))
    limits = Limits(request_seconds=NEVER, response_seconds=1.0, idle_seconds=NEVER)
    with serving(big, limits=limits) as server, contextlib.ExitStack() as stack:
        clients = stalled_readers(server, 10, stack)
        until(lambda: server.connections == 10)
        until(lambda: server.connections == 0)
        assert all(drained(client) < 20_000_000 for client in clients)
    assert caplog.records == []


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n" + b"b" * 200_000,
        b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nxx\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabcgarbage\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_oversized_or_malformed_requests_end_their_connection_and_nothing_else(sent, caplog):
    with serving(
        FixedEndpoints(exposition_of(EXPOSITION)), limits=Limits(request_seconds=0.5, idle_seconds=1.0)
    ) as server:
        with caplog.at_level(logging.INFO):
            with connect(server) as client:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    client.sendall(sent)
                drained(client)
            until(lambda: server.connections == 0)
        assert scrape(server) == 200
        assert caplog.records == []


def test_a_body_without_end_is_cut_off_long_before_the_deadline():
    with serving(limits=Limits(request_seconds=NEVER)) as server, connect(server) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n")
        with pytest.raises(OSError, match=r"Broken pipe|reset"):  # noqa: PT012 the kernel takes some of it first
            for _ in range(1000):
                client.sendall(b"b" * 65536)


def test_a_malformed_rest_after_the_response_ends_the_connection_without_a_log_line(caplog):
    with serving() as server, connect(server) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        received = b""
        while not received.endswith(b"\r\n\r\nOK"):
            received += client.recv(4096)
        client.sendall(b"zzz\r\n\r\n")
        assert ended(client)
        until(lambda: server.connections == 0)
        assert caplog.records == []


def test_the_connection_of_a_client_that_vanishes_ends(caplog):
    with serving(FixedEndpoints(exposition_of(os.urandom(20_000_000)))) as server:
        scrapes = [b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * count for count in (1, 5)]
        for sent in (b"", HALF_SENT, *scrapes):
            client = connect(server)
            client.sendall(sent)
            until(lambda: server.connections == 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            client.close()
            until(lambda: server.connections == 0)
        assert caplog.records == []


def test_the_server_stops_while_clients_send_and_read_nothing(caplog):
    caplog.set_level(logging.INFO)
    limits = Limits(request_seconds=NEVER, response_seconds=NEVER)
    server = HttpServer("127.0.0.1:0", FixedEndpoints(exposition_of(os.urandom(4_000_000))), limits=limits)
    server.start()
    with many(server, 100, HALF_SENT), contextlib.ExitStack() as stack:
        stalled_readers(server, 20, stack)
        until(lambda: server.connections >= 120)
        server.stop()
        wait_until_stopped(server)
        assert caplog.records == []  # uvicorn logs when it has to end connections that were not dropped
