"""Where the processes of one collection run: with pod metadata, with the links to logs, and with neither."""

import pytest

from exporter.node.attribution.matching.attribute import PodContainer
from exporter.node.devices.readings.processes import GpuProcess, GpuProcesses, ProcessReadings
from exporter.node.pods.pod import NodeContainer, NodePod
from exporter.node.processes.cgroup import ContainerPlace, plain_uid
from exporter.node.processes.container_log_links import ContainerLogLinks
from exporter.node.processes.proc_folder import ProcFolder
from exporter.node.processes.source import NodeProcessFinder, ProcessSource
from exporter.source import SourceError
from tests.exporter.node.processes.node_files import ProcFiles, container_id, group, log_link, uid

LISTED = ProcessReadings((GpuProcesses("GPU-1", (GpuProcess(10, memory=5),)),))
PLACE = ContainerPlace(plain_uid(uid(1)), container_id(5))
PODS = (NodePod("team", "by-metadata", uid(1), containers=(NodeContainer("main", id=container_id(5)),)),)


@pytest.fixture
def finder(tmp_path):
    files = ProcFiles(tmp_path / "proc")
    files.run(10, group(1, 5))
    (tmp_path / "links").mkdir()
    log_link(tmp_path / "links", "team", "by-link", 1, "main", 5)
    return NodeProcessFinder(ProcFolder(own=files.folder), ContainerLogLinks(tmp_path / "links"))


def test_without_pod_metadata_the_links_name_the_container(finder):
    found = ProcessSource(finder, LISTED, None).read()
    assert found.places == {10: PLACE}
    assert found.pods.find(PLACE) == PodContainer("team", "by-link", "main", uid(1))
    assert found.complete


def test_with_pod_metadata_the_links_are_not_needed(finder, tmp_path):
    for link in (tmp_path / "links").iterdir():
        link.unlink()
    (tmp_path / "links").rmdir()
    found = ProcessSource(finder, LISTED, PODS).read()
    assert found.pods.find(PLACE) == PodContainer("team", "by-metadata", "main", uid(1))
    assert ProcessSource(finder, LISTED, PODS).read().pods is found.pods
    other = ProcessSource(finder, LISTED, ()).read()
    assert other.pods.find(PLACE) is None


@pytest.mark.parametrize(
    ("listed", "reason"),
    [(None, "not_listed"), (ProcessReadings(problem=("nvml_missing", "no library")), "nvml_missing")],
)
def test_without_a_list_of_processes_there_is_the_reason(finder, listed, reason):
    with pytest.raises(SourceError) as raised:
        ProcessSource(finder, listed, None).read()
    assert raised.value.reason == reason
