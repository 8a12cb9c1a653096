"""Engines that already run on the node, found by their sockets and in /proc."""

import os
import socket

import pytest

from exporter.node.dcgm.host_engine.running_engines import listening_engine, other_engines


@pytest.fixture
def add(tmp_path):
    """Adds a process to a /proc in tmp_path."""
    (tmp_path / "meminfo").write_text("")

    def process(pid, comm="python3", maps=""):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "comm").write_text(f"{comm}\n")
        (tmp_path / str(pid) / "maps").write_text(maps)

    return process


def test_a_unix_socket_comes_before_the_port(tmp_path):
    path = str(tmp_path / "engine")
    with socket.socket(socket.AF_UNIX) as server, socket.create_server(("127.0.0.1", 0)) as port:
        server.bind(path)
        server.listen()
        assert listening_engine(port.getsockname()[1], path) == f"unix://{path}"


def test_a_port_that_accepts_is_an_engine(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert listening_engine(port, str(tmp_path / "none")) == f"127.0.0.1:{port}"


def test_a_socket_file_and_a_port_on_which_nothing_listens_are_no_engine(tmp_path):
    path = str(tmp_path / "engine")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
    with socket.socket() as bound:  # but never listens, so that no other process gets the port meanwhile
        bound.bind(("127.0.0.1", 0))
        assert listening_engine(bound.getsockname()[1], path) is None


DCGM = "7f00-7f01 r-xp 00000000 00:1 1 /usr/lib/libdcgm.so.4.5.3\n"
NVML = "7f02-7f03 r-xp 00000000 00:1 2 /usr/lib/libnvidia-ml.so.570.133.20\n"


def test_a_host_engine_and_an_embedded_engine_are_engines_and_a_client_is_not(tmp_path, add):
    add(10, comm="nv-hostengine")
    add(11, comm="dcgm-exporter", maps=DCGM + NVML)
    add(12, comm="dcgmi", maps=DCGM)
    add(13, comm="nvidia-smi", maps=NVML)
    assert sorted(other_engines(tmp_path)) == [10, 11]


def test_our_own_engine_is_no_other_engine(tmp_path, add):
    add(os.getpid(), maps=DCGM + NVML)
    assert other_engines(tmp_path) == ()


def test_a_process_that_has_ended_is_ignored(tmp_path):
    (tmp_path / "99").mkdir()
    assert other_engines(tmp_path) == ()


def test_the_real_proc_can_be_read():
    assert os.getpid() not in other_engines()
