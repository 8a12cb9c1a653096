"""What stays true from one collection to the next: series end with what they describe, allocations are not guessed."""

import json

import pytest

from exporter.node.attribution.allocation import KEEP_SECONDS, Allocation, LastKnownAllocations
from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.link import Link
from exporter.node.devices.readings.readings import Batch, Readings, Rejection, RejectionReason
from exporter.node.simulation.source import SimulatedSource
from exporter.source import SourceError
from tests.exporter.node.scenario_flow import (
    EPOCH,
    BreakableSource,
    FixedSource,
    SimulatedFlow,
    config_of,
    default_counters,
    flow_over,
    openmetrics_series_of,
    series_of,
)

STATE_SECONDS = "gpugauge_device_state_seconds_total"
ALLOCATION_LABELS = ("namespace", "pod", "container")


def labeled(exposition):
    return [(metric, dict(pairs), value) for (metric, pairs), value in series_of(exposition.text).items()]


def dcgm(exposition):
    return [(metric, labels, value) for metric, labels, value in labeled(exposition) if metric.startswith("DCGM_")]


def instances(exposition):
    return {
        (labels["UUID"], labels["GPU_I_ID"], labels.get("GPU_CI_ID", ""))
        for _, labels, _ in labeled(exposition)
        if "GPU_I_ID" in labels
    }


def of(exposition, metric):
    return [(labels, value) for name, labels, value in labeled(exposition) if name == metric]


def of_devices(exposition):
    """The series of devices; without the value of the one that goes on from collection to collection."""
    return [
        (metric, labels, None if metric == STATE_SECONDS else value)
        for metric, labels, value in labeled(exposition)
        if "UUID" in labels
    ]


def test_a_mig_reconfiguration_ends_every_series_of_the_instances_that_are_gone():
    flow = SimulatedFlow("mig_reconfigured")
    seen = []
    for t in (5, 25, 60):
        exposition, fresh = flow.exposition(t), SimulatedFlow("mig_reconfigured").exposition(t)
        seen.append(instances(exposition))
        assert of_devices(exposition) == of_devices(fresh)
    assert [len(found) for found in seen] == [2, 6, 1]


def test_gpu_quantities_appear_once_per_gpu_and_never_on_a_mig_device():
    for metric, labels, _ in dcgm(SimulatedFlow("mig", t=61).exposition()):
        if any(word in metric for word in ("POWER", "TEMP", "CLOCK", "ENERGY", "PCIE", "NVLINK", "REMAP")):
            assert "GPU_I_ID" not in labels, metric


def test_a_lost_gpu_has_no_values_and_keeps_its_info_series():
    flow = SimulatedFlow("lost")
    before, lost, after = (flow.exposition(t) for t in (5, 20, 45))
    assert dcgm(before)
    assert dcgm(lost) == []
    up = {labels["UUID"]: value for labels, value in of(lost, "gpugauge_device_up")}
    assert set(up.values()) == {0}
    assert {labels["UUID"] for labels, _ in of(lost, "gpugauge_device_info")} == up.keys()
    assert len(dcgm(after)) >= len(dcgm(before))


@pytest.mark.parametrize(("devices", "kubelet", "soon"), [(None, None, False), (None, "x", False), ("x", None, True)])
def test_only_missing_devices_make_the_next_collection_earlier(devices, kubelet, soon):
    flow = SimulatedFlow("whole", t=61)
    flow.devices.reason, flow.kubelet.reason = devices, kubelet
    assert flow.flow.pipeline.collect().retry_soon is soon


def test_no_dcgm_series_is_left_in_the_collection_in_which_its_source_failed():
    flow = SimulatedFlow("whole", t=61)
    assert dcgm(flow.exposition())
    flow.devices.reason = "connection_lost"
    exposition = flow.exposition()
    assert dcgm(exposition) == []
    assert of(exposition, "gpugauge_device_info") == []
    assert of(exposition, "gpugauge_allocation_info") == []
    assert {labels["source"]: value for labels, value in of(exposition, "gpugauge_source_up")} == {
        "simulated": 0,
        "kubelet": 1,
    }
    assert [labels["reason"] for labels, _ in of(exposition, "gpugauge_source_problem")] == ["connection_lost"]
    flow.devices.reason = ""
    assert dcgm(flow.exposition())
    assert of(flow.exposition(), "gpugauge_source_problem") == []


