"""Only an address that certainly leads to this machine is taken for one."""

import socket

import pytest

from exporter.node.dcgm.host_engine.same_machine import on_this_machine


@pytest.mark.parametrize(
    "remote",
    [
        *("localhost", "localhost:5555", "tcp://localhost:5556", "127.0.0.1", "127.8.8.8:5555", "[::1]:5555", "[::1]"),
        *("unix:///run/nv-hostengine.sock", "/run/nv-hostengine.sock", f"{socket.gethostname()}:5555"),
    ],
)
def test_loopback_addresses_unix_sockets_and_the_own_name_lead_to_this_machine(remote):
    assert on_this_machine(remote)


@pytest.mark.parametrize(
    "remote", ["nvidia-dcgm:5555", "10.1.2.3:5555", "tcp://gpu-7.example:5555", "[2001:db8::7]:5555", "", "a:b:c"]
)
def test_any_other_address_may_lead_to_another_machine(remote):
    assert not on_this_machine(remote)
