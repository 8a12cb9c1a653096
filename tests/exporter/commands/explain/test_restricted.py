"""`gpugauge explain` with credentials that show only a part of the cluster, and a watcher that shows the rest."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from exporter.cli import parse
from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.commands.explain.command import run
from exporter.config import ConfigError
from simulators import objects
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from tests.exporter.cluster.fixture import GPUS, NOW

GPU = "nvidia.com/gpu"
FULL = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s)."
METRICS = """\
gpugauge_pending_pod_reason{namespace="team-a",gpu_namespace="team-a",gpu_pod="p",reason="fragmentation"} 1
gpugauge_pending_pod_reason{namespace="team-a",gpu_namespace="team-a",gpu_pod="odd",reason="\\x1b[31m"} 1
gpugauge_node_gpu_allocatable{node="n1",resource="nvidia_com_gpu",model="L4"} 8
gpugauge_node_gpu_allocatable{node="n2",resource="nvidia_com_gpu",model="L4"} 8
gpugauge_node_gpu_free{node="n1",resource="nvidia_com_gpu",model="L4"} 2
gpugauge_node_gpu_free{node="n2",resource="nvidia_com_gpu",model="L4"} 3
gpugauge_node_gpu_schedulable{node="n1"} 1
gpugauge_node_gpu_schedulable{node="n2"} 0
"""


@pytest.fixture
def server():
    simulated = SimulatedApiServer()
    simulated.serve("/api/v1/events")
    simulated.start()
    simulated.put("nodes", objects.node("n1", {GPU: 8}, objects.gpu_labels("L4", 8)))
    given = objects.unschedulable(objects.pod("p", "team-a", {GPU: 4}, created=NOW - 600), FULL, NOW - 600)
    simulated.put("pods", given)
    simulated.put("pods", objects.running(objects.pod("other", "team-b", {GPU: 6}), "n1"))
    yield simulated
    simulated.stop()


def forbid(server, *paths):
    for path in paths:
        server.add_fault(ApiFault("list", path=path, times=99, status=403))


def forbid_the_cluster(server):
    """Leave what is in one namespace."""
    forbid(server, *(path for kind in object_kinds(GPUS) for path in kind.paths))


@contextmanager
def watcher(body=METRICS, status=200):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    serving = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{serving.server_port}"
    finally:
        serving.shutdown()
        serving.server_close()
        thread.join()


def explained(server, name="team-a/p", *flags):
    return run(parse(["explain", name, "--api-server", server.url, *flags], {}), lambda: NOW)


def facts(server, name="team-a/p", *flags):
    return json.loads(explained(server, name, "--json", *flags))


def test_with_the_rights_of_one_namespace_the_pod_its_events_and_its_message_count(server):
    forbid_the_cluster(server)
    event = {
        "metadata": {"name": "e", "namespace": "team-a", "creationTimestamp": objects.stamp(NOW - 60)},
        "involvedObject": {
            "kind": "Pod",
            "namespace": "team-a",
            "name": "p",
            "uid": objects.uid_of("pod", "team-a", "p"),
        },
        "reason": "TriggeredScaleUp",
    }
    server.put("events", event)
    found = facts(server)
    assert found["reason"] == "scaling_up"
    assert found["nodes"] == []
    assert found["not_seen"] == ["pods of other namespaces", "nodes", "events of other namespaces"]
    text = explained(server)
    assert text.endswith(
        "\nNot seen with these credentials: pods of other namespaces, nodes, events of other namespaces.\n"
        "What follows from them is missing above.\n"
    )


def test_without_the_nodes_the_message_decides(server):
    forbid(server, "/api/v1/nodes")
    found = facts(server)
    assert (found["reason"], found["nodes"], found["not_seen"]) == ("insufficient_gpu", [], ["nodes"])


def test_without_the_pods_of_others_no_free_gpus_are_claimed_and_labels_of_nodes_still_count(server):
    given = objects.unschedulable(objects.pod("q", "team-a", created=NOW - 600), FULL, NOW - 600)
    given["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": "A100"}
    server.put("pods", given)
    forbid(server, "/api/v1/pods")
    found = facts(server, "team-a/q")
    assert found["nodes"] == []
    assert [each["mistake"] for each in found["mistakes"]] == ["product_of_no_node"]
    assert found["not_seen"] == ["pods of other namespaces"]
    with pytest.raises(ConfigError, match="name one pod as NAMESPACE/POD"):
        run(parse(["explain", "--api-server", server.url], {}), lambda: NOW)


def test_everything_is_seen_where_everything_may_be_read(server):
    found = facts(server)
    assert found["not_seen"] == []
    assert found["nodes"] == [{"finding": "2 of 8 nvidia.com/gpu free: too few", "names": ["n1"]}]


def test_a_namespace_that_may_not_be_read_is_one_message(server):
    forbid_the_cluster(server)
    forbid(server, "/api/v1/namespaces/team-b/pods")
    with pytest.raises(ConfigError, match="the pods of namespace team-b may not be read"):
        explained(server, "team-b/other")
    with pytest.raises(ConfigError, match="node n1: the nodes may not be read"):
        explained(server, "node/n1")


def test_of_a_node_whose_pods_may_not_be_read_the_rest_is_said(server):
    forbid(server, "/api/v1/pods")
    found = facts(server, "node/n1")
    assert {each["state"] for each in found["links"]} == {"unknown", "intact"}
    assert found["not_seen"] == ["pods"]


def test_a_watcher_gives_the_reason_and_the_free_gpus(server):
    forbid_the_cluster(server)
    with watcher() as url:
        text = explained(server, "team-a/p", "--watcher", url)
        found = facts(server, "team-a/p", "--watcher", f"{url}/metrics")
    assert text.startswith("team-a/p: fragmentation\n")
    assert "\nThe watcher, which sees all namespaces, gives the reason.\nGPUs of the nodes:\n" in text
    assert found["capacity_by_watcher"] == [
        {
            "model": "L4",
            "resource": "nvidia_com_gpu",
            "nodes": 2,
            "allocatable": 16,
            "free": 5,
            "schedulable": 2,
            "largest_free_block": 2,
        }
    ]


def test_a_watcher_without_a_series_of_the_pod_does_not_change_the_reason(server):
    forbid_the_cluster(server)
    with watcher("") as url:
        text = explained(server, "team-a/p", "--watcher", url)
    assert text.startswith("team-a/p: insufficient_gpu\n")
    assert "The watcher, which sees all namespaces, has no series of this pod.\nNo node offers GPUs.\n" in text


@pytest.mark.parametrize(("body", "status"), [("nothing", 503), ("{} not metrics", 200), (None, 0)])
def test_a_watcher_that_cannot_be_asked_costs_its_part_alone(server, body, status):
    forbid_the_cluster(server)
    with watcher(body or "", status or 200) as url:
        address = url if body is not None else "http://127.0.0.1:1"
        found = facts(server, "team-a/p", "--watcher", address)
    assert found["reason"] == "insufficient_gpu"
    assert "the watcher's metrics (--watcher: http://127.0.0.1:" in found["not_seen"][-1]


def test_a_standby_is_named_as_such_and_one_that_leads_is_used(server):
    forbid_the_cluster(server)
    for leads, seen in ((0, False), (1, True)):
        with watcher(f"gpugauge_leader {leads}\n") as url:
            found = facts(server, "team-a/p", "--watcher", url)
        assert ("is a standby" in found["not_seen"][-1]) is not seen
        assert (found["capacity_by_watcher"] is None) is not seen


def test_a_watcher_is_not_asked_where_nothing_is_missing(server):
    assert facts(server, "team-a/p", "--watcher", "http://127.0.0.1:1")["not_seen"] == []