def test_a_shared_device_has_empty_pod_labels_and_one_info_series_for_each_container():
    exposition = SimulatedFlow("time_sliced", t=61).exposition()
    assert dcgm(exposition)
    for metric, labels, _ in dcgm(exposition):
        assert [labels.get(name) for name in ALLOCATION_LABELS] == ["", "", ""], metric
    for line in exposition.text.decode().splitlines():
        if line.startswith("DCGM_"):
            assert 'namespace="",pod="",container=""' in line
    allocations = of(exposition, "gpugauge_allocation_info")
    assert {(labels["gpu_pod"], labels["sharing"]) for labels, _ in allocations} == {
        ("notebook-lena-0", "time-slicing"),
        ("notebook-timo-0", "time-slicing"),
        ("ocr-small-5b8f6d7c9-qv7rn", "time-slicing"),
        ("batch-thumbnails-29x7k", "time-slicing"),
    }
    assert len({(metric, labels["UUID"]) for metric, labels, _ in dcgm(exposition)}) == len(dcgm(exposition))


@pytest.mark.parametrize(("since", "known"), [(0, True), (KEEP_SECONDS, True), (KEEP_SECONDS + 0.1, False)])
def test_allocations_are_kept_for_a_minute_without_a_kubelet_and_are_unknown_then(since, known):
    now = [0.0]
    flow = SimulatedFlow("whole", t=61, last_known=LastKnownAllocations(clock=lambda: now[0]))
    before = {labels["pod"] for _, labels, _ in dcgm(flow.exposition())}
    assert len(before) == 4  # three pods, and an unallocated GPU
    now[0] += since
    flow.kubelet.reason = "socket_missing"
    exposition = flow.exposition()
    assert {labels["pod"] for _, labels, _ in dcgm(exposition)} == (before if known else {""})
    assert all(name in labels for _, labels, _ in dcgm(exposition) for name in ALLOCATION_LABELS)
    assert bool(of(exposition, "gpugauge_device_allocated_pods")) == known  # 0 would mean unallocated
    assert bool(of(exposition, "gpugauge_allocation_info")) == known
    assert [labels["reason"] for labels, _ in of(exposition, "gpugauge_source_problem")] == ["socket_missing"]
    flow.kubelet.reason = ""
    assert {labels["pod"] for _, labels, _ in dcgm(flow.exposition())} == before


def test_without_attribution_no_device_has_a_pod():
    exposition = SimulatedFlow("whole", t=61, attributed=False).exposition()
    assert {labels["pod"] for _, labels, _ in dcgm(exposition)} == {""}
    assert of(exposition, "gpugauge_device_allocated_pods") == []
    assert [labels["source"] for labels, _ in of(exposition, "gpugauge_source_up")] == ["simulated"]


def test_without_devices_there_is_still_an_exposition():
    exposition = flow_over(
        BreakableSource(FixedSource("dcgm", Readings("dcgm", EPOCH, ()))), None, default_counters()
    ).exposition()
    assert dcgm(exposition) == []
    assert of(exposition, "gpugauge_devices_observed") == [({"node": "node-1"}, 0)]


def test_the_pod_of_a_living_gpu_is_not_attributed_to_a_lost_one_that_had_its_index():
    living = Device("GPU-living", 0, "00000000:07:00.0", 0, "NVIDIA H100", mig_enabled=False)
    lost = Device("GPU-lost", 0, "00000000:08:00.0", 0, "NVIDIA H100", mig_enabled=False)
    readings = Readings("dcgm", EPOCH, (living, lost), down=("GPU-lost",))
    allocations = (Allocation("team", "train", "main", "nvidia.com/gpu", "nvidia0"),)
    exposition = flow_over(
        FixedSource("dcgm", readings), FixedSource("kubelet", allocations), default_counters()
    ).exposition()
    assert [labels["UUID"] for labels, _ in of(exposition, "gpugauge_allocation_info")] == ["GPU-living"]


class ChangingSource:
    """A source whose answer a test sets; None while it fails."""

    def __init__(self, name, readings):
        self.name, self.readings = name, readings

    def read(self):
        if self.readings is None:
            raise SourceError("connection_lost", "set by a test")
        return self.readings

    def close(self): ...


