"""Whether something accepts connections at the address of a host engine."""

import socket

import pytest

from exporter.node.dcgm.host_engine.address import parse_address
from exporter.node.dcgm.host_engine.probe import refusal

PATIENT = 30.0
"""Seconds that no test waits for: each address accepts or refuses at once."""


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "[::1]")])
def test_a_port_accepts_while_something_listens(family, host):
    if family == socket.AF_INET6 and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with socket.create_server((host.strip("[]"), 0), family=family) as server:
        address = parse_address(f"{host}:{server.getsockname()[1]}")
        assert refusal(address, PATIENT) is None
    assert refusal(address, PATIENT) == f"nothing accepts connections at {address.text}: Connection refused"


def test_a_unix_socket_accepts_while_something_listens(tmp_path):
    address = parse_address(str(tmp_path / "engine.sock"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address.text)
        server.listen()
        assert refusal(address, PATIENT) is None
    assert "Connection refused" in refusal(address, PATIENT)
    assert "No such file" in refusal(parse_address(str(tmp_path / "none")), PATIENT)


def test_a_host_name_that_does_not_exist_is_a_reason():
    assert "nothing accepts connections at nowhere.invalid:5555: " in refusal(parse_address("nowhere.invalid"), PATIENT)
