"""The check of the processes on GPUs: whose they are, and why that is not known."""

import pytest

from exporter.node.devices.readings.processes import GpuProcess, GpuProcesses, ProcessReadings, ProcessReason
from exporter.node.doctor import processes
from exporter.node.doctor.gather_processes import process_places
from exporter.source import SourceError
from tests.exporter.node.doctor.nodes import config, examination, finding, findings, read
from tests.exporter.node.processes.node_files import HOST, ProcFiles, group, log_link
from tests.waiting import LIMIT_SECONDS

FLAGS = ("--process-metrics", "--host-proc=/host/proc", "--container-log-links=/var/log/containers")


@pytest.fixture
def files(node):
    """The processes of a node and the kubelet's links; one container of one pod."""
    found = ProcFiles(node.folder / "host/proc")
    (node.folder / "var/log/containers").mkdir(parents=True)
    log_link(node.folder / "var/log/containers", "team", "train", 1, "main", 5)
    found.run(10, group(1, 5))
    return found


def listed(*pids, problem=None):
    gpu = GpuProcesses("GPU-1", tuple(GpuProcess(pid) for pid in pids), problem=problem)
    return read(processes=ProcessReadings((gpu,)))


def judged(node, attempt, *flags):
    """What the check finds of the processes that this source lists."""
    attempts = (attempt,)
    places = process_places(config(*(flags or FLAGS)), node.root, LIMIT_SECONDS, attempts, None)
    return findings(processes, "processes", examination(node, *FLAGS, attempts=attempts, processes=places))


def test_where_they_are_not_read_nothing_is_said(node):
    assert judged(node, listed(10), "--source=nvml") == []


def test_those_of_pods_and_of_the_node_are_counted(node, files):
    files.run(11, HOST)
    (found,) = judged(node, listed(10, 11, 12))
    assert (found.status, found.detail) == ("ok", "1 processes on the GPUs are those of pods; 1 run outside of pods")


def test_a_process_of_an_unknown_pod_has_a_reason_and_costs_no_other(node, files):
    files.run(11, group(2, 6))
    unknown, rest = judged(node, listed(10, 11))
    assert (unknown.reason, unknown.detail) == (ProcessReason.POD_UNKNOWN, "1 of 2 processes on the GPUs")
    assert rest.detail.startswith("1 processes")


def test_an_unreadable_process_has_a_reason_and_costs_no_other(node, files):
    files.run(11, "nonsense")
    (node.folder / "host/proc/11/stat").write_text("nonsense")
    unreadable, rest = judged(node, listed(10, 11))
    assert (unreadable.reason, unreadable.detail) == (
        ProcessReason.PROCESS_UNREADABLE,
        "1 of 2 processes on the GPUs",
    )
    assert rest.detail.startswith("1 processes")


def test_a_gpu_whose_processes_are_not_known_has_its_reason(node, files):
    failed, _ = judged(node, listed(problem=("no_permission", "MIG devices are closed")))
    assert (failed.reason, failed.detail) == (ProcessReason.NO_PERMISSION, "GPU-1: MIG devices are closed")


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--process-metrics", "--host-proc=/missing"), ProcessReason.PROC_UNREADABLE),
        ((*FLAGS[:2], "--container-log-links=/missing"), ProcessReason.PODS_UNKNOWN),
    ],
)
def test_folders_that_cannot_be_read_are_named(node, files, flags, reason):
    (found,) = judged(node, listed(10), *flags)
    assert found.reason == reason
    assert "/missing" in found.detail


def test_an_answer_that_does_not_come_has_a_reason(node):
    found = SourceError(ProcessReason.NOT_LISTED, "the reader process has listed no processes")
    examined = examination(node, processes=found)
    assert finding(processes, "processes", examined) == ("failed", ProcessReason.NOT_LISTED, str(found))