FIRST, SECOND = (Device(f"GPU-{n}", n, f"00000000:0{n}:00.0", n, "NVIDIA H100") for n in (1, 2))


def up(exposition):
    return {labels["UUID"]: value for labels, value in of(exposition, "gpugauge_device_up")}


def expected(exposition):
    ((_, value),) = of(exposition, "gpugauge_devices_expected")
    return value


def test_a_gpu_that_is_missing_after_a_change_of_the_source_is_down_and_still_expected():
    source = ChangingSource("dcgm", Readings("dcgm", EPOCH, (FIRST, SECOND)))
    flow = flow_over(source, None, default_counters())
    assert up(flow.exposition()) == {"GPU-1": 1, "GPU-2": 1}
    source.name, source.readings = "nvml", Readings("nvml", EPOCH, (FIRST,))
    found = flow.exposition()
    assert (up(found), expected(found)) == ({"GPU-1": 1, "GPU-2": 0}, 2)
    flow.pipeline.use(default_counters())
    found = flow.exposition()
    assert (up(found), expected(found)) == ({"GPU-1": 1, "GPU-2": 0}, 2)


def test_while_the_source_is_down_no_gpu_is_called_up_or_down_and_all_are_expected():
    source = ChangingSource("dcgm", Readings("dcgm", EPOCH, (FIRST, SECOND)))
    flow = flow_over(source, None, default_counters())
    flow.exposition()
    source.readings = None
    found = flow.exposition()
    assert (up(found), expected(found)) == ({}, 2)


def test_other_counters_keep_what_is_known_and_count_nothing_of_a_field_that_is_not_configured_any_more():
    temperature = parse("DCGM_FI_DEV_GPU_TEMP, gauge, x\n", "test")
    stale = Rejection(252, RejectionReason.STALE, 1)
    source = ChangingSource("dcgm", Readings("dcgm", EPOCH, (FIRST,), rejections=(stale,)))
    flow = flow_over(source, None, default_counters())
    assert flow.pipeline.collect().rejected == {("DCGM_FI_DEV_FB_USED", "stale"): 1}
    flow.pipeline.use(temperature)
    assert flow.pipeline.collect().rejected == {}


UNREAD = "DCGM_FI_DEV_CONNECTX_TEMP_CELSIUS"


def unsupported_of(exposition, field):
    found = of(exposition, "gpugauge_field_unsupported_devices")
    return {labels["reason"]: value for labels, value in found if labels["field"] == field}


@pytest.mark.parametrize("name", ["whole", "mig"])
def test_a_field_that_no_source_reads_is_counted_for_every_gpu_and_has_no_series(name):
    counters = parse(f"DCGM_FI_DEV_GPU_TEMP, gauge, x\n{UNREAD}, gauge, x\nDCGM_FI_DEV_CPU_MODEL, label, x", "f")
    exposition = SimulatedFlow(name, counters, t=61).exposition()
    gpus = {labels["UUID"] for labels, _ in of(exposition, "gpugauge_device_up")}
    assert unsupported_of(exposition, UNREAD) == {"not_supported": len(gpus)}
    assert unsupported_of(exposition, "DCGM_FI_DEV_CPU_MODEL") == {"not_supported": len(gpus)}
    assert {metric for metric, _, _ in dcgm(exposition)} == {"DCGM_FI_DEV_GPU_TEMP"}
    (count,) = (
        value for labels, value in of(exposition, "gpugauge_rejected_values_total") if labels["field"] == UNREAD
    )
    assert count == len(gpus)


def test_a_field_that_no_source_reads_is_not_counted_for_gpus_that_are_lost_or_unknown():
    counters = parse(f"{UNREAD}, gauge, x", "f")
    flow = SimulatedFlow("lost", counters, t=20)
    exposition = flow.exposition()
    up = [labels for labels, value in of(exposition, "gpugauge_device_up") if value]
    lost = [labels for labels, value in of(exposition, "gpugauge_device_up") if not value]
    assert lost
    assert unsupported_of(exposition, UNREAD) == ({"not_supported": len(up)} if up else {})
    flow.devices.reason = "connection_lost"
    assert unsupported_of(flow.exposition(), UNREAD) == {}


