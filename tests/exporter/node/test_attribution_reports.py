"""What users of GPU exporters reported, as tests: attribution. A test is named after the number of its report.

Each runs the whole node exporter but its server, over the compiled fake libdcgm and a kubelet that is a gRPC server.
"""

import tempfile
from itertools import count
from pathlib import Path

import pytest

from exporter.node.attribution.kubelet.client import Kubelet
from exporter.node.devices.counters.counters_file import parse
from simulators.kubelet import SimulatedKubelet
from tests.exporter.node.dcgm.fixture import EngineFixture, document, gpu_spec, instance_spec
from tests.exporter.node.dcgm.source_parts import DiscoveryTimes
from tests.exporter.node.scenario_flow import flow_over, series_of

GPU, MIG, DRA = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "gpu.nvidia.com"
COUNTERS = parse("DCGM_FI_DEV_POWER_USAGE, gauge, x\nDCGM_FI_DEV_GPU_UTIL, gauge, x\n", "counters.csv")
UTIL, POWER = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"
PODS, UNMATCHED = "gpugauge_device_allocated_pods", "gpugauge_unmatched_device_ids"


def uuid(number):
    return f"GPU-{number}f9bdf1c-2d0a-4c1e-9d34-0a1b2c3d4e5f"


U0, U1, U9 = uuid(0), uuid(1), uuid(9)


class Node:
    """A node with one engine and one kubelet; `exposed` makes one collection."""

    def __init__(self, folder, *gpus, events=()):
        self.engine = EngineFixture(folder, document(*gpus, events=list(events)))
        self.rows = []
        self.server = SimulatedKubelet(folder / "kubelet.sock", lambda: self.rows, seed=1)
        self.server.start()
        self.kubelet = Kubelet(folder / "kubelet.sock")
        self.libraries = []
        fields = (field.id for field in COUNTERS.wanted)
        source = self.engine.source(*fields, load=lambda path: self._loaded(DiscoveryTimes(path, self.engine)))
        self.flow = flow_over(source, self.kubelet, COUNTERS, lambda: self.engine.now)
        self.seconds = count(1)

    def _loaded(self, library):
        self.libraries.append(library)
        return library

    @property
    def lookups(self):
        """How often the driver was asked what its devices are, among them the UUIDs of MIG devices."""
        return sum(len(library.times) for library in self.libraries)

    def close(self):
        self.kubelet.close()
        self.server.stop()
        self.engine.close()

    def list(self, resource=GPU, **ids_by_pod):
        """Let the kubelet list these pods, whose names have `_` for `-`."""
        self.rows = [("team", pod.replace("_", "-"), "main", resource, ids) for pod, ids in ids_by_pod.items()]

    def exposed(self):
        """Every series of the next collection, one second later: (name, labels, value)."""
        self.engine.at(float(next(self.seconds)))
        series = series_of(self.flow.exposition().text)
        return [(name, dict(labels), value) for (name, labels), value in series.items()]


@pytest.fixture
def node():
    made = []
    # The path of a socket has at most 107 bytes (unix(7)); pytest's own folders can be longer.
    with tempfile.TemporaryDirectory(prefix="node-") as folder:

        def make(*gpus, **more):
            made.append(Node(Path(folder), *gpus, **more))
            return made[-1]

        yield make
        for each in made:
            each.close()


def gpu(number, **more):
    return gpu_spec(number, uuid=uuid(number), fields={"155": 70.0, "203": 80}, **more)


def of(exposed, metric):
    return [(labels, value) for name, labels, value in exposed if name == metric]


def pairs(exposed):
    """Every (UUID, pod) of the allocations."""
    return {(labels["UUID"], labels["gpu_pod"]) for labels, _ in of(exposed, "gpugauge_allocation_info")}


def allocated_pods(exposed):
    return {labels["UUID"]: value for labels, value in of(exposed, PODS)}


