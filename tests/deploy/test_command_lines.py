"""The manifests' command lines start the programs, and what they promise about probes, ports and rights is kept."""

import re
import time

import pytest

from tests.deploy.api_server import api_server
from tests.deploy.image import environment
from tests.deploy.manifests import container, one
from tests.deploy.running import free_port, running

NODE_NAME = "node-7"


def arguments(only, port):
    """The container's arguments with another address: the declared port may be taken on this machine."""
    declared = only["ports"][0]["containerPort"]
    assert f"--address=:{declared}" in only["args"]
    return [arg.replace(f"--address=:{declared}", f"--address=127.0.0.1:{port}") for arg in only["args"]]


def given(only):
    """The environment of the image and of the manifest."""
    own = {each["name"]: NODE_NAME for each in only.get("env", []) if "valueFrom" in each}
    plain = {each["name"]: each["value"] for each in only.get("env", []) if "value" in each}
    return {**environment(), **own, **plain}


def probes(only):
    return {kind: only[f"{kind}Probe"]["httpGet"]["path"] for kind in ("liveness", "readiness")}


@pytest.fixture(scope="module")
def node():
    only, port = container("DaemonSet", "gpugauge-node"), free_port()
    with running([*arguments(only, port), "--source=simulated"], given(only), port) as started:
        yield started, only


@pytest.fixture(scope="module")
def watcher():
    only, port = container("Deployment", "gpugauge-cluster"), free_port()
    with (
        api_server() as (url, asked),
        running([*arguments(only, port), f"--api-server={url}"], given(only), port) as started,
    ):
        yield started, only, asked


def test_the_node_exporter_serves_devices_under_the_nodes_name(node):
    started, _ = node
    page = started.until("/metrics", "gpugauge_device_info{")
    (host,) = set(re.findall(r'^gpugauge_device_info\{.*hostname="([^"]*)"', page, re.MULTILINE))
    assert host == NODE_NAME
    assert "DCGM_FI_DEV_FB_USED{" in page


def test_the_node_exporter_asks_the_kubelet_and_says_that_it_is_not_there(node):
    started, _ = node
    page = started.until("/metrics", "gpugauge_source_up{")
    assert re.search(r'^gpugauge_source_up\{.*source="kubelet".*\} 0(\.0)?$', page, re.MULTILINE)


def test_the_node_exporters_probes_answer(node):
    started, only = node
    for path in probes(only).values():
        started.until(path)


def test_the_node_exporter_stops_in_good_order():
    only, port = container("DaemonSet", "gpugauge-node"), free_port()
    grace = one("DaemonSet", "gpugauge-node")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    with running([*arguments(only, port), "--source=simulated"], given(only), port) as started:
        started.until("/livez")
        began = time.monotonic()
        assert started.stop() == 0
        assert time.monotonic() - began < grace


def test_the_watcher_asks_for_what_it_may_and_may_what_it_asks_for(watcher):
    started, _, asked = watcher
    started.until("/metrics", "gpugauge_build_info{")
    allowed = {
        (verb, group, resource)
        for rule in one("ClusterRole", "gpugauge-cluster")["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    deadline = time.monotonic() + 20
    wanted = {each for each in allowed if each[0] != "get"}
    while asked.requests != wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    assert asked.requests == wanted
    assert {verb for verb, _, _ in allowed} == {"get", "list", "watch"}


def test_the_watchers_probes_answer(watcher):
    started, only, _ = watcher
    for path in probes(only).values():
        started.until(path)