LINK_COUNTERS = """\
DCGM_FI_DEV_GPU_TEMP, gauge, Degrees.
DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_PER_LINK_TOTAL, counter, Errors.
DCGM_FI_DEV_NVLINK_TX_THROUGHPUT_PER_LINK, gauge, Rate.
DCGM_FI_DRIVER_VERSION, label, Version.
"""
FLIT_ERRORS, TX_RATE = 1525, 1530


def linked_readings(**more):
    batch = Batch((0, 1), (FLIT_ERRORS, TX_RATE), ((7, 8), (100, None)))
    fields = {
        "links": (Link(1, 0), Link(1, 4)),
        "link_batches": (batch,),
        "rejections": (Rejection(TX_RATE, RejectionReason.BLANK, 1),),
    }
    devices = (Batch((0, 1), (150, 1), ((40, 41), ("580.1", "580.1"))),)
    return Readings("dcgm", EPOCH, (FIRST, SECOND), devices, **(fields | more))


def test_fields_of_links_are_series_of_links_with_the_pod_that_has_their_gpu():
    allocation = Allocation("ns", "p", "c", "nvidia.com/gpu", "GPU-2")
    kubelet = FixedSource("kubelet", (allocation,))
    flow = flow_over(FixedSource("dcgm", linked_readings()), kubelet, parse(LINK_COUNTERS, "f"))
    exposition = flow.exposition()
    errors = of(exposition, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_PER_LINK_TOTAL")
    assert {(labels["nvlink"], labels["gpu_uuid"], labels["pod"], value) for labels, value in errors} == {
        ("0", "GPU-2", "p", 7),
        ("4", "GPU-2", "p", 8),
    }
    assert {labels["DCGM_FI_DRIVER_VERSION"] for labels, _ in errors} == {"580.1"}
    assert [value for _, value in of(exposition, "DCGM_FI_DEV_NVLINK_TX_THROUGHPUT_PER_LINK")] == [100]
    assert {labels["UUID"] for labels, _ in of(exposition, "DCGM_FI_DEV_GPU_TEMP")} == {"GPU-1", "GPU-2"}
    assert unsupported_of(exposition, "DCGM_FI_DEV_NVLINK_TX_THROUGHPUT_PER_LINK") == {"blank": 1}
    assert unsupported_of(exposition, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_PER_LINK_TOTAL") == {}


def test_from_a_source_that_reads_no_links_their_fields_are_not_supported_on_any_gpu():
    readings = linked_readings(links=(), link_batches=(), rejections=())
    exposition = flow_over(FixedSource("nvml", readings), None, parse(LINK_COUNTERS, "f")).exposition()
    for field in ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_PER_LINK_TOTAL", "DCGM_FI_DEV_NVLINK_TX_THROUGHPUT_PER_LINK"):
        assert unsupported_of(exposition, field) == {"not_supported": 2}
        assert of(exposition, field) == []


def test_links_of_a_scenario_are_exposed_and_both_formats_can_be_parsed(tmp_path):
    link = {"number": 3, "fields": {str(FLIT_ERRORS): 5}}
    gpu = {"uuid": "GPU-1", "index": 0, "pci_bus_id": "00000000:07:00.0", "model": "H100", "memory_mib": 1000}
    path = tmp_path / "links.json"
    path.write_text(json.dumps({"about": "x", "devices": [gpu | {"nvlinks": [link]}]}))
    source = SimulatedSource(config_of("simulated", parse(LINK_COUNTERS, "f"), scenario=str(path)), lambda: EPOCH)
    both = flow_over(source, None, parse(LINK_COUNTERS, "f")).exposition()
    assert series_of(both.text) == openmetrics_series_of(both.openmetrics)
    ((labels, value),) = of(both, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_PER_LINK_TOTAL")
    assert (labels["nvlink"], labels["gpu_uuid"], value) == ("3", "GPU-1", 5)


def test_a_field_of_links_that_the_source_has_rejected_is_not_counted_for_the_gpus_too():
    rejections = (Rejection(FLIT_ERRORS, RejectionReason.NOT_SUPPORTED, 3),)
    readings = linked_readings(link_batches=(Batch((0, 1), (TX_RATE,), ((100, 200),)),), rejections=rejections)
    exposition = flow_over(FixedSource("dcgm", readings), None, parse(LINK_COUNTERS, "f")).exposition()
    assert unsupported_of(exposition, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_PER_LINK_TOTAL") == {"not_supported": 3}
