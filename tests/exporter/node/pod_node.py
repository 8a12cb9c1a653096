"""A node whose pods an API server knows: the exporter but its server, over real HTTP and the devices of a scenario."""

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from exporter import cli
from exporter.gpu_names import GpuResources
from exporter.node.attribution.allocation import Allocation
from exporter.node.config import node_config
from exporter.node.devices.counters.counters_file import parse
from exporter.node.pods.sources import pods_of_node
from exporter.node.service_account.account import ServiceAccount
from exporter.node.simulation.source import SimulatedSource
from exporter.source import SourceError
from simulators.api_server import SimulatedApiServer
from tests.exporter.node.dcgm.fixture import document, gpu_spec
from tests.exporter.node.scenario_flow import EPOCH, config_of, flow_over, series_of
from tests.waiting import until

GPU = "nvidia.com/gpu"
NODE = "node-1"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
INFO = "gpugauge_allocation_info"
COUNTERS = parse(f"{UTIL}, gauge, x\nDCGM_FI_DRIVER_VERSION, label, x\n", "counters.csv")


def uuid(number):
    return f"GPU-{number:08x}-2d0a-4c1e-9d34-0a1b2c3d4e5f"


def pod(name, *, namespace="team", node=NODE, phase="Running", uid="", labels=None, annotations=None, **more):
    """A pod as the API server returns it, with one container `main`; `owner` is (kind, name)."""
    kind, owner_name = more.pop("owner", ("", ""))
    owners = [{"kind": kind, "name": owner_name, "controller": True}] if kind else []
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "registry.example/x", "env": [{"name": "A"}]}]}
    return {
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": uid or f"uid-of-{name}",
            "creationTimestamp": "2026-11-30T20:00:00Z",
            "labels": labels or {},
            "annotations": annotations or {},
            "ownerReferences": owners,
        },
        "spec": {**spec, **more.pop("spec", {})},
        "status": {"phase": phase, **more.pop("status", {})},
    }


@dataclass
class Rows:
    """A source of allocations that a test sets: (pod, id) or more exactly."""

    rows: list | None = field(default_factory=list)
    """None while the kubelet cannot be read."""
    name: str = "kubelet"

    def read(self):
        if self.rows is None:
            raise SourceError("unavailable", "the kubelet does not answer")
        return tuple(sorted(Allocation(*row) if len(row) > 2 else allocated(*row) for row in self.rows))

    def close(self): ...


def allocated(name, device_id, resource=GPU):
    return Allocation("team", name, "main", resource, device_id)


class PodNode:
    """Makes collections; `api` and `kubelet.rows` are what the node is asked about."""

    def __init__(self, folder, *flags, gpus=2, api=None, **more):
        """`api` is a server that is started already, which then answers for the kubelet."""
        scenario = folder / "scenario.json"
        devices = [gpu_spec(n, uuid=uuid(n), fields={"203": 80 + n}) for n in range(gpus)]
        scenario.write_text(json.dumps(document(*devices)))
        (folder / "token").write_text("secret")
        self.api = api or SimulatedApiServer(token="secret", bookmark_seconds=0.1)
        if api is None:
            self.api.start()
        self.kubelet = Rows()
        arguments = cli.parse(["node", "--kubernetes", *flags], {})
        config = replace(
            node_config(arguments, {"NODE_NAME": NODE}), service_account=ServiceAccount(self.api.url, folder)
        )
        pods = replace(config.pods, kubelet=replace(config.pods.kubelet, folder=folder))
        self.config = config = replace(config, pods=pods)
        source = SimulatedSource(config_of("simulated", COUNTERS, scenario=str(scenario)), lambda: EPOCH)
        self.known = None
        if config.pods.source != "off":
            self.known = pods_of_node(config.pods, config.service_account, config.style.hostname, GpuResources())
        self.flow = flow_over(source, self.kubelet, COUNTERS, known_pods=self.known, pods=config.pods, **more)

    def close(self):
        self.flow.pipeline.close()
        self.api.stop()

    def put(self, *pods):
        """Let the API server know these pods, and wait until the node does."""
        for each in pods:
            self.api.put("pods", each)
        self.wait_for(*(each["metadata"]["uid"] for each in pods))

    def wait_for(self, *uids):
        until(lambda: {*uids} <= {each.uid for each in self.known.kept or ()})

    def exposed(self):
        """Every series of the next collection: (name, labels, value)."""
        series = series_of(self.flow.exposition().text)
        return [(name, dict(labels), value) for (name, labels), value in series.items()]

    def labels(self, metric):
        """The labels of the series of a metric in the next collection, in the order of the GPUs."""
        found = [labels for name, labels, _ in self.exposed() if name == metric]
        return sorted(found, key=lambda labels: (labels.get("gpu", ""), labels.get("gpu_pod", "")))

    def values(self, metric):
        return {labels.get("UUID", ""): value for name, labels, value in self.exposed() if name == metric}


@contextmanager
def pod_node(folder, *flags, **more):
    made = PodNode(folder, *flags, **more)
    try:
        yield made
    finally:
        made.close()
