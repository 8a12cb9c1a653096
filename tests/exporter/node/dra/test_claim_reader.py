"""The reader of ResourceClaims against the simulated API server: each claim once, and what it may not read."""

import time
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from exporter.node.dra.claim_reader import MISSING_SECONDS, ClaimReader
from exporter.node.dra.resource_slices import ClaimableKey
from exporter.node.service_account.account import ServiceAccount
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from tests.clock import Clock
from tests.exporter.node.dra.slices import DRIVER, claim_object

CLAIM = ("team", "train-gpu")


def wanted(*claims, device="gpu-0"):
    return {claim: frozenset({ClaimableKey(DRIVER, "node-1", device)}) for claim in claims or (CLAIM,)}


@pytest.fixture
def server():
    started = SimulatedApiServer(token="secret")
    started.serve("/apis/resource.k8s.io/v1/resourceclaims")
    started.start()
    yield started
    started.stop()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def reader(server, clock, tmp_path):
    """A reader whose requests are made when they are wanted, in the same thread."""
    (tmp_path / "token").write_text("secret\n")
    account = ServiceAccount(server.url, tmp_path)
    return ClaimReader(account, clock, lambda function: function(), jitter=lambda: 1.0)


class Answer(NamedTuple):
    claims: Mapping | None
    problem: tuple | None


def read(reader, *claims, **more):
    """What is known after the requests that are due."""
    reader.view(wanted(*claims, **more))
    return Answer(reader.view(wanted(*claims, **more)), reader.problem)


def test_a_claim_is_read_once_while_the_kubelet_lists_it_and_forgotten_after_that(server, reader):
    server.put("resourceclaims", claim_object(("gpu", "gpu-0")))
    view = read(reader)
    assert {key.name: known.device_class for key, known in view.claims[CLAIM].devices.items()} == {"gpu-0": DRIVER}
    assert reader.view(wanted()) is view.claims
    assert [request.path for request in server.requests] == [
        "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/train-gpu"
    ]
    assert reader.view({}) == {}


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_the_version_that_is_served_is_found_and_found_again_after_an_upgrade(server, reader, version):
    server.unserve("/apis/resource.k8s.io/v1/resourceclaims")
    server.serve(f"/apis/resource.k8s.io/{version}/resourceclaims")
    for name in ("a", "b"):
        server.put("resourceclaims", claim_object(("gpu", "gpu-0"), name=name, version=version))
    assert set(read(reader, ("team", "a"), ("team", "b")).claims) == {("team", "a"), ("team", "b")}
    assert server.requests[-1].path.startswith(f"/apis/resource.k8s.io/{version}/")
    tried = ["v1", "v1beta2", "v1beta1"].index(version)
    assert len(server.requests) == tried + 2
    server.unserve(f"/apis/resource.k8s.io/{version}/resourceclaims")
    server.serve("/apis/resource.k8s.io/v1beta2/resourceclaims")
    server.put("resourceclaims", claim_object(("gpu", "gpu-0"), name="c"))
    assert ("team", "c") in read(reader, ("team", "c")).claims


def test_a_claim_that_is_not_there_is_asked_for_again_after_a_minute(server, reader, clock):
    assert read(reader) == ({}, None)
    asked = len(server.requests)
    server.put("resourceclaims", claim_object(("gpu", "gpu-0")))
    clock.now += MISSING_SECONDS - 1
    assert read(reader).claims == {}
    assert len(server.requests) == asked
    clock.now += 1
    assert set(read(reader).claims) == {CLAIM}


def test_a_claim_that_lacks_a_device_is_read_again_and_known_meanwhile(server, reader, clock):
    server.put("resourceclaims", claim_object(("gpu", "gpu-0")))
    assert read(reader, device="gpu-1").claims[CLAIM].devices.keys() == wanted()[CLAIM]
    server.put("resourceclaims", claim_object(("gpu", "gpu-1")))
    clock.now += MISSING_SECONDS
    assert read(reader, device="gpu-1").claims[CLAIM].devices.keys() == wanted(device="gpu-1")[CLAIM]


def test_claims_that_may_not_be_read_are_not_known_at_all_until_they_may(server, reader, clock):
    server.put("resourceclaims", claim_object(("gpu", "gpu-0")))
    server.add_fault(ApiFault("get", "resourceclaims", times=2, status=403))
    view = read(reader)
    assert (view.claims, view.problem[0]) == (None, "forbidden")
    assert len(server.requests) == 1
    clock.now += 1
    assert read(reader).claims is None
    clock.now += 60
    assert read(reader).problem is None
    assert set(read(reader).claims) == {CLAIM}


def test_a_server_that_fails_costs_the_claims_that_were_not_read_and_is_asked_less_often(server, reader, clock):
    server.put("resourceclaims", claim_object(("gpu", "gpu-0")))
    known = read(reader).claims
    server.stop(keep_port=True)
    both = CLAIM, ("team", "other")
    view = read(reader, *both)
    assert (view.claims, view.problem[0]) == (known, "unreachable")
    server.start()
    server.put("resourceclaims", claim_object(("gpu", "gpu-0"), name="other"))
    assert read(reader, *both).claims == known
    clock.now += 1
    assert set(read(reader, *both).claims) == set(both)
    assert read(reader, *both).problem is None


def test_a_busy_server_gets_no_request_for_a_claim_for_as_long_as_it_asks(server, reader, clock):
    server.put("resourceclaims", claim_object(("gpu", "gpu-0")))
    server.add_fault(ApiFault("get", "resourceclaims", status=429, retry_after=30))
    assert read(reader).problem[0] == "throttled"
    clock.now += 29
    assert read(reader).claims == {}
    clock.now += 2
    assert set(read(reader).claims) == {CLAIM}


@pytest.mark.parametrize("garbage", [b"{}", b"[]", b"<html>", b"[" * 100_000])
def test_a_claim_that_cannot_be_decoded_costs_only_itself(server, reader, garbage, caplog):
    server.put("resourceclaims", claim_object(("gpu", "gpu-0")))
    server.add_fault(ApiFault("get", "resourceclaims", garbage=garbage))
    view = read(reader, ("team", "a-broken"), CLAIM)
    assert (set(view.claims), view.problem) == ({CLAIM}, None)
    assert [record.getMessage()[:29] for record in caplog.records] == ["the claim team/a-broken canno"]


def test_names_are_quoted(server, reader):
    assert read(reader, ("a/../b", "c?d")).claims == {}
    assert server.requests[0].path == "/apis/resource.k8s.io/v1/namespaces/a%2F..%2Fb/resourceclaims/c%3Fd"


def test_the_first_collection_with_a_claim_knows_it_and_none_waits_long_for_a_slow_server(server, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    reader = ClaimReader(ServiceAccount(server.url, tmp_path))
    server.put("resourceclaims", claim_object(("gpu", "gpu-0")))
    assert set(reader.view(wanted())) == {CLAIM}
    server.add_fault(ApiFault("get", "resourceclaims", delay=float("inf")))
    began = time.monotonic()
    both = wanted(CLAIM, ("team", "slow"))
    assert set(reader.view(both)) == {CLAIM}
    assert time.monotonic() - began < 5
    began = time.monotonic()
    for _ in range(100):  # while that request is being made there is nothing to wait for
        assert set(reader.view(both)) == {CLAIM}
    assert time.monotonic() - began < 5
    assert len(server.requests) == 2
    reader.close()
    server.clear_faults()


def test_nothing_is_asked_for_after_the_end(server, reader):
    reader.close()
    assert read(reader) == ({}, None)
    assert server.requests == ()
