"""A node whose GPUs are given out through ResourceClaims: the exporter but its server, a kubelet and an API server."""

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path

from exporter import cli
from exporter.node.attribution.kubelet.client import Kubelet
from exporter.node.config import node_config
from exporter.node.devices.counters.counters_file import parse
from exporter.node.dra.reader import DraReader
from exporter.node.service_account.account import ServiceAccount
from exporter.node.simulation.source import SimulatedSource
from simulators.api_server import SimulatedApiServer
from simulators.kubelet import SimulatedKubelet
from tests.exporter.node.dcgm.fixture import document, gpu_spec, instance_spec
from tests.exporter.node.scenario_flow import EPOCH, config_of, flow_over, series_of
from tests.waiting import until

DRIVER = "gpu.nvidia.com"
NODE = "node-1"
UTIL, MEMORY = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"
INFO, PODS = "gpugauge_allocation_info", "gpugauge_device_allocated_pods"
COUNTERS = parse(f"{UTIL}, gauge, x\n{MEMORY}, gauge, x\n", "counters.csv")
VERSIONS = ("v1", "v1beta2", "v1beta1")


def uuid(number):
    return f"GPU-{number:08x}-2d0a-4c1e-9d34-0a1b2c3d4e5f"


class DraNode:
    """Makes collections: two whole GPUs and one with MIG devices. `rows` are what the kubelet lists."""

    def __init__(self, folder, *flags, version="v1", node=NODE, faults=(), **variables):
        scenario = folder / "scenario.json"
        whole = [gpu_spec(n, uuid=uuid(n), fields={"203": 80 + n}) for n in range(2)]
        split = gpu_spec(2, uuid=uuid(2), mig=True, instances=[instance_spec(gi) for gi in (7, 8)])
        scenario.write_text(json.dumps(document(*whole, split)))
        (folder / "token").write_text("secret")
        self.api = SimulatedApiServer(token="secret", bookmark_seconds=0.1)
        self.version = version
        for kind in ("resourceslices", "resourceclaims"):
            self.api.serve(f"/apis/resource.k8s.io/{version}/{kind}")
        for fault in faults:
            self.api.add_fault(fault)
        self.api.start()
        self.rows = []
        self.server = SimulatedKubelet(folder / "kubelet.sock", lambda: self.rows, seed=1)
        self.server.start()
        self.kubelet = Kubelet(folder / "kubelet.sock")
        arguments = cli.parse(["node", "--kubernetes", *flags], variables)
        self.config = node_config(arguments, {"NODE_NAME": node})
        self.dra = None
        if self.config.dra:
            self.dra = DraReader(ServiceAccount(self.api.url, folder), self.config.style.hostname)
            self.dra.start()
        source = SimulatedSource(config_of("simulated", COUNTERS, scenario=str(scenario)), lambda: EPOCH)
        self.flow = flow_over(source, self.kubelet, COUNTERS, style=self.config.style, dra=self.dra)

    def close(self):
        self.flow.pipeline.close()
        self.server.stop()
        self.api.stop()

    def claim(self, pod, *devices, namespace="team"):
        """Let the kubelet list devices of claims for a pod: `<device>@<claim>`."""
        self.rows.append((namespace, pod, "main", DRIVER, [f"{NODE}/{each}" for each in devices]))

    def exposed(self):
        """Every series of the next collection: (name, labels, value)."""
        series = series_of(self.flow.exposition().text)
        return [(name, dict(labels), value) for (name, labels), value in series.items()]

    def labels(self, metric):
        """The labels of the series of a metric in the next collection, by GPU and GPU instance."""
        found = [labels for name, labels, _ in self.exposed() if name == metric]
        return {key(labels): labels for labels in found}

    def settled(self, ready):
        """The series of the first collection that is as a test wants it."""
        found = []

        def is_ready():
            found[:] = self.exposed()
            return ready(found)

        until(is_ready)
        return found

    def problems(self):
        """(kind of object, reason) of what cannot be read."""
        return problems_of(self.exposed())


def problems_of(series):
    kinds = {"resourceslices", "resourceclaims"}
    found = {(labels["source"], labels["reason"]) for name, labels, _ in series if name == "gpugauge_source_problem"}
    up = {(labels["source"], value) for name, labels, value in series if name == "gpugauge_source_up"}
    assert {kind for kind, value in up if kind in kinds and not value} == {kind for kind, _ in found} & kinds
    return {(kind, reason) for kind, reason in found if kind in kinds}


def key(labels):
    """(number of the GPU, id of the GPU instance or none)."""
    return int(labels["UUID"][4:12], 16), labels.get("GPU_I_ID", "")


def users(series):
    """The pods of each device."""
    found = {}
    for name, labels, _ in series:
        if name == INFO:
            found.setdefault(key(labels), set()).add(labels["gpu_pod"])
    return found


def pods(series):
    """How many pods each device has that can be allocated, where that is known."""
    return {key(labels): value for name, labels, value in series if name == PODS}


@contextmanager
def dra_node(*flags, **more):
    # The path of a socket has at most 107 bytes (unix(7)); pytest's own folders can be longer.
    with tempfile.TemporaryDirectory(prefix="dra-") as folder:
        made = DraNode(Path(folder), *flags, **more)
        try:
            yield made
        finally:
            made.close()
