"""The server answers as documented: endpoints, forms of the exposition, addresses, systemd sockets, stopping."""

import http.client
import logging
import os
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from exporter.web import listener
from exporter.web.config_file import WebConfigFile
from exporter.web.listener import ListenError
from exporter.web.negotiation import OPENMETRICS, TEXT, wants_gzip, wants_openmetrics
from exporter.web.server import HttpServer
from tests.fakes.endpoints import FixedEndpoints, exposition_of, serving, wait_until_stopped


def get(server, path="/metrics", method="GET", host="127.0.0.1", **headers):
    connection = http.client.HTTPConnection(host, server.port, timeout=60)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def server():
    with serving() as server:
        yield server


PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/json", False),
        ("application/*", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text; version=1.0.0", True),
        ('APPLICATION/OpenMetrics-Text; version="1.0.0"', True),
        ("application/openmetrics-text; version=0.0.1", False),
        ("application/openmetrics-text; version=2.0.0", False),
        ("application/openmetrics-text; version=1.0.0; q=0", False),
        ("application/openmetrics-text; version=1.0.0; q=0.4, text/plain; q=0.5", False),
        ("application/openmetrics-text; version=1.0.0; q=0.5, text/plain; q=0.5", False),
        ("application/openmetrics-text; version=1.0.0; q=0.5, */*; q=0.1", False),
        ("application/openmetrics-text; q=0.5, */*; q=0.8, text/plain; q=0", True),
        ("application/openmetrics-text; q=0.5, text/plain; version=1.0.0", True),
        ("application/openmetrics-text; q=0.5, text/*; q=0.8", False),
        ("application/openmetrics-text; q=nonsense", False),
        ("application/openmetrics-text; q=7", False),
        (",;q=,;;=", False),
        (PROMETHEUS_2, False),
        (PROMETHEUS_3, False),
    ],
)
def test_openmetrics_is_for_clients_that_name_it_and_do_not_accept_the_text_format(accept, openmetrics):
    assert wants_openmetrics(accept) is openmetrics


@pytest.mark.parametrize(
    ("encoding", "wanted"),
    [
        ("", False),
        ("gzip", True),
        ("GZip;q=0.1", True),
        ("x-gzip", True),
        ("deflate, gzip;q=1.0", True),
        ("gzip;q=0", False),
        ("gzip;q=0.000", False),
        ("*", True),
        ("*;q=0", False),
        ("gzip;q=0, *", False),
        ("identity", False),
        ("br", False),
    ],
)
def test_gzip_is_for_clients_that_accept_it(encoding, wanted):
    assert wants_gzip(encoding) is wanted


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize(("accept", "content_type"), [(OPENMETRICS, OPENMETRICS), (PROMETHEUS_3, TEXT), ("*/*", TEXT)])
def test_the_exposition_comes_in_the_form_asked_for(server, accept, content_type, encoding):
    status, headers, body = get(server, Accept=accept, Accept_Encoding=encoding)
    shown = FixedEndpoints().shown
    forms = {
        (TEXT, "identity"): shown.text,
        (TEXT, "gzip"): shown.text_gzip,
        (OPENMETRICS, "identity"): shown.openmetrics,
        (OPENMETRICS, "gzip"): shown.openmetrics_gzip,
    }
    assert status == 200
    assert body == forms[content_type, encoding]
    assert headers["content-type"] == content_type
    assert headers["vary"] == "Accept, Accept-Encoding"
    assert headers.get("content-encoding", "identity") == encoding
    assert headers["content-length"] == str(len(body))
    assert "date" in headers


def test_a_scrape_gets_the_newest_exposition():
    endpoints = FixedEndpoints()
    with serving(endpoints) as server:
        assert get(server)[2] == b"a 1\n"
        endpoints.shown = exposition_of(b"a 2\n")
        assert get(server)[2] == b"a 2\n"


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 131072, 150_000, 1_000_000])
def test_an_exposition_of_any_size_arrives_whole(size):
    text = os.urandom(size)
    with serving(FixedEndpoints(exposition_of(text))) as server:
        assert get(server)[2] == text


def test_health_is_503_with_the_message_while_the_program_is_not_healthy():
    with serving(FixedEndpoints(not_healthy="no GPU was read since the start")) as server:
        status, _, body = get(server, "/health")
        assert (status, body) == (503, b"no GPU was read since the start\n")
        assert get(server, "/livez")[0] == 200


def test_health_answers_exactly_as_dcgm_exporter_whatever_the_state():
    with serving(FixedEndpoints(not_live="stuck", not_ready="starting")) as server:
        status, _, body = get(server, "/health")
        assert (status, body) == (200, b"OK")


