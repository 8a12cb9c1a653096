"""What users of GPU exporters reported, as tests: processes. A test is named after the number of its report.

Each runs the whole node exporter but its server, over the compiled fake libnvidia-ml, a folder like /proc, and links
as a kubelet makes them for logs.
"""

import msgspec
import pytest

from exporter.node.attribution.allocation import Allocation
from exporter.node.devices.counters.counters_file import parse
from exporter.node.nvml.source import NvmlSource
from exporter.node.pods.pod import NodeContainer, NodePod
from exporter.node.processes.container_log_links import ContainerLogLinks
from exporter.node.processes.proc_folder import ProcFolder
from exporter.node.processes.source import NodeProcessFinder
from exporter.node.service_account.watched_kind import ReflectorView
from exporter.node.simulation.processes import ProcessSpec
from exporter.node.simulation.scenario import Scenario, load
from tests.exporter.node.processes.node_files import HOST, ProcFiles, container_id, group, log_link, uid
from tests.exporter.node.scenario_flow import INTERVAL, FixedSource, config_of, flow_over, series_of

COUNTERS = parse(
    "DCGM_FI_DEV_POWER_USAGE, gauge, x\nDCGM_FI_DEV_GPU_UTIL, gauge, x\nDCGM_FI_DEV_FB_USED, gauge, x\n", "counters.csv"
)
MEMORY, SM, UNALLOCATED = (
    f"gpugauge_pod_gpu_{name}" for name in ("memory_used_bytes", "sm_utilization_ratio", "unallocated_use")
)
UNATTRIBUTED = "gpugauge_device_unattributed_memory_used_bytes"
UUIDS = tuple(gpu.uuid for gpu in load("time_sliced").document.devices)
GIB = 1 << 30


def version_1(pod, container):
    path = f"/kubepods/burstable/pod{uid(pod)}/{container_id(container)}"
    return f"4:memory:{path}\n3:cpu,cpuacct:/\n1:name=systemd:{path}\n"


def plain_version_2(pod, container):
    return f"0::/kubepods/pod{uid(pod)}/{container_id(container)}\n"


LAYOUTS = {"version 1, cgroupfs": version_1, "version 2, systemd": group, "version 2, containerd": plain_version_2}


class Node:
    """A node with two GPUs: pods `a` (numbers 1) and `b` (2) share the first."""

    def __init__(self, folder, table, clock, **options):
        self.table, self.proc, self.links = table, ProcFiles(folder / "proc", **options), folder / "containers"
        self.links.mkdir()
        for number, pod in enumerate("ab", 1):
            log_link(self.links, "team", pod, number, "main", number)
        self.allocations = tuple(
            Allocation("team", pod, "main", "nvidia.com/gpu", f"{UUIDS[0]}::{n}") for n, pod in enumerate("ab")
        )
        config = config_of("nvml", COUNTERS, processes=True)
        self.source = NvmlSource(config, clock=clock, wall=self.now, patience=0.0)
        self.t = 1.0

    def now(self):
        return self.table._begin + self.t

    def runs(self, *specs):
        document = msgspec.structs.replace(load("time_sliced").document, processes=specs, events=())
        self.table.scenario = Scenario("processes", document)

    def exposed(self, **more):
        """Every series of the next collection: (name, labels, value)."""
        finder = NodeProcessFinder(ProcFolder(own=self.proc.folder), ContainerLogLinks(self.links))
        kubelet = FixedSource("kubelet", self.allocations)
        flow = flow_over(self.source, kubelet, COUNTERS, self.now, processes=finder, **more)
        self.t += INTERVAL
        self.table.tick(self.t)
        text = flow.exposition().text
        return [(name, dict(labels), value) for (name, labels), value in series_of(text).items()]


@pytest.fixture
def node(scenario_table, tmp_path, clock, request):
    made = Node(tmp_path, scenario_table("time_sliced"), clock, **getattr(request, "param", {}))
    yield made
    made.source.close()


def values(exposed, name, *labels):
    return {tuple(found[label] for label in labels): value for metric, found, value in exposed if metric == name}