def test_report_1_replicas_match_their_gpu_and_the_id_of_no_gpu_is_counted(node):
    made = node(gpu(0))
    made.list(train=(f"{U0}::0",), infer=(f"{U0}::1",), odd=(f"{U9}::0",))
    exposed = made.exposed()
    assert pairs(exposed) == {(U0, "train"), (U0, "infer")}
    assert [(labels["reason"], value) for labels, value in of(exposed, UNMATCHED)] == [("no_such_gpu", 1)]
    assert allocated_pods(exposed) == {U0: 2}


def test_report_2_all_four_pods_of_a_shared_gpu_are_named_at_every_collection_and_none_as_the_only_one(node):
    made = node(gpu(0))
    made.list(**{f"p{n}": (f"{U0}::{n}",) for n in range(4)})
    for _ in range(20):
        exposed = made.exposed()
        assert pairs(exposed) == {(U0, f"p{n}") for n in range(4)}
        assert {labels["pod"] for labels, _ in of(exposed, UTIL)} == {""}


def test_report_3_the_power_of_a_shared_gpu_appears_once(node):
    made = node(gpu(0))
    made.list(**{f"p{n}": (f"{U0}::{n}",) for n in range(4)})
    exposed = made.exposed()
    assert [value for _, value in of(exposed, POWER)] == [70]
    per_pod = {name for name, labels, _ in exposed if labels.get("gpu_pod", "").startswith("p")}
    assert per_pod == {"gpugauge_allocation_info", "gpugauge_allocation_replicas"}


def test_report_4_two_pods_on_a_gpu_that_is_not_shared_are_reported_and_none_is_chosen(node):
    made = node(gpu(0))
    made.list(job_1=(U0,), svc_1=(U0,))
    exposed = made.exposed()
    assert of(exposed, "gpugauge_devices_with_conflicting_allocations") == [({"node": "node-1"}, 1)]
    assert {labels["pod"] for labels, _ in of(exposed, UTIL)} == {""}
    made.list(svc_1=(U0,))
    exposed = made.exposed()
    assert of(exposed, "gpugauge_devices_with_conflicting_allocations") == []
    assert {labels["pod"] for labels, _ in of(exposed, UTIL)} == {"svc-1"}
    made.list(web=())
    assert allocated_pods(made.exposed()) == {U0: 0}


def test_report_5_a_mig_device_is_attributed_as_soon_as_its_uuid_is_known_and_stays_so(node):
    blank = {"event": "samples", "for": 2.5, "sentinel": "blank", "fields": ["54"], "devices": [f"{U0}/7/0"]}
    made = node(gpu(0, mig=True, instances=[instance_spec(7)]), gpu(1), events=[blank])
    made.rows = [
        ("team", "m1", "main", MIG, ("MIG-7-0",)),
        ("team", "m2", "main", MIG, ("MIG-bbbb",)),
        ("team", "f1", "main", GPU, (U1,)),
    ]
    found = [made.exposed() for _ in range(10)]
    named = [pairs(exposed) for exposed in found]
    assert named[0] == {(U1, "f1")}
    assert named[-1] == {(U0, "m1"), (U1, "f1")}
    assert all((U1, "f1") in each for each in named)
    assert named == sorted(named, key=len)  # once attributed, always
    assert named.index({(U0, "m1"), (U1, "f1")}) <= 6  # the first pause of an engine's discovery is 5 s
    assert [value for _, value in of(found[-1], UNMATCHED)] == [1]


def test_report_5_a_mig_device_whose_uuid_is_never_known_costs_few_lookups_and_nothing_else(node):
    blank = {"event": "samples", "sentinel": "blank", "fields": ["54"], "devices": [f"{U0}/8/0"]}
    made = node(gpu(0, mig=True, instances=[instance_spec(7), instance_spec(8)]), gpu(1), events=[blank])
    made.rows = [
        ("team", "m1", "main", MIG, ("MIG-7-0",)),
        ("team", "m2", "main", MIG, ("MIG-8-0", "MIG-bbbb")),
        ("team", "f1", "main", GPU, (U1,)),
    ]
    for _ in range(100):
        exposed = made.exposed()
        assert pairs(exposed) == {(U0, "m1"), (U1, "f1")}
        assert [(labels["reason"], value) for labels, value in of(exposed, UNMATCHED)] == [("no_such_instance", 2)]
    assert 2 <= made.lookups <= 10
    # Of the device that may be meant nothing is said; the other one keeps its pod.
    states = {labels.get("GPU_I_ID"): value for labels, value in of(exposed, PODS)}
    assert states == {"7": 1, None: 1}


