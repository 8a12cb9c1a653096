"""The whole node exporter on sockets that it inherits, as systemd passes them (sd_listen_fds(3))."""

import http.client
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.exporter.node.exporter_process import children
from tests.waiting import until

pytestmark = pytest.mark.process

EXEC = """
import os, sys
descriptors = [int(each) for each in sys.argv[1].split(",")]
spare = [os.dup(each) for each in descriptors]  # the numbers from 3 on may be among them
for number, each in enumerate(spare):
    os.dup2(each, 3 + number)
    os.set_inheritable(3 + number, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(spare)), LISTEN_FDNAMES="one:two")
os.execv(sys.executable, [sys.executable, "-m", "exporter", *sys.argv[2:]])
"""
NODE = ("node", "--source", "simulated", "--web-systemd-socket", "--collect-interval", "1000")


@contextmanager
def activated(*listening, arguments=NODE):
    """The exporter, with these sockets as its descriptors from 3 on."""
    descriptors = [each.fileno() for each in listening]
    command = [sys.executable, "-c", EXEC, ",".join(map(str, descriptors)), *arguments]
    needed = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("COVERAGE")}
    with subprocess.Popen(command, pass_fds=descriptors, env=needed, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def answer(connect, path):
    """The body, on a connection that `connect` makes."""
    connection = http.client.HTTPConnection("socket", timeout=60)
    connection.sock = connect()
    connection.request("GET", path)
    body = connection.getresponse().read().decode()
    connection.close()
    return body


def to_unix(path):
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(60)
    made.connect(path)
    return made


def test_every_inherited_socket_is_served_and_no_child_inherits_any(tmp_path):
    path = str(tmp_path / "s")
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(path)
        unix.listen()
        process = stack.enter_context(activated(tcp, unix))
        # The kernel keeps the connection until the exporter has started.
        assert answer(lambda: socket.create_connection(tcp.getsockname(), timeout=60), "/health") == "OK"
        assert "gpugauge_build_info" in until(lambda: answer(lambda: to_unix(path), "/metrics"))
        (reader,) = until(lambda: children(process.pid))
        # Between fork and exec the child still shows the environment and the descriptors of its parent.
        until(lambda: b"LISTEN_" not in Path(f"/proc/{reader}/environ").read_bytes())
        links = [str(each.readlink()) for each in Path(f"/proc/{reader}/fd").iterdir()]
        inherited = {f"socket:[{os.fstat(each.fileno()).st_ino}]" for each in (tcp, unix)}
        assert inherited.isdisjoint(links)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_socket_that_does_not_listen_is_one_message_and_exit_code_2(tmp_path):
    with socket.socket() as unbound, activated(unbound) as process:
        message = process.communicate(timeout=60)[1]
        assert process.returncode == 2
    assert "descriptor 3 passed by systemd is not a listening stream socket" in message
    assert "Traceback" not in message
