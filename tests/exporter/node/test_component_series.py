"""Series of components, from readings through the pipeline to both formats."""

import json

import msgspec

from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.entities.component import Component
from exporter.node.devices.entities.device import Device
from exporter.node.devices.readings.readings import Batch, Readings, Rejection, RejectionReason
from exporter.node.simulation.source import SimulatedSource
from tests.exporter.node.scenario_flow import (
    EPOCH,
    FixedSource,
    config_of,
    flow_over,
    openmetrics_series_of,
    series_of,
)

TEMPERATURE, CRC_ERRORS, FIRMWARE = 858, 787, 1524
COUNTERS = parse(
    "DCGM_FI_DEV_GPU_TEMP, gauge, Degrees.\n"
    "DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT, gauge, Degrees.\n"
    "DCGM_FI_DEV_NVSWITCH_LINK_CRC_ERRORS, counter, Errors.\n"
    "DCGM_FI_DEV_NVSWITCH_FIRMWARE_VERSION, label, Firmware.\n",
    "f",
)
TEMPERATURES, ERRORS = "DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT", "DCGM_FI_DEV_NVSWITCH_LINK_CRC_ERRORS"
GPU = Device("GPU-1", 0, "00000000:01:00.0", 0, "NVIDIA H100")
SWITCHES = (Component("switch", 0), Component("switch", 1), Component("switch_link", 3, 1))


def readings(**more):
    batches = (
        Batch((0, 1), (TEMPERATURE, FIRMWARE), ((50, None), ("1.2", "1.3"))),
        Batch((2,), (CRC_ERRORS,), ((7,),)),
    )
    fields = {
        "components": SWITCHES,
        "component_batches": batches,
        "rejections": (Rejection(TEMPERATURE, RejectionReason.BLANK, 1),),
    }
    return Readings("dcgm", EPOCH, (GPU,), (Batch((0,), (150,), ((40,),)),), **(fields | more))


class ChangingSource:
    """A source that gives one answer after the other."""

    name = "dcgm"

    def __init__(self, answers):
        self.answers = answers

    def read(self):
        return self.answers.pop(0)


def exposed(values, name="dcgm"):
    return flow_over(FixedSource(name, values), None, COUNTERS).exposition()


def of(exposition, metric):
    return [(dict(pairs), value) for (name, pairs), value in series_of(exposition.text).items() if name == metric]


def unsupported_of(exposition, field):
    found = of(exposition, "gpugauge_field_unsupported_devices")
    return {labels["reason"]: value for labels, value in found if labels["field"] == field}


def test_each_component_has_the_labels_of_dcgm_exporter_and_none_of_a_container():
    exposition = exposed(readings())
    firmware = COUNTERS.label_rows[0].name
    assert of(exposition, TEMPERATURES) == [({"nvswitch": "nvswitch0", "hostname": "node-1", firmware: "1.2"}, 50)]
    link = {"nvlink": "3", "nvswitch": "nvswitch1", "hostname": "node-1", firmware: "1.3"}
    assert of(exposition, ERRORS) == [(link, 7)]
    assert unsupported_of(exposition, TEMPERATURES) == {"blank": 1}
    assert unsupported_of(exposition, ERRORS) == {}


def test_readings_with_components_come_through_the_pipe_as_they_were():
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(readings()), type=Readings) == readings()


def test_a_family_is_one_block_and_both_formats_have_the_same_series():
    exposition = exposed(readings())
    for metric in (TEMPERATURES, ERRORS):
        assert exposition.text.decode().count(f"# TYPE {metric} ") == 1
    assert series_of(exposition.text) == openmetrics_series_of(exposition.openmetrics)
    assert exposition.dropped == 0


def test_on_a_node_without_components_their_fields_are_not_supported_on_any_gpu_and_nothing_else_changes():
    without = {"components": (), "component_batches": (), "rejections": ()}
    for source in ("dcgm", "nvml"):
        exposition = exposed(readings(**without), source)
        for metric in (TEMPERATURES, ERRORS):
            assert unsupported_of(exposition, metric) == {"not_supported": 1}
            assert of(exposition, metric) == []
        assert [value for _, value in of(exposition, "DCGM_FI_DEV_GPU_TEMP")] == [40]


def test_the_series_of_a_component_end_with_it():
    batch = Batch((0,), (TEMPERATURE,), ((51,),))
    later = readings(components=SWITCHES[:1], component_batches=(batch,))
    source = ChangingSource([readings(), later])
    flow = flow_over(source, None, COUNTERS)
    assert of(flow.exposition(), ERRORS)
    exposition = flow.exposition()
    assert [labels["nvswitch"] for labels, _ in of(exposition, TEMPERATURES)] == ["nvswitch0"]
    assert of(exposition, ERRORS) == []


def test_components_of_a_scenario_are_exposed(tmp_path):
    path = tmp_path / "s.json"
    switch = {"number": 2, "fields": {str(TEMPERATURE): 44}, "nvlinks": [{"number": 9, "fields": {str(CRC_ERRORS): 1}}]}
    path.write_text(json.dumps({"about": "x", "devices": [], "switches": [switch]}))
    source = SimulatedSource(config_of("simulated", COUNTERS, scenario=str(path)), lambda: EPOCH)
    exposition = flow_over(source, None, COUNTERS).exposition()
    ((labels, value),) = of(exposition, ERRORS)
    assert (labels["nvlink"], labels["nvswitch"], value) == ("9", "nvswitch2", 1)
    assert [value for _, value in of(exposition, TEMPERATURES)] == [44]
