"""The check of pod metadata."""

from dataclasses import replace

import pytest

from exporter.node.doctor import pods
from exporter.node.doctor.gather import gather
from exporter.node.doctor.reasons import DoctorReason
from exporter.node.service_account.account import ServiceAccount
from exporter.node.service_account.reasons import ApiReason
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from tests.exporter.node.doctor.nodes import config, examination, finding, findings
from tests.exporter.node.pod_node import GPU, pod

FLAGS = ("--kubernetes", "--pod-metadata=api", "--source=simulated")


@pytest.fixture
def server():
    started = SimulatedApiServer(token="secret")
    started.start()
    yield started
    started.stop()


def asked(node, server, *flags, **limits):
    """What is found where an API server is asked."""
    (node.folder / "token").write_text("secret")
    account = ServiceAccount(server.url, node.folder)
    return gather(replace(config(*(flags or FLAGS)), service_account=account), replace(node.access(), **limits)).pods


def test_where_it_is_off_nothing_is_asked_or_said(node, server):
    assert asked(node, server, "--kubernetes", "--source=simulated") is None
    assert server.requests == ()
    assert findings(pods, "pod metadata", examination(node)) == []


def test_pods_are_counted_and_those_that_ask_for_gpus(node, server):
    wants = {"containers": [{"name": "main", "resources": {"limits": {GPU: 1}}}]}
    for each in (pod("a", spec=wants), pod("b"), pod("c", spec=wants, phase="Succeeded"), pod("far", node="node-2")):
        server.put("pods", each)
    found = asked(node, server)
    assert finding(pods, "pod metadata", examination(node, pods=found)) == (
        "ok", None, "3 pods of this node are known; 1 of them ask for GPUs"
    )  # fmt: skip


def test_a_node_without_a_pod_has_another_name(node, server):
    found = asked(node, server)
    status, reason, detail = finding(pods, "pod metadata", examination(node, *FLAGS, pods=found))
    assert (status, reason, detail) == ("failed", DoctorReason.NO_POD_OF_NODE, "node-1")


def test_a_failure_has_its_reason(node, server):
    server.add_fault(ApiFault("list", status=403, times=99))
    status, reason, detail = finding(pods, "pod metadata", examination(node, pods=asked(node, server)))
    assert (status, reason) == ("failed", ApiReason.FORBIDDEN)
    assert detail == "pods cannot be read: the API server answered 403: ApiFault"


def test_an_api_server_that_does_not_answer_is_not_waited_for(node, server):
    server.add_fault(ApiFault("list", delay=float("inf")))
    try:
        found = finding(pods, "pod metadata", examination(node, pods=asked(node, server, check_seconds=0.5)))
    finally:
        server.clear_faults()
    assert found[:2] == ("failed", ApiReason.UNREACHABLE)
