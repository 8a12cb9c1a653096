"""Problems that other programs find with the GPUs of a node, from its conditions and taints."""

import re

import pytest

from exporter.cluster.metrics.node_problems import node_problem_families
from simulators import objects
from tests.exporter.cluster.fixture import exposed, view

GPU = {"nvidia.com/gpu": 8}


def _found(*conditions, taints=()):
    written = objects.node("n1", GPU, objects.gpu_labels("H200", 8))
    written["status"]["conditions"] = [
        {"type": "Ready", "status": "True"},
        *({"type": kind, "status": status} for kind, status in conditions),
    ]
    written["spec"]["taints"] = [{"key": key, "effect": "NoSchedule"} for key in taints]
    found = exposed(node_problem_families(view(nodes=[written])))
    return [re.search(r'node="n1",writer="(.*)",problem="(.*)"', key).groups() for key in found]


@pytest.mark.parametrize(
    ("condition", "status", "expected"),
    [
        ("GpuMemWatch", "True", [("NVSentinel", "GpuMemWatch")]),
        ("GpuMemWatch", "False", []),
        ("GpuMemWatch", "Unknown", []),
        ("SysLogsXIDError", "True", [("NVSentinel", "SysLogsXIDError")]),
        ("GpuCount", "True", [("node-problem-detector", "GpuCount")]),
        ("KernelDeadlock", "True", []),
        ("AcceleratedHardwareReady", "False", [("EKS node monitoring agent", "AcceleratedHardwareReady")]),
        ("AcceleratedHardwareReady", "True", []),
        ("StorageReady", "False", []),
        ("DiskPressure", "True", []),
        ("SomebodysGpuCheck", "True", []),
    ],
)
def test_a_condition_counts_when_a_known_program_tells_of_gpus_by_it(condition, status, expected):
    assert _found((condition, status)) == expected


def test_a_taint_counts_too_and_a_problem_once():
    taints = ("gpu.health/xid", "nvidia.com/gpu-fatal-error", "nvidia.com/gpu", "node.kubernetes.io/unreachable")
    assert _found(("GpuMemWatch", "True"), taints=taints) == [
        ("NVSentinel", "GpuMemWatch"),
        ("NVSentinel", "gpu.health/xid"),
        ("NVSentinel", "nvidia.com/gpu-fatal-error"),
    ]


def test_while_the_nodes_are_not_known_there_is_no_family():
    assert node_problem_families(view(nodes=None)) == []