def test_report_9_pods_that_share_a_claim_are_all_named_as_with_the_device_plugin(node):
    made = node(gpu(0), gpu(1))
    made.rows = [("team", pod, "main", DRA, ("node-1/gpu-0@shared",)) for pod in ("d1", "d2")]
    exposed = made.exposed()
    assert pairs(exposed) == {(U0, "d1"), (U0, "d2")}
    info = of(exposed, "gpugauge_allocation_info")
    assert {labels["sharing"] for labels, _ in info} == {"dra-shared"}
    made.list(d1=(U0,))
    assert {frozenset(labels) for labels, _ in info} == {
        frozenset(labels) for labels, _ in of(made.exposed(), "gpugauge_allocation_info")
    }
    made.rows = [("team", "d1", "main", DRA, ("node-1/gpu-0",))]
    exposed = made.exposed()
    assert {labels["UUID"]: labels["pod"] for labels, _ in of(exposed, UTIL)} == {U0: "d1", U1: ""}
    assert allocated_pods(exposed) == {U0: 1, U1: 0}


def test_report_9_a_claim_that_is_not_resolved_is_counted_and_costs_no_series_of_a_gpu(node):
    made = node(gpu(0), gpu(1))
    made.rows = [("team", pod, "main", DRA, ("node-1/first@shared",)) for pod in ("d1", "d2")]
    exposed = made.exposed()
    assert len(of(exposed, UTIL)) == len(of(exposed, POWER)) == 2
    assert [(labels["reason"], value) for labels, value in of(exposed, UNMATCHED)] == [("unresolved_claim", 1)]
    assert allocated_pods(exposed) == {}


def test_report_9_a_mig_device_that_was_made_for_a_claim_is_found_among_those_of_its_gpu(node):
    made = node(gpu(0, mig=True, instances=[instance_spec(7)]), gpu(1))
    made.rows = [("team", "m1", "main", DRA, ("node-1/gpu-0-mig-1g10gb-19-4",))]
    assert pairs(made.exposed()) == {(U0, "m1")}


def test_report_75_no_gpu_is_called_unallocated_where_hami_may_have_put_the_pod_on_it(node):
    made = node(*(gpu(number) for number in range(8)))
    slots = [f"{uuid(number)}-{n}" for number, share in ((0, 5), (1, 2), (2, 1)) for n in range(share)]
    made.list(train=slots)
    exposed = made.exposed()
    assert allocated_pods(exposed) == {uuid(0): 1, uuid(1): 1, uuid(2): 1}
    assert {labels["sharing"] for labels, _ in of(exposed, "gpugauge_allocation_info")} == {"fraction"}
    assert {labels["pod"] for labels, _ in of(exposed, UTIL)} == {""}


def test_report_32_a_pod_with_several_replicas_of_a_gpu_has_one_series_for_each_container(node):
    made = node(gpu(0))
    made.rows = [("team", "p", "c", GPU, (f"{U0}::5", f"{U0}::19")), ("team", "p", "d", GPU, (f"{U0}::7",))]
    exposed = made.exposed()  # fails where a series is there twice
    replicas = {labels["gpu_container"]: value for labels, value in of(exposed, "gpugauge_allocation_replicas")}
    assert replicas == {"c": 2, "d": 1}
    assert len(of(exposed, "gpugauge_allocation_info")) == 2
    assert allocated_pods(exposed) == {U0: 1}
    assert len(of(exposed, UTIL)) == 1