def test_livez_and_readyz_give_the_message():
    endpoints = FixedEndpoints(not_live="the collection loop is stuck", not_ready="no collection yet")
    with serving(endpoints) as server:
        assert get(server, "/livez")[::2] == (503, b"the collection loop is stuck\n")
        assert get(server, "/readyz")[::2] == (503, b"no collection yet\n")
        endpoints.not_live = endpoints.not_ready = None
        assert get(server, "/livez")[::2] == (200, b"ok\n")
        assert get(server, "/readyz")[::2] == (200, b"ok\n")


def test_the_index_links_to_the_endpoints(server):
    status, headers, body = get(server, "/")
    assert status == 200
    assert headers["content-type"].startswith("text/html")
    for link in (b"/metrics", b"/health", b"/livez", b"/readyz"):
        assert b'href="' + link + b'"' in body


def test_the_title_of_the_index_is_escaped():
    with serving(title="<b>&") as server:
        assert b"<h1>&lt;b&gt;&amp;</h1>" in get(server, "/")[2]


@pytest.mark.parametrize("path", ["/nothing", "/metrics/", "/metrics/../etc/passwd", "/%00", "//", "/debug/pprof/"])
def test_anything_else_is_not_found(server, path):
    assert get(server, path)[0] == 404


def test_a_query_changes_nothing(server):
    assert get(server, "/metrics?x=1&y=%20")[0] == 200


