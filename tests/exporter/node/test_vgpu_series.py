"""Series of the vGPUs of a vGPU host, from readings through the pipeline to both formats."""

import json

import pytest

from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.selection import Selection
from exporter.node.devices.entities.vgpu import Vgpu
from exporter.node.devices.readings.readings import Batch, Readings, Rejection, RejectionReason
from exporter.node.devices.series.labels import LabelStyle
from exporter.node.devices.series.vgpu_labels import VgpuLabelCache, vgpu_schema
from exporter.node.simulation.source import SimulatedSource
from tests.exporter.node.scenario_flow import (
    EPOCH,
    FixedSource,
    config_of,
    flow_over,
    openmetrics_series_of,
    series_of,
)

MEMORY, TYPE, VM, VERSION = 525, 522, 520, 1
COUNTERS = parse(
    "DCGM_FI_DEV_GPU_TEMP, gauge, Degrees.\n"
    "DCGM_FI_DEV_VGPU_MEMORY_USAGE, gauge, Framebuffer.\n"
    "DCGM_FI_DEV_VGPU_TYPE, gauge, Type.\n"
    "DCGM_FI_DEV_VGPU_VM_ID, label, Virtual machine.\n"
    "DCGM_FI_DRIVER_VERSION, label, Version.\n",
    "f",
)
MEMORY_NAME, TYPE_NAME = "DCGM_FI_DEV_VGPU_MEMORY_USAGE", "DCGM_FI_DEV_VGPU_TYPE"
FIRST = Device("GPU-1", 0, "00000000:01:00.0", 0, "NVIDIA A16")
SECOND = Device("GPU-2", 1, "00000000:02:00.0", 1, "NVIDIA A16")
VGPUS = (Vgpu(0, 7, "uuid-7"), Vgpu(1, 9))


def readings(**more):
    batch = Batch((0, 1), (MEMORY, TYPE, VM), ((2048, 4096), (557, None), ("vm-a", None)))
    fields = {
        "vgpus": VGPUS,
        "vgpu_batches": (batch,),
        "rejections": (Rejection(TYPE, RejectionReason.BLANK, 1),),
    }
    devices = (Batch((0, 1), (150, VERSION), ((40, 41), ("580.1", "580.1"))),)
    return Readings("nvml", EPOCH, (FIRST, SECOND), devices, **(fields | more))


def of(exposition, name):
    return [
        ({key: value for key, value in pairs if key != "hostname"}, value)
        for (metric, pairs), value in series_of(exposition.text).items()
        if metric == name
    ]


def unsupported(exposition):
    return {
        (labels["field"], labels["reason"]): value
        for labels, value in of(exposition, "gpugauge_field_unsupported_devices")
    }


def test_each_vgpu_has_its_series_with_its_gpu_its_virtual_machine_and_no_pod():
    exposition = flow_over(FixedSource("nvml", readings()), None, COUNTERS).exposition()
    none = {"namespace": "", "pod": "", "container": ""}
    first = {
        "vgpu": "7",
        "vgpu_uuid": "uuid-7",
        "gpu": "0",
        "UUID": "GPU-1",
        "pci_bus_id": "00000000:01:00.0",
        "device": "nvidia0",
        "modelName": "NVIDIA A16",
        "DCGM_FI_DEV_VGPU_VM_ID": "vm-a",
        "DCGM_FI_DRIVER_VERSION": "580.1",
    }
    second = {
        "vgpu": "9",
        "gpu": "1",
        "UUID": "GPU-2",
        "pci_bus_id": "00000000:02:00.0",
        "device": "nvidia1",
        "modelName": "NVIDIA A16",
        "DCGM_FI_DRIVER_VERSION": "580.1",
    }
    assert of(exposition, MEMORY_NAME) == [(first | none, 2048), (second | none, 4096)]
    assert of(exposition, TYPE_NAME) == [(first | none, 557)]
    assert all("vgpu" not in labels for labels, _ in of(exposition, "DCGM_FI_DEV_GPU_TEMP"))
    assert unsupported(exposition) == {(TYPE_NAME, "blank"): 1}


