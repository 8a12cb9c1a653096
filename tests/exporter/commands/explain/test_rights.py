"""`gpugauge explain` asks the API server for exactly what the table of permissions says."""

import pytest

from exporter.cli import parse
from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.cluster.kubernetes.watching.permissions import EXPLAINED
from exporter.commands.explain.command import run
from simulators import objects
from simulators.api_server import SimulatedApiServer
from tests.exporter.cluster.fixture import GPUS, NOW

PATHS = {path for part in EXPLAINED for name in part.resources for path in part.paths(name)}
GPU = "nvidia.com/gpu"


@pytest.fixture
def server():
    simulated = SimulatedApiServer()
    for path in {path for kind in object_kinds(GPUS) for path in kind.paths}:
        simulated.serve(path)
    simulated.start()
    simulated.put("nodes", objects.node("n1", {GPU: 8}, objects.gpu_labels("L4", 8)))
    simulated.put("pods", objects.pod("p", "team-a", {GPU: 4}, created=NOW - 600))
    yield simulated
    simulated.stop()


@pytest.mark.parametrize("name", [[], ["team-a/p"], ["node/n1"]], ids=["all", "pod", "node"])
def test_explain_lists_what_its_role_allows_and_does_nothing_else(server, name):
    run(parse(["explain", *name, "--api-server", server.url], {}), lambda: NOW)
    assert {request.path.replace("/namespaces/team-a/", "/") for request in server.requests} <= PATHS
    assert not [request for request in server.requests if request.watch]
    found = {request.path.rpartition("/")[2] for request in server.requests}
    assert found == {name for part in EXPLAINED for name in part.resources}
