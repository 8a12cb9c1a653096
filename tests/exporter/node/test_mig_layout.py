"""A MIG layout that is half made is a problem with a remedy, on /metrics and on the status page; the rest is read."""

from pathlib import Path

import pytest

from exporter.collection_loop import Collected
from exporter.node.devices.entities.device import Device
from exporter.node.devices.readings.mig_layout import MigReason, mig_problems
from exporter.node.devices.readings.readings import Readings
from exporter.node.status import node_page
from tests.exporter.node.scenario_flow import SimulatedFlow
from tests.exporter.node.test_status import CONFIG, HOSTNAME, devices_of

EMPTY = str(Path(__file__).parent / "doctor" / "mig_empty.json")


def gpu(index, **more):
    return Device(f"GPU-{index}", index, "00000000:07:00.0", index, "A100", **more)


def problems(*inventory, source="nvml", down=()):
    return list(mig_problems(Readings(source, 1.0, inventory, down=down)))


def test_a_gpu_in_mig_mode_without_instances_is_named_and_others_are_not():
    whole, complete = gpu(0, mig_enabled=False), gpu(1, mig_enabled=True)
    instance = gpu(1, gi=2, profile="1g.10gb", mig_uuids=("MIG-1",))
    unknown, empty = gpu(2, mig_enabled=None), gpu(3, mig_enabled=True)
    assert problems(whole, complete, instance, unknown) == []
    (found,) = problems(whole, complete, instance, unknown, empty)
    assert found == (MigReason.MIG_WITHOUT_INSTANCES, "in MIG mode without instances: GPU 3 (GPU-3)")


def test_of_a_gpu_that_cannot_be_read_nothing_is_claimed():
    assert problems(gpu(3, mig_enabled=True), down=("GPU-3",)) == []


@pytest.mark.parametrize(("source", "known"), [("nvml", True), ("dcgm", False)])
def test_an_instance_without_compute_instances_is_claimed_where_every_uuid_is_listed(source, known):
    found = problems(gpu(1, mig_enabled=True), gpu(1, gi=2, profile="1g.10gb"), source=source)
    expected = [(MigReason.MIG_WITHOUT_COMPUTE_INSTANCES, "without compute instances: GPU 1 instance 2")]
    assert found == (expected if known else [])


def test_the_problem_is_exposed_with_its_reason_and_the_other_devices_keep_their_values():
    flow = SimulatedFlow(EMPTY, t=5.0)
    text = flow.exposition().text.decode()
    (line,) = [line for line in text.splitlines() if line.startswith("gpugauge_source_problem{")]
    assert 'reason="mig_without_instances"' in line
    assert 'DCGM_FI_DEV_FB_USED{gpu="0"' in text


def test_the_status_page_names_the_gpu_and_the_remedy():
    snapshot = SimulatedFlow(EMPTY, t=5.0).flow.pipeline.collect()
    page = str(node_page(Collected(1, None, snapshot, CONFIG), HOSTNAME))
    assert MigReason.MIG_WITHOUT_INSTANCES.remedy.split(":")[0] in page
    row = next(row for row in devices_of(snapshot) if "GPU 1" in row["Device"])
    assert row["State"] == "no MIG devices"
    assert "MIG mode without MIG devices" in row["Pods"]
