"""Pods from the kubelet's own HTTPS port: the same series, by polling, with the kubelet's certificate verified."""

import ssl

import pytest
import trustme

from exporter import cli
from exporter.config import ConfigError
from exporter.node.config import node_config
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from tests.exporter.node.pod_node import INFO, UTIL, pod, pod_node, uuid
from tests.waiting import until

STATIC = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def kubelet():
    """A server with a certificate for 127.0.0.1, and its authority."""
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    server = SimulatedApiServer(token="secret")
    server.start()
    server.serve("/pods")
    server._server.socket = tls.wrap_socket(server._server.socket, server_side=True)
    server.authority, server.https = authority, server.url.replace("http:", "https:")
    yield server
    server.stop()


def flags(kubelet, *more):
    return "--pod-metadata=kubelet", f"--kubelet-url={kubelet.https}", *more


def test_the_kubelets_pods_give_the_same_series_and_no_other_server_is_asked(tmp_path, kubelet):
    kubelet.authority.cert_pem.write_to_path(tmp_path / "kubelet.crt")
    kubelet.put("pods", pod("llm-0", owner=("StatefulSet", "llm"), labels={"app": "llm"}))
    kubelet.put("pods", pod("job-1", phase="Succeeded"))
    kubelet.put("pods", pod("static-node-1", uid=STATIC))
    more = (f"--kubelet-ca-file={tmp_path / 'kubelet.crt'}", "--pod-labels=app")
    with pod_node(tmp_path, *flags(kubelet, *more), api=kubelet) as node:
        node.wait_for("uid-of-llm-0")
        node.kubelet.rows = [("llm-0", uuid(0)), ("job-1", uuid(1))]
        (info,) = node.labels(INFO)
        assert (info["gpu_pod_uid"], info["workload"], info["workload_type"]) == ("uid-of-llm-0", "llm", "statefulset")
        assert [labels.get("app", "") for labels in node.labels(UTIL)] == ["llm", ""]
        assert {each.cgroup_uid for each in node.known.kept} >= {STATIC}
    assert {(each.path, each.watch) for each in kubelet.requests} == {("/pods", False)}
    assert {each.authorization for each in kubelet.requests} == {"Bearer secret"}


def problem(node, reason):
    return until(lambda: [labels for name, labels, _ in node.exposed()
                          if name == "gpugauge_source_problem" and labels["reason"] == reason])  # fmt: skip


def test_a_certificate_of_somebody_else_is_refused_unless_that_is_turned_off(tmp_path, kubelet):
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
    with pod_node(tmp_path, *flags(kubelet), api=kubelet) as node:
        problem(node, "unreachable")
        assert "certificate verify failed" in node.known.state.problem[1]
        assert kubelet.requests == ()


def test_without_verification_no_authority_is_needed(tmp_path, kubelet):
    with pod_node(tmp_path, *flags(kubelet, "--kubelet-insecure-tls"), api=kubelet) as node:
        kubelet.put("pods", pod("a"))
        until(lambda: node.known.kept is not None)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (ApiFault("list", status=403, times=9), "forbidden"),
        (ApiFault("list", status=401, times=9), "unauthorized"),
        (ApiFault("list", garbage=b"<html>", times=9), "bad_response"),
    ],
)
def test_a_failure_has_a_reason_and_ends(tmp_path, kubelet, fault, reason):
    kubelet.add_fault(fault)
    kubelet.put("pods", pod("a"))
    with pod_node(tmp_path, *flags(kubelet, "--kubelet-insecure-tls"), api=kubelet) as node:
        problem(node, reason)
        assert node.known.state.problem[1].startswith("pods cannot be read: ")
        kubelet.clear_faults()
        node.wait_for("uid-of-a")


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({"NODE_IP": "10.0.0.7", "NODE_NAME": "n"}, "https://10.0.0.7:10250"),
        ({"NODE_IP": "fd00::7"}, "https://[fd00::7]:10250"),
        ({"NODE_NAME": "n"}, "https://n:10250"),
    ],
)
def test_the_kubelet_is_at_the_nodes_own_address(environment, url):
    config = node_config(cli.parse(["node", "--kubernetes", "--pod-metadata=kubelet"], {}), environment)
    assert (config.pods.source, config.pods.kubelet.url, config.pods.kubelet.verify) == ("kubelet", url, True)


@pytest.mark.parametrize(
    "text", ["http://n:10255", "n:10250", "https://", "https://n:x", "https://n/pods", "https://n?x"]
)
def test_an_address_that_cannot_be_one_is_an_error(text):
    with pytest.raises(ConfigError, match=r"--kubelet-url: .* is not https://HOST:PORT"):
        cli.parse(["node", "--kubelet-url", text], {})
