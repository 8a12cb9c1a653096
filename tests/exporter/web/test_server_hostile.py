"""What clients may do without delaying a scrape or holding memory: the test by which the server was chosen."""

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

from exporter.web.http_protocol import Limits
from exporter.web.server import Server
from exporter.web.tls import TlsFiles
from tests.fakes.endpoints import FixedPages, page, serving

PAGE = os.urandom(150_000)


def connect(server, timeout=10):
    return socket.create_connection(("127.0.0.1", server.port), timeout=timeout)


def scrape(server, timeout=10):
    """Seconds until a fresh connection has the whole page, and the status."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        assert response.read() == PAGE
        return time.monotonic() - began, response.status
    finally:
        connection.close()


def ask(client):
    client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
    received = b""
    while not received.endswith(b"\r\n\r\nOK"):
        received += client.recv(4096)


def until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


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


def test_two_hundred_half_sent_requests_neither_delay_a_scrape_nor_hold_memory():
    limits = Limits(request_seconds=3.0)
    with serving(FixedPages(page(PAGE)), limits=limits) as server:
        assert scrape(server)[1] == 200
        gc.collect()
        before = resident_bytes()
        with many(server, 200, HALF_SENT) as clients:
            waits = [scrape(server) for _ in range(20)]
            assert {status for _, status in waits} == {200}
            assert max(seconds for seconds, _ in waits) < 1.0
            assert server.connections <= limits.connections
            # 200 clients here and 128 connections there, in one process.
            assert resident_bytes() - before < 8 * 2**20
            until(lambda: server.connections == 0, seconds=6)
            assert all(ended(client) for client in clients)


def test_a_scrape_every_moment_of_a_flood_is_answered():
    """A client that opens connections without end, faster than anyone scrapes."""
    flood = (
        "import socket, sys, collections\nheld = collections.deque(maxlen=400)\n"
        "while True:\n"
        " try:\n  held.append(socket.create_connection(('127.0.0.1', int(sys.argv[1]))))\n"
        "  held[-1].sendall(b'GET /')\n"
        " except OSError: pass\n"
    )
    with (
        serving(FixedPages(page(PAGE)), limits=Limits(connections=128)) as server,
        subprocess.Popen([sys.executable, "-c", flood, str(server.port)]) as attacker,
    ):
        try:
            until(lambda: server.connections >= 100)
            waits = [scrape(server) for _ in range(30)]
        finally:
            attacker.kill()
        assert {status for _, status in waits} == {200}
        assert max(seconds for seconds, _ in waits) < 2.0


@pytest.mark.parametrize("sent", [b"", b"G", HALF_SENT, b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1"])
def test_a_request_that_does_not_end_is_closed_at_the_deadline(sent):
    with serving(limits=Limits(request_seconds=0.3)) as server, connect(server) as client:
        began = time.monotonic()
        client.sendall(sent)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(4096):
                pass
        assert 0.2 < time.monotonic() - began < 1.5


def test_bytes_that_trickle_do_not_extend_the_deadline():
    with serving(limits=Limits(request_seconds=0.4)) as server, connect(server, timeout=0.05) as client:
        began = time.monotonic()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(b"GET / HTTP/1.1\r\n")
            while not ended(client):
                client.sendall(b"A: b\r\n")
        assert time.monotonic() - began < 1.5


def test_the_second_request_of_a_connection_has_a_deadline_too():
    with serving(limits=Limits(request_seconds=0.3, idle_seconds=30)) as server, connect(server) as client:
        ask(client)
        client.sendall(b"GET /hea")
        began = time.monotonic()
        assert ended(client)
        assert time.monotonic() - began < 1.5


def test_an_idle_connection_outlives_the_request_deadline_and_ends_at_its_own():
    with serving(limits=Limits(request_seconds=0.1, idle_seconds=0.8)) as server, connect(server) as client:
        ask(client)
        began = time.monotonic()
        assert ended(client)
        assert 0.6 < time.monotonic() - began < 2.0


def test_at_the_limit_the_oldest_idle_connection_gives_way():
    with serving(limits=Limits(connections=4)) as server, contextlib.ExitStack() as stack:
        clients = []
        for _ in range(4):
            client = stack.enter_context(connect(server))
            ask(client)
            clients.append(client)
        ask(clients[0])  # the first is now the youngest
        newcomer = stack.enter_context(connect(server))
        ask(newcomer)
        assert [still_open(client) for client in clients] == [True, False, True, True]


def stalled_readers(server, count, stack):
    """Clients that ask for the page and never read; their kernels take little."""
    clients = []
    for _ in range(count):
        client = stack.enter_context(socket.socket())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 5)
        clients.append(client)
    return clients


def test_one_that_is_being_answered_does_not_give_way_to_newcomers():
    big = FixedPages(page(os.urandom(20_000_000)))
    with serving(big, limits=Limits(connections=4)) as server, contextlib.ExitStack() as stack:
        (reader,) = stalled_readers(server, 1, stack)
        until(lambda: server.connections == 1)
        for _ in range(10):
            stack.enter_context(connect(server))
        until(lambda: server.connections == 4)
        reader.settimeout(5)
        received = 0
        while received < 20_000_000:
            piece = reader.recv(1 << 20)
            assert piece, "the connection was closed in the middle of its answer"
            received += len(piece)


def test_readers_that_stall_are_closed_at_the_deadline_and_hold_little():
    big = FixedPages(page(os.urandom(4_000_000)))
    limits = Limits(response_seconds=2.0)
    with serving(big, limits=limits) as server, contextlib.ExitStack() as stack:
        gc.collect()
        before = resident_bytes()
        stalled_readers(server, 60, stack)
        until(lambda: server.connections == 60)
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.request("GET", "/health")
        assert connection.getresponse().read() == b"OK"
        connection.close()
        assert resident_bytes() - before < 24 * 2**20  # of 240 MB asked for once, 1.2 GB in all
        until(lambda: server.connections == 0, seconds=5)


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
    with serving(FixedPages(page(PAGE)), limits=Limits(request_seconds=0.5)) as server:
        with caplog.at_level(logging.INFO):
            with connect(server, timeout=2) as client, contextlib.suppress(OSError):
                client.sendall(sent)
                while client.recv(65536):
                    pass
            until(lambda: server.connections == 0)
        assert scrape(server)[1] == 200
        assert caplog.records == []


def test_a_body_without_end_is_cut_off_long_before_the_deadline():
    with serving(limits=Limits(request_seconds=60)) as server, connect(server) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n")
        with pytest.raises(OSError, match=r"Broken pipe|reset"):  # noqa: PT012 the buffers between take some
            for _ in range(1000):
                client.sendall(b"b" * 65536)


def test_nonsense_after_the_answer_ends_the_connection_quietly(caplog):
    with serving() as server, connect(server) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        received = b""
        while not received.endswith(b"\r\n\r\nOK"):
            received += client.recv(4096)
        client.sendall(b"zzz\r\n\r\n")
        assert ended(client)
        until(lambda: server.connections == 0)
        assert caplog.records == []


def test_a_client_that_vanishes_in_the_middle_leaves_nothing(caplog):
    with serving(FixedPages(page(os.urandom(20_000_000)))) as server:
        for sent in (b"", HALF_SENT, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"):
            client = connect(server)
            client.sendall(sent)
            until(lambda: server.connections == 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            client.close()
            until(lambda: server.connections == 0)
        assert caplog.records == []


def test_the_server_stops_in_time_amid_half_sent_and_stalled_clients():
    server = Server("127.0.0.1:0", FixedPages(page(os.urandom(4_000_000))))
    server.start()
    with many(server, 100, HALF_SENT), contextlib.ExitStack() as stack:
        stalled_readers(server, 20, stack)
        until(lambda: server.connections >= 120)
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 2.0
        assert not server.alive()


@pytest.fixture
def tls(tmp_path):
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "pair.pem")
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return TlsFiles(tmp_path / "pair.pem", tmp_path / "pair.pem"), context


def scrape_tls(server, context):
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=10, context=context)
    try:
        began = time.monotonic()
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        assert response.read() == PAGE
        return time.monotonic() - began, response.status
    finally:
        connection.close()


def test_handshakes_that_never_end_count_and_are_closed_at_the_deadline(tls):
    files, context = tls
    with (
        serving(FixedPages(page(PAGE)), tls=files, limits=Limits(request_seconds=2.0)) as server,
        many(server, 200, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03") as clients,
    ):
        seconds, status = scrape_tls(server, context)
        assert status == 200
        assert seconds < 1.0
        assert server.connections <= 128
        until(lambda: server.connections == 0, seconds=5)
        assert all(ended(client) for client in clients)


def test_readers_over_tls_that_stall_are_closed_at_the_deadline_and_hold_little(tls):
    files, context = tls
    big = FixedPages(page(os.urandom(4_000_000)))
    with serving(big, tls=files, limits=Limits(response_seconds=1.5)) as server, contextlib.ExitStack() as stack:
        gc.collect()
        before = resident_bytes()
        for _ in range(20):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.port))
            secured = stack.enter_context(context.wrap_socket(client, server_hostname="localhost"))
            secured.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 5)
        until(lambda: server.connections == 20)
        assert resident_bytes() - before < 32 * 2**20  # of 80 MB asked for once
        until(lambda: server.connections == 0, seconds=5)


def test_plain_http_and_noise_on_a_tls_port_leave_nothing(tls, caplog):
    files, context = tls
    with serving(FixedPages(page(PAGE)), tls=files, limits=Limits(request_seconds=60)) as server:
        for sent in (b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", os.urandom(100_000), b""):
            with connect(server) as client, contextlib.suppress(OSError):
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
                client.recv(100)
            until(lambda: server.connections == 0)
        assert scrape_tls(server, context)[1] == 200
        gc.collect()  # when a forgotten task would say so
        assert caplog.records == []


def test_a_server_with_tls_stops_in_time_amid_handshakes(tls):
    files, context = tls
    server = Server("127.0.0.1:0", FixedPages(page(PAGE)), tls=files)
    server.start()
    with (
        many(server, 20, b"\x16\x03\x01"),
        connect(server) as idle,
        context.wrap_socket(idle, server_hostname="localhost") as secured,
    ):
        ask(secured)
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 2.0
        assert not server.alive()