@pytest.mark.parametrize("path", ["/metrics", "/health", "/livez", "/", "/nothing"])
def test_head_gives_the_headers_of_get_without_a_body(server, path):
    whole, bare = get(server, path), get(server, path, "HEAD")
    assert bare[0] == whole[0]
    assert bare[2] == b""
    assert bare[1]["content-length"] == str(len(whole[2]))
    assert bare[1]["content-type"] == whole[1]["content-type"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_only_get_and_head_are_served(server, method):
    status, headers, _ = get(server, method=method)
    assert status == 405
    assert headers["allow"] == "GET, HEAD"


def test_configured_headers_are_sent_with_every_response():
    with serving(web=WebConfigFile(headers={"X-Frame-Options": "deny"})) as server:
        for path in ("/metrics", "/nothing"):
            headers = get(server, path)[1]
            assert headers["x-frame-options"] == "deny"
            assert headers["x-content-type-options"] == "nosniff"


def test_a_connection_serves_many_requests(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.connect()
    ours = connection.sock.getsockname()
    for _ in range(20):
        connection.request("GET", "/metrics")
        assert connection.getresponse().read() == b"a 1\n"
        assert connection.sock.getsockname() == ours
    connection.close()


def test_a_short_response_on_a_connection_kept_open_does_not_wait_for_an_acknowledgment(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    waits = []
    for _ in range(41):
        began = time.monotonic()
        connection.request("GET", "/metrics")
        connection.getresponse().read()
        waits.append(time.monotonic() - began)
    (accepted,) = [each for each in list(server._pool._connections) if each.client == connection.sock.getsockname()]
    assert accepted.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    connection.close()
    # Without the option every response but the first ones waits 40 ms; a busy machine delays some, but never all.
    assert min(waits[20:]) < 0.035


def test_http_1_0_and_pipelined_requests_are_answered(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n" * 2 + b"GET /health HTTP/1.0\r\n\r\n")
        assert b"".join(iter(lambda: client.recv(4096), b"")).count(b"\r\n\r\nOK") == 3


def dual_stack_possible():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return socket.has_dualstack_ipv6()
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not dual_stack_possible(), reason="no IPv6 on this machine")


@needs_ipv6
@pytest.mark.parametrize("address", [":0", "[::]:0"])
def test_one_socket_serves_ipv4_and_ipv6(address):
    with serving(address=address) as server:
        assert get(server, host="127.0.0.1")[0] == 200
        assert get(server, host="::1")[0] == 200


@needs_ipv6
def test_an_ipv6_address_serves_ipv6_alone():
    with serving(address="[::1]:0") as server:
        assert get(server, host="::1")[0] == 200
        (one,) = server._sockets  # another process may listen on the same port of 127.0.0.1
        assert (one.family, one.getsockname()[0]) == (socket.AF_INET6, "::1")
        assert one.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)


WITHOUT_IPV6 = """
import errno, socket
real = socket.create_server
def without(address, family=socket.AF_INET, **more):
    if family == socket.AF_INET6:
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
    return real(address, family=family, **more)
socket.create_server = without
from exporter.web import listener
with listener.bind(":0") as bound:
    print(bound.family.name, bound.getsockname()[0])
"""


def test_without_ipv6_in_the_kernel_ipv4_is_served():
    done = subprocess.run([sys.executable, "-c", WITHOUT_IPV6], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["AF_INET", "0.0.0.0"]


def test_a_port_in_use_is_one_message(server):
    second = HttpServer(f"127.0.0.1:{server.port}", FixedEndpoints())
    with pytest.raises(ListenError, match=f"^port {server.port} is already in use: another process listens there"):
        second.start()
    second.stop()


@pytest.mark.parametrize(
    "address", ["", "9400", "host", "a:b", ":99999", ":-1", "::1:9400", "[::1]", "[::1]9400", "h:1:2"]
)
def test_an_address_without_a_port_is_rejected_and_named(address):
    with pytest.raises(ListenError, match="is not an address to listen on: use host:port") as raised:
        listener.bind(address)
    assert f'"{address}"' in str(raised.value)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (":9400", ("", 9400)),
        ("0.0.0.0:9400", ("0.0.0.0", 9400)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_addresses_are_read_as_dcgm_exporter_spells_them(address, expected):
    assert listener.parse(address) == expected


def test_an_address_of_another_machine_is_one_message():
    with pytest.raises(ListenError, match=r'^"192\.0\.2\.1" is not an address of this machine'):
        listener.bind("192.0.2.1:0")


@pytest.mark.parametrize("served_first", [True, False])
def test_a_server_stops_with_connections_open(served_first, caplog):
    caplog.set_level(logging.INFO)
    server = HttpServer("127.0.0.1:0", FixedEndpoints(exposition_of(os.urandom(20_000_000))))
    server.start()
    if served_first:
        assert get(server, "/health")[0] == 200
    clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3)]
    clients[1].sendall(b"GET /metrics HTT")
    clients[2].sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 30  # two seconds, and a share for a busy machine
    wait_until_stopped(server)
    assert caplog.records == []  # uvicorn logs when it has to end connections that were not dropped
    for client in clients:
        client.close()
    assert [one.fileno() for one in server._sockets] == [-1]


def test_stopping_what_was_never_started_or_is_stopped_does_nothing():
    server = HttpServer("127.0.0.1:0", FixedEndpoints())
    server.stop()
    server = HttpServer("127.0.0.1:0", FixedEndpoints())
    server.start()
    server.stop()
    server.stop()
    wait_until_stopped(server)


ACTIVATED = textwrap.dedent("""
    import os, sys
    from exporter.web import listener
    from exporter.web.server import HttpServer
    from tests.fakes.endpoints import FixedEndpoints
    os.environ["LISTEN_PID"] = str(os.getpid()) if sys.argv[1] == "own" else "1"
    try:
        sockets = listener.inherited(os.environ, os.getpid())
    except listener.ListenError as error:
        print(error)
        raise SystemExit
    assert not any(name.startswith("LISTEN_") for name in os.environ)
    assert not any(one.get_inheritable() for one in sockets)
    server = HttpServer(":1", FixedEndpoints(), sockets=sockets)
    server.start()
    print(server.port, flush=True)
    sys.stdin.read()
    server.stop()
""")
AS_SYSTEMD = (
    "import os, sys; fd = int(sys.argv[1]); os.dup2(fd, 3); os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
)


def start_activated(listening, pid, count="1"):
    descriptor = listening.fileno()
    # The socket must be descriptor 3 in the process that serves, as systemd has it.
    command = [sys.executable, "-c", AS_SYSTEMD, str(descriptor), "-W", "error", "-c", ACTIVATED, pid]
    environment = {**os.environ, "LISTEN_FDS": count, "LISTEN_FDNAMES": "http", "PYTHONPATH": "."}
    return subprocess.Popen(
        command, pass_fds=[descriptor], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_socket_passed_by_systemd_is_served():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with start_activated(listening, "own") as process:
            assert int(process.stdout.readline()) == port
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/health")
            assert connection.getresponse().read() == b"OK"
            connection.close()
            process.stdin.close()
            assert process.wait(60) == 0


def test_a_socket_for_another_process_is_not_used():
    with socket.create_server(("127.0.0.1", 0)) as listening, start_activated(listening, "other") as process:
        assert process.communicate(timeout=60)[0].startswith("systemd passed no socket to this process")


def test_a_descriptor_that_does_not_listen_is_rejected():
    with socket.socket() as unbound, start_activated(unbound, "own") as process:
        assert "is not a listening stream socket" in process.communicate(timeout=60)[0]


@pytest.mark.parametrize("count", ["", "0", "-1", "x", "99999"])
def test_invalid_counts_from_systemd_are_rejected(count):
    environment = {"LISTEN_PID": "7", "LISTEN_FDS": count, "LISTEN_FDNAMES": "http", "LISTEN_PIDFDID": "9"}
    with pytest.raises(ListenError, match="systemd passed no socket"):
        listener.inherited(environment, 7)
    assert environment == {}
