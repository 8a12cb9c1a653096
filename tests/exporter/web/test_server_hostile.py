"""What clients can do without delaying a scrape or occupying memory: the tests by which the server was chosen.

Deadlines are injected: short where a test waits for one, NEVER where it must not be what ends a connection. Upper
limits of time are generous, because a busy machine may be slow.
"""

import contextlib
import gc
import http.client
import logging
import os
import resource
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from exporter.web.config_file import WebConfigFile
from exporter.web.limits import Limits
from exporter.web.server import HttpServer
from exporter.web.tls import TlsFiles
from tests.fakes.endpoints import FixedEndpoints, exposition_of, fixed, serving, wait_until_stopped
from tests.waiting import LIMIT_SECONDS, until

EXPOSITION = os.urandom(150_000)
NEVER = 600.0
"""A deadline in seconds that no test reaches."""


def connect(server, timeout=LIMIT_SECONDS):
    return socket.create_connection(("127.0.0.1", server.port), timeout=timeout)


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


@contextlib.contextmanager
def many(server, count, sent=b""):
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(server)) for _ in range(count)]
        for client in clients:
            with contextlib.suppress(OSError):  # dropped at the limit already
                client.sendall(sent)
        yield clients


HALF_SENT = b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-More: " + b"a" * 4000


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


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


@pytest.fixture
def tls(tmp_path):
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "pair.pem")
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return TlsFiles(tmp_path / "pair.pem", tmp_path / "pair.pem"), context


def scrape_tls(server, context):
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=LIMIT_SECONDS, context=context)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        assert response.read() == EXPOSITION
        return response.status
    finally:
        connection.close()


HALF_SENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


def test_handshakes_that_never_end_count_as_connections_and_do_not_delay_a_scrape(tls):
    files, context = tls
    with (
        serving(
            FixedEndpoints(exposition_of(EXPOSITION)), web=WebConfigFile(files), limits=Limits(request_seconds=NEVER)
        ) as server,
        many(server, 200, HALF_SENT_HELLO),
    ):
        assert scrape_tls(server, context) == 200
        assert 100 <= server.connections <= 128


def test_handshakes_that_never_end_are_closed_at_the_deadline(tls):
    files, _ = tls
    with (
        serving(web=WebConfigFile(files), limits=Limits(request_seconds=1.0)) as server,
        many(server, 200, HALF_SENT_HELLO) as clients,
    ):
        assert all(ended(client) for client in clients)
        until(lambda: server.connections == 0)


def stalled_tls_readers(server, count, context, stack):
    clients = []
    for _ in range(count):
        client = stack.enter_context(socket.socket())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        clients.append(stack.enter_context(context.wrap_socket(client, server_hostname="localhost")))
        clients[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 5)
    return clients


def test_readers_over_tls_that_stall_occupy_little_memory(tls):
    files, context = tls
    big = FixedEndpoints(exposition_of(os.urandom(4_000_000)))
    with (
        serving(big, web=WebConfigFile(files), limits=Limits(response_seconds=NEVER)) as server,
        contextlib.ExitStack() as stack,
    ):
        gc.collect()
        before = resident_bytes()
        stalled_tls_readers(server, 20, context, stack)
        until(lambda: server.connections == 20)
        assert resident_bytes() - before < 32 * 2**20  # the first responses alone are 80 MB


def test_readers_over_tls_that_stall_are_closed_at_the_deadline(tls):
    files, context = tls
    big = FixedEndpoints(exposition_of(os.urandom(20_000_000)))
    limits = Limits(request_seconds=NEVER, response_seconds=1.0, idle_seconds=NEVER)
    with serving(big, web=WebConfigFile(files), limits=limits) as server, contextlib.ExitStack() as stack:
        stalled_tls_readers(server, 1, context, stack)
        until(lambda: server.connections == 1)
        until(lambda: server.connections == 0)


def test_connections_with_plain_http_and_noise_on_a_tls_port_end(tls, caplog):
    files, context = tls
    with serving(
        FixedEndpoints(exposition_of(EXPOSITION)), web=WebConfigFile(files), limits=Limits(request_seconds=NEVER)
    ) as server:
        for sent in (b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", os.urandom(100_000), b""):
            with connect(server) as client, contextlib.suppress(OSError):
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
                client.recv(100)
            until(lambda: server.connections == 0)
        assert scrape_tls(server, context) == 200
        gc.collect()  # then asyncio logs a task whose exception was not read
        assert caplog.records == []


def test_a_server_with_tls_stops_during_handshakes(tls):
    files, context = tls
    limits = Limits(request_seconds=NEVER)
    server = HttpServer(
        "127.0.0.1:0", FixedEndpoints(exposition_of(EXPOSITION)), settings=fixed(WebConfigFile(files)), limits=limits
    )
    server.start()
    with (
        many(server, 20, b"\x16\x03\x01"),
        connect(server) as idle,
        context.wrap_socket(idle, server_hostname="localhost") as secured,
    ):
        ask(secured)
        server.stop()
        wait_until_stopped(server)