@pytest.mark.parametrize("source", ["dcgm", "nvml"])
def test_a_source_without_vgpus_has_no_value_of_their_fields_on_any_gpu(source):
    found = Readings(source, EPOCH, readings().inventory, readings().batches)
    exposition = flow_over(FixedSource(source, found), None, COUNTERS).exposition()
    assert unsupported(exposition) == {
        (name, "not_supported"): 2 for name in (MEMORY_NAME, TYPE_NAME, "DCGM_FI_DEV_VGPU_VM_ID")
    }
    assert of(exposition, MEMORY_NAME) == []


def test_the_vgpus_of_gpus_that_are_not_selected_are_left_out():
    flow = flow_over(FixedSource("nvml", readings()), None, COUNTERS, selection=Selection((1,), None))
    assert [labels["vgpu"] for labels, _ in of(flow.exposition(), MEMORY_NAME)] == ["9"]


def test_vgpus_of_a_scenario_are_exposed_and_both_formats_can_be_parsed(tmp_path):
    vgpu = {"number": 3, "uuid": "u", "fields": {str(MEMORY): 5, str(VM): "vm-b"}}
    gpu = {"uuid": "GPU-1", "index": 0, "pci_bus_id": "00000000:07:00.0", "model": "A16", "memory_mib": 1000}
    path = tmp_path / "vgpus.json"
    vgpu["utilization"] = [50, 25, 0, 101]
    path.write_text(json.dumps({"about": "x", "devices": [gpu | {"vgpus": [vgpu]}]}))
    source = SimulatedSource(config_of("simulated", COUNTERS, scenario=str(path)), lambda: EPOCH)
    both = flow_over(source, None, COUNTERS).exposition()
    assert series_of(both.text) == openmetrics_series_of(both.openmetrics)
    ((labels, value),) = of(both, MEMORY_NAME)
    assert (labels["vgpu"], labels["UUID"], labels["DCGM_FI_DEV_VGPU_VM_ID"], value) == ("3", "GPU-1", "vm-b", 5)
    used = of(both, "gpugauge_vgpu_utilization_ratio")
    assert {labels["engine"]: value for labels, value in used} == {"sm": 0.5, "memory": 0.25, "encoder": 0}
    assert {(labels["UUID"], labels["vgpu"], labels["vgpu_uuid"]) for labels, _ in used} == {("GPU-1", "3", "u")}


def test_options_rename_the_gpu_the_host_and_the_container():
    style = LabelStyle("n1", "both", old_namespace=True, replace_blanks_in_model=True)
    (labels,) = VgpuLabelCache(style, vgpu_schema(style, ())).labels(VGPUS[:1], (FIRST,), ((),), ((),))
    pairs = dict(labels.pairs)
    assert (pairs["uuid"], pairs["modelName"], pairs["Hostname"], pairs["pod_name"]) == (
        "GPU-1",
        "NVIDIA-A16",
        "n1",
        "",
    )
    assert "UUID" not in pairs
    bare = LabelStyle("n1", "none", allocation_labels=False)
    (labels,) = VgpuLabelCache(bare, vgpu_schema(bare, ())).labels(VGPUS[:1], (FIRST,), ((),), ((),))
    assert [name for name, _ in labels.pairs][-1] == "modelName"


def test_equal_inputs_give_the_same_label_objects_and_only_those_of_the_last_collection_are_kept():
    style = LabelStyle("n1")
    cache = VgpuLabelCache(style, vgpu_schema(style, ("A",)))
    inventory, rows = (FIRST, SECOND), ((), ())
    first = cache.labels(VGPUS, inventory, rows, rows)
    again = cache.labels(VGPUS, inventory, rows, rows)
    assert all(one is other for one, other in zip(first, again, strict=True))
    changed = cache.labels(VGPUS, inventory, rows, ((("A", "x"),), ()))
    assert changed[1] is first[1]
    assert dict(changed[0].pairs)["A"] == "x"
    assert len(cache._known) == 2
