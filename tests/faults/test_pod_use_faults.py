"""Faults of what is known of processes: only what pods use of the GPUs is missing."""

import pytest

from exporter.node.attribution.allocation import Allocation
from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.readings.processes import GpuProcess, GpuProcesses, ProcessReadings
from exporter.node.devices.readings.readings import Readings
from exporter.node.nvml.native.reasons import NvmlReason
from exporter.node.processes.container_log_links import ContainerLogLinks
from exporter.node.processes.proc_folder import ProcFolder
from exporter.node.processes.source import NodeProcessFinder
from exporter.node.reader.with_processes import WithProcesses
from tests.exporter.node.dcgm.fixture import EngineFixture, document, gpu_spec, uuid_of
from tests.exporter.node.processes.node_files import ProcFiles, group, log_link
from tests.exporter.node.scenario_flow import BreakableSource, FixedSource, flow_over
from tests.faults.fault import as_before, fault
from tests.faults.programs import INTERVAL, collecting

pytestmark = [pytest.mark.slow]

COUNTERS = parse("DCGM_FI_DEV_GPU_TEMP, gauge, x", "f.csv")
LISTED = ProcessReadings((GpuProcesses(uuid_of(0), (GpuProcess(10, memory=1 << 30),)),))
KUBELET = FixedSource("kubelet", (Allocation("team", "a", "main", "nvidia.com/gpu", uuid_of(0)),))
USE = "gpugauge_pod_gpu_memory_used_bytes"


@pytest.fixture
def node(tmp_path):
    """A program that reads an engine, with NVML beside it; yields how to request, NVML, and the folder of links."""
    engine = EngineFixture(tmp_path, document(gpu_spec(0)))
    files, links = ProcFiles(tmp_path / "proc"), tmp_path / "links"
    files.run(10, group(1, 1))
    links.mkdir()
    log_link(links, "team", "a", 1, "main", 1)
    nvml = BreakableSource(FixedSource("nvml", Readings("nvml", 0.0, (), processes=LISTED)))
    source = WithProcesses(engine.source(150), nvml, INTERVAL, start=lambda function: function())
    finder = NodeProcessFinder(ProcFolder(own=files.folder), ContainerLogLinks(links))
    flow = flow_over(source, KUBELET, COUNTERS, lambda: engine.now, processes=finder)
    try:
        with collecting(flow.pipeline.collect) as get:
            yield get, nvml, links
    finally:
        engine.close()


def with_use(before):
    restored = as_before(before)
    return lambda exposed: restored(exposed) and exposed.value(USE, pod="a") == 1 << 30


@fault(
    name="NVML, which lists processes, cannot be opened beside the engine",
    shows=(
        'gpugauge_source_up{source="processes"} 0',
        'gpugauge_source_problem{source="processes",reason="nvml_missing"} 1',
        'gpugauge_source_up{source="dcgm"} 1',
        "gpugauge_device_up 1",
        "DCGM_FI_DEV_GPU_TEMP > 0",
    ),
    absent=("gpugauge_pod_gpu_",),
)
def test_without_nvml_beside_the_engine_only_what_pods_use_is_missing(node, row):
    get, nvml, _ = node
    before = healthy(row, get)
    nvml.reason = NvmlReason.LIBRARY_MISSING
    row.wait_until_shown(get)
    nvml.reason = ""
    row.wait_until_recovered(get, with_use(before), INTERVAL)


@fault(
    name="The kubelet's links to the logs of containers cannot be read, and there is no pod metadata",
    shows=(
        'gpugauge_source_up{source="processes"} 0',
        'gpugauge_source_problem{source="processes",reason="pods_unknown"} 1',
        'gpugauge_source_up{source="dcgm"} 1',
        "DCGM_FI_DEV_GPU_TEMP > 0",
    ),
    absent=("gpugauge_pod_gpu_",),
)
def test_without_the_links_to_logs_only_what_pods_use_is_missing(node, row):
    get, _, links = node
    before = healthy(row, get)
    moved = links.rename(links.with_name("moved"))
    row.wait_until_shown(get)
    moved.rename(links)
    row.wait_until_recovered(get, with_use(before), INTERVAL)


def healthy(row, get):
    """The exposition before the fault, once what the pod uses is there."""
    return row.wait_until_recovered(get, lambda exposed: exposed.value(USE, pod="a") is not None, INTERVAL)
