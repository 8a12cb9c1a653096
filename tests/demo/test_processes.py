"""The demo's child processes are waited for, and a port that another process has is reported as such."""

import http.server
import socket
import sys
import threading

import pytest

from demo.processes import DemoError, PortInUseError, Processes, check_ports

SERVER = "import http.server, sys; http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), None)"
FAILS = "import sys; sys.exit('no such option')"


@pytest.fixture
def processes(tmp_path):
    found = Processes(tmp_path)
    yield found
    found.stop()


@pytest.fixture
def foreign_server():
    """Another process's server, as far as a child process can see: it answers every GET with 200."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_): ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_a_process_that_fails_is_reported_with_the_end_of_its_output(processes):
    processes.start("tool", [sys.executable, "-c", FAILS])
    with pytest.raises(DemoError, match=r"^tool did not start: no such option$") as raised:
        processes.wait_for("tool", "http://127.0.0.1:1/")
    assert not isinstance(raised.value, PortInUseError)


def test_a_process_whose_port_is_in_use_is_reported_as_such(processes):
    with socket.socket() as blocker:
        blocker.bind(("127.0.0.1", 0))
        port = blocker.getsockname()[1]
        processes.start("tool", [sys.executable, "-c", SERVER, str(port)])
        with pytest.raises(PortInUseError, match=r"^tool did not start: .*already in use$"):
            processes.wait_for("tool", f"http://127.0.0.1:{port}/nothing-answers")


def test_the_answer_of_another_process_is_not_taken_for_that_of_an_ended_one(processes, foreign_server):
    processes.start("tool", [sys.executable, "-c", SERVER, str(foreign_server)])
    processes._running["tool"].wait(30)
    with pytest.raises(PortInUseError):
        processes.wait_for("tool", f"http://127.0.0.1:{foreign_server}/")


def test_a_port_in_use_is_named_with_its_option():
    with socket.create_server(("127.0.0.1", 0)) as blocker:
        port = blocker.getsockname()[1]
        with pytest.raises(PortInUseError, match=f"^port {port} is already in use: choose another with --node-port$"):
            check_ports({"--node-port": port})