def problems(exposed):
    return set(values(exposed, "gpugauge_source_problem", "source", "reason"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_report_29_processes_add_up_per_pod_in_every_layout_and_no_pid_is_exposed(node, layout):
    on_first = (ProcessSpec(pid, UUIDS[0], gib * 1024, sm=10) for pid, gib in ((100, 2), (101, 2), (200, 1), (300, 3)))
    node.runs(*on_first, ProcessSpec(400, UUIDS[0], 512))
    cgroup = LAYOUTS[layout]
    for pid, number in ((100, 1), (101, 1), (200, 2)):
        node.proc.run(pid, cgroup(number, number))
    node.proc.run(300, HOST)
    exposed = node.exposed()
    assert values(exposed, MEMORY, "UUID", "pod", "container", "gpu_pod_uid") == {
        (UUIDS[0], "a", "main", uid(1)): 4 * GIB,
        (UUIDS[0], "b", "main", uid(2)): GIB,
    }
    assert values(exposed, SM, "pod") == {("a",): pytest.approx(0.2), ("b",): pytest.approx(0.1)}
    assert values(exposed, UNATTRIBUTED, "UUID") == {(UUIDS[0],): 3 * GIB}
    assert values(exposed, UNALLOCATED, "pod") == {}
    assert problems(exposed) == set()
    assert values(exposed, "gpugauge_source_up", "source")["processes",] == 1
    assert not {"100", "101", "200", "300", "400"} & {value for _, labels, _ in exposed for value in labels.values()}
    assert not {"pid"} & {label for _, labels, _ in exposed for label in labels}


@pytest.mark.parametrize("node", [{"namespace": "pid:[4026532999]"}], indirect=True)
def test_report_29_without_the_pid_namespace_of_the_node_there_is_nothing_and_the_reason(node):
    node.runs(ProcessSpec(100, UUIDS[0], 2048, sm=10))
    node.proc.run(100, group(1, 1))
    exposed = node.exposed(virtual_gpus=True)
    assert values(exposed, MEMORY, "pod") == values(exposed, SM, "pod") == {}
    assert values(exposed, "gpugauge_source_up", "source")["processes",] == 0
    assert problems(exposed) == {("processes", "processes_not_visible")}
    assert all("vgpu" not in labels for _, labels, _ in exposed)
    assert values(exposed, "DCGM_FI_DEV_FB_USED", "UUID").keys() == {(uuid,) for uuid in UUIDS}


def test_report_3_a_number_of_a_pod_is_one_that_was_measured_and_device_values_appear_once(node):
    node.runs(ProcessSpec(100, UUIDS[0], 2048, sm=30), ProcessSpec(200, UUIDS[0], 1024, sm=20))
    node.proc.run(100, group(1, 1))
    node.proc.run(200, group(2, 2))
    plain, virtual = node.exposed(), node.exposed(virtual_gpus=True)
    for name in ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"):
        assert len([name for metric, _, _ in plain if metric == name]) == len(UUIDS)
    added = [(metric, labels, value) for metric, labels, value in virtual if "vgpu" in labels]
    assert {(metric, labels["pod"], labels["vgpu"]): value for metric, labels, value in added} == {
        ("DCGM_FI_DEV_FB_USED", "a", "0"): 2048,
        ("DCGM_FI_DEV_FB_USED", "b", "1"): 1024,
        ("DCGM_FI_DEV_GPU_UTIL", "a", "0"): 30,
        ("DCGM_FI_DEV_GPU_UTIL", "b", "1"): 20,
    }
    kept = {(name, *sorted(labels.items())) for name, labels, _ in virtual if "vgpu" not in labels}
    assert kept == {(name, *sorted(labels.items())) for name, labels, _ in plain}


def test_a_pod_with_every_gpu_in_its_environment_is_seen_on_gpus_that_it_was_not_given(node):
    log_link(node.links, "team", "c", 3, "shell", 3)
    node.runs(ProcessSpec(100, UUIDS[0], 1024), ProcessSpec(500, UUIDS[0], 512), ProcessSpec(500, UUIDS[1], 256))
    node.proc.run(100, group(1, 1))
    node.proc.run(500, group(3, 3))
    exposed = node.exposed()
    assert values(exposed, UNALLOCATED, "UUID", "pod", "container") == {
        (UUIDS[0], "c", "shell"): 1,
        (UUIDS[1], "c", "shell"): 1,
    }
    assert values(exposed, MEMORY, "UUID", "pod") == {
        (UUIDS[0], "a"): GIB,
        (UUIDS[0], "b"): 0,
        (UUIDS[0], "c"): GIB // 2,
        (UUIDS[1], "c"): GIB // 4,
    }


def test_a_pod_cannot_make_the_use_of_another_pod_wrong(node):
    node.runs(ProcessSpec(100, UUIDS[0], 1024, sm=10), ProcessSpec(200, UUIDS[0], 512, sm=20))
    node.proc.run(100, group(1, 1).rstrip() + group(2, 2).removeprefix("0::"), name="x) S 1 (200) cri-containerd")
    node.proc.run(200, group(2, 2))
    exposed = node.exposed()
    assert values(exposed, MEMORY, "pod") == {("a",): GIB, ("b",): GIB // 2}
    assert values(exposed, SM, "pod") == {("a",): pytest.approx(0.1), ("b",): pytest.approx(0.2)}


class FixedPods(FixedSource):
    """Pod metadata that does not change."""

    @property
    def kept(self):
        return self.answer

    @property
    def state(self):
        return ReflectorView(self.answer, age=0.0)


def test_with_pod_metadata_also_a_pod_that_asks_for_no_gpu_is_named(node):
    node.runs(ProcessSpec(100, UUIDS[0], 1024), ProcessSpec(500, UUIDS[1], 512))
    node.proc.run(100, group(1, 1))
    node.proc.run(500, group(3, 3))
    names = ((1, "a"), (2, "b"), (3, "shell"))
    pods = tuple(
        NodePod(
            "team", name, uid(n), phase="Running", containers=(NodeContainer("main", id=container_id(n), running=True),)
        )
        for n, name in names
    )
    exposed = node.exposed(known_pods=FixedPods("kubernetes", pods))
    assert values(exposed, MEMORY, "UUID", "pod", "gpu_pod_uid") == {
        (UUIDS[0], "a", uid(1)): GIB,
        (UUIDS[0], "b", uid(2)): 0,
        (UUIDS[1], "shell", uid(3)): GIB // 2,
    }
    assert values(exposed, UNALLOCATED, "pod") == {("shell",): 1}


def test_without_the_links_and_without_pod_metadata_there_is_nothing_and_the_reason(node):
    node.runs(ProcessSpec(100, UUIDS[0], 1024))
    for link in node.links.iterdir():
        link.unlink()
    node.links.rmdir()
    exposed = node.exposed()
    assert values(exposed, MEMORY, "pod") == {}
    assert problems(exposed) == {("processes", "pods_unknown")}
