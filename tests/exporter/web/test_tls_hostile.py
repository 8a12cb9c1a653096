"""The web server with TLS against clients whose handshake never ends or that read nothing."""

import contextlib
import gc
import http.client
import os
import socket
import ssl

import pytest

from exporter.web.config_file import WebConfigFile
from exporter.web.limits import Limits
from exporter.web.server import HttpServer
from exporter.web.tls import TlsFiles
from tests.exporter.web.hostile_clients import EXPOSITION, NEVER, ask, connect, ended, many, resident_bytes
from tests.fakes.endpoints import FixedEndpoints, exposition_of, fixed, serving, wait_until_stopped
from tests.waiting import LIMIT_SECONDS, until


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
