"""The command lines of the manifests start the programs; probes, ports and rights are as the manifests state."""

import re
import time

import pytest

from tests.deploy.api_server import api_server
from tests.deploy.image import environment
from tests.deploy.manifests import container, one
from tests.deploy.running import running

pytestmark = pytest.mark.process

NODE_NAME = "node-7"


def arguments(only):
    """The container's arguments with a port that the kernel chooses: the declared one may be in use here."""
    declared = only["ports"][0]["containerPort"]
    assert f"--address=:{declared}" in only["args"]
    return [arg.replace(f"--address=:{declared}", "--address=127.0.0.1:0") for arg in only["args"]]


def given(only):
    """The environment of the image and of the manifest."""
    own = {each["name"]: NODE_NAME for each in only.get("env", []) if "valueFrom" in each}
    plain = {each["name"]: each["value"] for each in only.get("env", []) if "value" in each}
    return {**environment(), **own, **plain}


def probes(only):
    return {kind: only[f"{kind}Probe"]["httpGet"]["path"] for kind in ("liveness", "readiness")}


@pytest.fixture(scope="module")
def node():
    only = container("DaemonSet", "gpugauge-node")
    with running([*arguments(only), "--source=simulated"], given(only)) as started:
        yield started, only


@pytest.fixture(scope="module")
def watcher():
    only = container("Deployment", "gpugauge-cluster")
    with (
        api_server() as (url, recorded),
        running([*arguments(only), f"--api-server={url}"], given(only)) as started,
    ):
        yield started, only, recorded


def test_the_node_exporter_serves_devices_under_the_nodes_name(node):
    started, _ = node
    exposition = started.until("/metrics", "gpugauge_device_info{")
    (host,) = set(re.findall(r'^gpugauge_device_info\{.*node="([^"]*)"', exposition, re.MULTILINE))
    assert host == NODE_NAME
    assert "DCGM_FI_DEV_FB_USED{" in exposition


def test_the_node_exporter_reads_the_kubelet_and_exposes_that_there_is_none(node):
    started, _ = node
    exposition = started.until("/metrics", "gpugauge_source_up{")
    assert re.search(r'^gpugauge_source_up\{.*source="kubelet".*\} 0(\.0)?$', exposition, re.MULTILINE)


def test_the_node_exporters_probes_answer(node):
    started, only = node
    for path in probes(only).values():
        started.until(path)


def test_the_node_exporter_ends_gracefully_within_its_grace_period():
    only = container("DaemonSet", "gpugauge-node")
    grace = one("DaemonSet", "gpugauge-node")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    with running([*arguments(only), "--source=simulated"], given(only)) as started:
        started.until("/livez")
        began = time.monotonic()
        assert started.stop() == 0
        assert time.monotonic() - began < grace


def test_the_watcher_requests_exactly_what_its_role_allows(watcher):
    started, _, recorded = watcher
    started.until("/metrics", "gpugauge_build_info{")
    allowed = {
        (verb, group, resource)
        for rule in one("ClusterRole", "gpugauge-cluster")["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    deadline = time.monotonic() + 60
    while recorded.kinds != allowed and time.monotonic() < deadline:
        time.sleep(0.1)
    assert recorded.kinds == allowed


def test_the_watchers_probes_answer(watcher):
    started, only, _ = watcher
    for path in probes(only).values():
        started.until(path)
