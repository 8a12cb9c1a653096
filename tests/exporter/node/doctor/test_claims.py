"""Checks of ResourceClaims: what the API server shows of them, and why it does not."""

from dataclasses import replace

import pytest

from exporter.node.attribution.allocation import Allocation, ClaimName
from exporter.node.attribution.matching.device_lookup import UnmatchedReason
from exporter.node.doctor import claims, kubernetes
from exporter.node.doctor.examination import DraExamination
from exporter.node.doctor.gather import NodeAccess, gather
from exporter.node.dra.device import DraDevice
from exporter.node.dra.knowledge import DraKnowledge
from exporter.node.dra.resource_slices import ClaimableKey
from exporter.node.service_account.account import ServiceAccount
from exporter.node.service_account.reasons import ApiReason
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from tests.exporter.node.doctor.nodes import GPU_UUID, config, examination, finding, findings, gpu, read
from tests.exporter.node.dra.slices import claim_object, device, slice_object

CHECK = "resource claims"
FLAGS = ("--kubernetes", "--kubernetes-enable-dra")


def claimed(name="gpu-0"):
    return Allocation("team", "train", "main", "gpu.nvidia.com", f"node-1/{name}", claim=ClaimName("team", "train-gpu"))


def test_nothing_is_said_where_there_is_no_claim_and_the_api_server_is_not_asked(node):
    assert findings(claims, CHECK, examination(node, "--kubernetes", kubelet=())) == []


def test_devices_that_are_told_by_their_names_are_counted(node):
    found = finding(claims, CHECK, examination(node, "--kubernetes", kubelet=(claimed(),)))
    assert found == ("ok", None, "1 devices of claims are told by their names; --kubernetes-enable-dra reads more")


def test_what_cannot_be_read_fails_with_its_reason(node):
    dra = DraExamination(DraKnowledge(), (("resourceslices", ApiReason.FORBIDDEN, "403"),))
    found = finding(claims, CHECK, examination(node, *FLAGS, kubelet=(claimed(),), dra=dra))
    assert found == ("failed", ApiReason.FORBIDDEN, "resourceslices: 403")


def test_allocations_are_matched_by_what_the_slices_show(node):
    listed = (claimed("first"),)
    dra = DraExamination(
        DraKnowledge({ClaimableKey("gpu.nvidia.com", "node-1", "first"): DraDevice("gpu", uuid=GPU_UUID)})
    )
    examined = examination(node, *FLAGS, kubelet=listed, attempts=(read(gpu()),), dra=dra)
    assert finding(kubernetes, "allocations", examined) == ("ok", None, "all 1 match a device")
    examined = examination(node, *FLAGS, kubelet=listed, attempts=(read(gpu()),))
    assert finding(kubernetes, "allocations", examined)[1] is UnmatchedReason.UNRESOLVED_CLAIM


@pytest.fixture
def server(tmp_path):
    (tmp_path / "token").write_text("secret")
    started = SimulatedApiServer(token="secret", bookmark_seconds=0.1)
    for kind in ("resourceslices", "resourceclaims"):
        started.serve(f"/apis/resource.k8s.io/v1/{kind}")
    started.start()
    yield started
    started.stop()


def gathered(node, server, folder):
    asked = replace(config("--source=simulated", *FLAGS), service_account=ServiceAccount(server.url, folder))
    listed = [("team", "train", "main", "gpu.nvidia.com", ["node-1/gpu-0@train-gpu"])]
    node.kubelet_of(lambda: listed)
    access: NodeAccess = node.access()
    return gather(asked, access)


def test_the_api_server_is_asked_once_for_the_slices_and_the_claims(node, server, tmp_path):
    server.put("resourceslices", slice_object(device("gpu-0", type="gpu", uuid=GPU_UUID)))
    server.put("resourceclaims", claim_object(("gpu", "gpu-0")))
    found = finding(claims, CHECK, gathered(node, server, tmp_path))
    assert found == ("ok", None, "1 devices are in this node's ResourceSlices; 1 of 1 claims are read")


def test_an_api_server_that_denies_one_of_them_costs_only_that(node, server, tmp_path):
    server.put("resourceslices", slice_object(device("gpu-0", type="gpu", uuid=GPU_UUID)))
    server.add_fault(ApiFault("get", "resourceclaims", times=-1, status=403))
    examined = gathered(node, server, tmp_path)
    assert [each.reason for each in findings(claims, CHECK, examined)] == [ApiReason.FORBIDDEN]
    assert len(examined.dra.knowledge.devices) == 1
