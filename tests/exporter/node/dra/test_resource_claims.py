"""ResourceClaims: which class a device was asked for, and whether it is for monitoring alone."""

import json
from pathlib import Path

import msgspec
import pytest

from exporter.node.dra.knowledge import DraKnowledge
from exporter.node.dra.resource_claims import ClaimedDevice, resource_claim
from exporter.node.dra.resource_slices import ClaimableKey
from tests.exporter.node.dra.slices import DRIVER, claim_object, request_object

CORPUS = Path(__file__).parents[2] / "cluster" / "scheduler_corpus"


def key(name):
    return ClaimableKey(DRIVER, "node-1", name)


def decoded(found):
    return dict(resource_claim(json.dumps(found).encode()).devices)


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_every_version_of_the_api_names_the_class_of_a_device(version):
    requests = [request_object("gpu"), request_object("slice", "mig.nvidia.com")]
    found = decoded(
        claim_object(("gpu", "gpu-0"), ("slice", "gpu-1-mig-1g10gb-19-0"), requests=requests, version=version)
    )
    assert found == {
        key("gpu-0"): ClaimedDevice("gpu.nvidia.com"),
        key("gpu-1-mig-1g10gb-19-0"): ClaimedDevice("mig.nvidia.com"),
    }


def test_the_class_of_an_alternative_is_that_of_the_one_that_was_chosen():
    alternatives = [{"name": "big", "deviceClassName": "whole"}, {"name": "small", "deviceClassName": "part"}]
    requests = [{"name": "any", "firstAvailable": alternatives}]
    found = decoded(claim_object(("any/small", "gpu-0"), ("other", "gpu-1"), requests=requests))
    assert found == {key("gpu-0"): ClaimedDevice("part"), key("gpu-1"): ClaimedDevice("")}


def test_a_device_with_admin_access_is_for_monitoring_unless_the_claim_has_it_for_use_too():
    found = decoded(claim_object(("watch", "gpu-0", True), ("watch", "gpu-1", True), ("gpu", "gpu-1")))
    assert {each.name: known.monitoring for each, known in found.items()} == {"gpu-0": True, "gpu-1": False}
    reverse = decoded(claim_object(("gpu", "gpu-1"), ("watch", "gpu-1", True)))
    assert not reverse[key("gpu-1")].monitoring


def test_a_claim_that_is_not_allocated_has_no_device():
    assert decoded({"metadata": {"name": "x"}, "spec": None, "status": None}) == {}


@pytest.mark.parametrize("body", [b"{}", b"[]", b"x", b"[" * 100_000])
def test_what_is_no_claim_raises(body):
    with pytest.raises((msgspec.DecodeError, RecursionError)):
        resource_claim(body)


def test_the_recorded_claim_of_an_extended_resource_has_the_class_that_serves_it():
    recorded = json.loads((CORPUS / "064-dra-extended-resource-fits.json").read_text())["resourceclaims"]
    found = decoded(recorded[0])
    assert found == {ClaimableKey(DRIVER, "d1", f"gpu-{n}"): ClaimedDevice("gpu.nvidia.com") for n in (0, 1)}


def test_a_claim_that_was_not_read_or_has_no_such_device_is_not_known():
    claim = resource_claim(json.dumps(claim_object(("gpu", "gpu-0"))).encode())
    known = DraKnowledge(claims={("team", "train-gpu"): claim})
    assert known.claimed(("team", "train-gpu"), key("gpu-0")) == ClaimedDevice("gpu.nvidia.com")
    assert known.claimed(("team", "train-gpu"), key("gpu-1")) is None
    assert known.claimed(("team", "other"), key("gpu-0")) is None
