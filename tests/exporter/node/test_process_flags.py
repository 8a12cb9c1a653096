"""The flags for processes of pods, in the whole node exporter but its server."""

import os

import pytest

from exporter import cli
from exporter.exposition.exporter_metrics import ExporterMetrics
from exporter.node.config import node_config
from exporter.node.devices.readings.processes import ProcessReason
from exporter.node.program import NodeProgram
from exporter.node.source_reasons import reason_of
from tests.waiting import until

SHARED = ("--source", "simulated", "--scenario", "time_sliced")
MEMORY = "gpugauge_pod_gpu_memory_used_bytes"


@pytest.fixture
def snapshots(tmp_path):
    """Starts a program with these flags; returns a function that makes its next collection with devices."""
    made = []

    def start(*flags):
        given = ["node", "--collect-interval", "5000", "--mps-root", str(tmp_path), *flags]
        made.append(NodeProgram(node_config(cli.parse(given, {}), {"NODE_NAME": "node-1"}), driver=tmp_path / "driver"))

        def collected():
            snapshot = made[-1].collect()
            return snapshot if families(snapshot).get("gpugauge_device_info") else None

        return lambda: until(collected)

    yield start
    for program in made:
        program.close()


def families(snapshot):
    return {
        family.metric.name: [(dict(each.pairs), value) for each, value in family.samples]
        for family in snapshot.families
    }


def test_by_default_nothing_is_read_of_processes(snapshots):
    snapshot = snapshots(*SHARED)()
    assert MEMORY not in families(snapshot)
    assert "processes" not in {health.source for health in snapshot.health}


def test_with_process_metrics_pods_have_their_use_and_device_series_are_as_ever(snapshots):
    snapshot = snapshots(*SHARED, "--process-metrics")()
    pods = {(labels["gpu_namespace"], labels["gpu_pod"]) for labels, _ in families(snapshot)[MEMORY]}
    assert {("dev", "notebook-lena-0"), ("dev", "debug-shell-0")} < pods
    assert len(families(snapshot)["DCGM_FI_DEV_FB_USED"]) == 2


def test_virtual_gpus_include_process_metrics(snapshots):
    found = families(snapshots(*SHARED, "--kubernetes-virtual-gpus")())
    assert MEMORY in found
    assert {name for name, samples in found.items() if any("vgpu" in labels for labels, _ in samples)} == {
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_GPU_UTIL",
    }


def test_without_labels_of_pods_there_are_no_virtual_gpus(snapshots):
    found = families(snapshots(*SHARED, "--kubernetes-virtual-gpus", "--allocation-labels", "none")())
    assert not any("vgpu" in labels for samples in found.values() for labels, _ in samples)


def test_only_devices_that_are_selected_have_series_of_virtual_gpus(snapshots):
    found = families(snapshots(*SHARED, "--kubernetes-virtual-gpus", "--devices", "g:1")())
    assert {labels["gpu"] for labels, _ in found["DCGM_FI_DEV_FB_USED"]} == {"1"}
    assert any("vgpu" in labels for labels, _ in found["DCGM_FI_DEV_FB_USED"])


def test_processes_of_gpus_of_another_machine_are_not_known():
    flags = ["node", "-r", "gpu-9.example:5555", "--process-metrics"]
    program = NodeProgram(node_config(cli.parse(flags, {}), {}))
    try:
        health = {each.source: each for each in program.collect().health}
        assert (health["processes"].up, health["processes"].reason) == (False, "not_listed")
        assert program._reader._config.processes is False
    finally:
        program.close()


def sharing(snapshot):
    return {labels["sharing"] for labels, _ in families(snapshot)["gpugauge_allocation_info"]}


def test_replicas_mean_what_is_chosen(snapshots):
    assert sharing(snapshots(*SHARED, "--replica-sharing", "mps")()) == {"mps"}
    assert sharing(snapshots(*SHARED)()) == {"time-slicing"}


def test_mps_is_recognized_when_its_daemon_comes_and_then_no_pod_has_a_utilization(snapshots, tmp_path):
    collect = snapshots(*SHARED, "--process-metrics")
    before = collect()
    assert sharing(before) == {"time-slicing"}
    assert "gpugauge_pod_gpu_sm_utilization_ratio" in families(before)
    (tmp_path / "nvidia.com/gpu/pipe").mkdir(parents=True)
    os.mkfifo(tmp_path / "nvidia.com/gpu/pipe/control")
    after = collect()
    assert sharing(after) == {"mps"}
    assert {
        labels["GPU_I_ID"] for labels, _ in families(after).get("gpugauge_pod_gpu_sm_utilization_ratio", [])
    } == set()


@pytest.mark.parametrize("reason", ProcessReason)
def test_every_reason_of_processes_is_explained_on_the_status_page(reason):
    assert reason_of("processes", str(reason)) is reason


def test_reasons_are_written_like_those_of_every_source(snapshots):
    metrics = ExporterMetrics({"node": "node-1"})
    metrics.observe(snapshots(*SHARED, "--process-metrics")())
    up = [sample for family in metrics.collect() if family.name == "gpugauge_source_up" for sample in family.samples]
    assert {sample.labels["source"]: sample.value for sample in up}["processes"] == 1
