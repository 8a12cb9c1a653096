"""`--mig-gpu-quantities=repeat`: quantities of a MIG-enabled GPU on each of its GPU instances, as in dcgm-exporter."""

from dataclasses import replace

import msgspec
import pytest

from exporter.cli import parse
from exporter.node.config import node_config
from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.selection import parse_selection
from exporter.node.devices.series.labels import LabelStyle
from exporter.node.devices.series.mig_repetition import repeated_on_instances
from tests.exporter.node.scenario_flow import HOSTNAME, SimulatedFlow, series_of, without_volatile

POWER = "DCGM_FI_DEV_POWER_USAGE"
ONCE = LabelStyle(HOSTNAME)
REPEATED = replace(ONCE, repeat_on_instances=True)


def exposed(style, scenario="mig"):
    return [(name, dict(labels), v) for (name, labels), v in series_of(exposition(style, scenario)).items()]


def exposition(style, scenario):
    text = SimulatedFlow(scenario, t=61.0, style=style).exposition().text.decode()
    return without_volatile(text).replace("} *\n", "} 0\n").encode()


def of_mig_gpu(style, metric):
    """The values of GPU 0, which is MIG-enabled, by GPU instance."""
    found = [(labels, v) for name, labels, v in exposed(style) if name == metric and labels["gpu"] == "0"]
    return {labels.get("GPU_I_ID", ""): v for labels, v in found if "GPU_CI_ID" not in labels}


def test_a_gpu_quantity_is_a_series_of_each_gpu_instance_and_not_of_the_gpu():
    (watts,) = of_mig_gpu(ONCE, POWER).values()
    assert of_mig_gpu(ONCE, POWER) == {"": watts}
    assert of_mig_gpu(REPEATED, POWER) == dict.fromkeys(("1", "5", "9", "10"), watts)


def test_a_repeated_quantity_has_the_labels_of_the_instance_and_its_pod():
    (labels,) = [x for name, x, _ in exposed(REPEATED) if name == POWER and x.get("GPU_I_ID") == "1"]
    assert (labels["GPU_I_PROFILE"], labels["pod"]) == ("3g.40gb", "embedder-6f7d9c5b7d-9kx2c")
    (labels,) = [x for name, x, _ in exposed(REPEATED) if name == "DCGM_FI_DEV_XID_ERRORS" and x.get("GPU_I_ID") == "1"]
    assert labels["err_code"] == "0"


def test_quantities_of_the_instances_themselves_and_of_other_gpus_stay_as_they_are():
    for metric in ("DCGM_FI_DEV_FB_USED", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"):
        assert of_mig_gpu(REPEATED, metric) == of_mig_gpu(ONCE, metric)
    other = [[each for each in exposed(style) if each[1].get("gpu") == "1"] for style in (ONCE, REPEATED)]
    assert other[0] == other[1]
    assert exposition(REPEATED, "whole") == exposition(ONCE, "whole")


@pytest.mark.parametrize(
    ("text", "instances"), [("f", {"1", "5", "9", "10"}), ("g", {""}), ("i", {"1", "5", "9", "10"})]
)
def test_of_a_selection_of_devices_the_selected_instances_have_the_quantity_else_the_gpu(text, instances):
    flow = SimulatedFlow("mig", t=61.0, style=REPEATED, selection=parse_selection(text))
    found = [dict(labels) for name, labels in series_of(flow.exposition().text) if name == POWER]
    assert {labels.get("GPU_I_ID", "") for labels in found if labels["gpu"] == "0"} == instances


@pytest.mark.parametrize(
    ("chosen", "positions"), [(None, (1, 2, 3)), ({0, 2, 3}, (2, 3)), ({0, 3}, (0, 3)), ({3}, (0, 3))]
)
def test_instances_that_are_not_selected_have_nothing(chosen, positions):
    gpu, other = (Device(f"GPU-{index}", index, "00000000:07:00.0", index, "H100") for index in range(2))
    instances = (msgspec.structs.replace(gpu, gi=gi) for gi in (1, 2))
    found = repeated_on_instances({155: [((0, 3), (200, 90))]}, (gpu, *instances, other), chosen)
    assert found == {155: [(positions, (*(200 for _ in positions[1:]), 90))]}


def test_our_own_series_are_never_repeated():
    own = [[each for each in exposed(style) if each[0].startswith("gpugauge_")] for style in (ONCE, REPEATED)]
    assert own[0] == own[1]


@pytest.mark.parametrize(("value", "repeated"), [("repeat", True), ("once", False), ("", False)])
def test_the_flag_and_its_variable_choose(value, repeated):
    argv = (f"--mig-gpu-quantities={value}",) if value else ()
    variables = {"GPUGAUGE_MIG_GPU_QUANTITIES": value}
    for arguments, environment in ((argv, {}), ((), variables)):
        assert node_config(parse(arguments, environment), {}).style.repeat_on_instances == repeated
