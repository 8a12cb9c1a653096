"""`--devices` selects the devices that DCGM-named series have; a number that is not there costs only itself."""

import msgspec
import pytest

from exporter import cli
from exporter.config import ConfigError
from exporter.node.config import node_config
from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.selection import Selection, parse_selection
from exporter.node.devices.readings.readings import Readings
from exporter.node.devices.series.gpu_selection import GpuSelectionReason, selected, selection_problems
from exporter.node.program import NodeProgram
from tests.waiting import until


def device(index, gi=-1, ci=-1):
    return Device(f"GPU-{index}", index, "00000000:07:00.0", index, "NVIDIA H100", gi=gi, ci=ci)


# Two GPUs, of which the second has three GPU instances; two compute instances share the last one.
INVENTORY = (device(0), device(1), device(1, 7), device(1, 8), device(1, 9), device(1, 9, 0), device(1, 9, 1))
READINGS = Readings("dcgm", 0.0, INVENTORY, engine_ids=(0, 1, 8, 9, 10, 14, 15))


@pytest.mark.parametrize(
    ("text", "positions"),
    [
        ("f", None),
        ("g+i", None),
        ("g", [0, 1]),
        ("g:0", [0]),
        ("g:1,5", [1]),
        ("i", [1, 2, 3, 4, 5, 6]),
        ("i:8", [1, 2]),
        ("i:9-10", [1, 3, 4, 5, 6]),
        ("g:0+i:9", [0, 1, 3]),
        ("g:5", []),
        ("i:14", []),
    ],
)
def test_gpus_are_selected_by_index_and_gpu_instances_by_the_number_of_dcgm(text, positions):
    found = selected(READINGS, parse_selection(text))
    assert (found if found is None else sorted(found)) == positions


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("f", None),
        ("g+i", None),
        ("g:0-1+i:8-10", None),
        ("g:1,5", "GPU 5"),
        ("g:0-3+i:8,14", "GPU 2, GPU 3, GPU instance 14"),
    ],
)
def test_a_number_that_is_not_there_is_named(text, absent):
    found = list(selection_problems(READINGS, parse_selection(text)))
    reason = GpuSelectionReason.SELECTED_DEVICE_MISSING
    assert found == ([(reason, f"--devices: not there: {absent}")] if absent else [])


def test_nothing_is_missing_while_there_are_no_devices():
    assert list(selection_problems(Readings("dcgm", 0.0, ()), parse_selection("g:0"))) == []


def test_a_source_without_numbers_of_gpu_instances_has_none_of_those_that_are_named():
    readings = msgspec.structs.replace(READINGS, source="nvml", engine_ids=())
    assert selected(readings, parse_selection("i:8")) == frozenset()
    assert [message for _, message in selection_problems(readings, parse_selection("i:8"))] == [
        "--devices: not there: GPU instance 8"
    ]
    assert selected(readings, parse_selection("i")) == frozenset({1, 2, 3, 4, 5, 6})


def config(*flags, **variables):
    return node_config(cli.parse(flags, variables), {"NODE_NAME": "n"})


def test_the_selection_is_that_of_the_flag_or_the_variable():
    assert config().devices == Selection()
    assert config("-d", "g:0,2-3").devices == Selection((0, 2, 3), None)
    assert config(DCGM_EXPORTER_DEVICES_STR="i:1").devices == Selection(None, (1,))
    for text in ("h", "g:", "g:3-1", "f+g", "g+g", "g:a", ""):
        with pytest.raises(ConfigError, match=r"^-d: "):
            config("-d", text)


COUNTERS = "DCGM_FI_DEV_GPU_TEMP, gauge, x\nDCGM_FI_DEV_FB_USED, gauge, x\nDCGM_EXP_XID_ERRORS_COUNT, gauge, x\n"


@pytest.fixture
def gpus_of(tmp_path):
    made = []

    def run(selection, scenario):
        (tmp_path / "counters.csv").write_text(COUNTERS)
        flags = ["--source", "simulated", "--scenario", scenario, "-f", str(tmp_path / "counters.csv"), "-d", selection]
        made.append(NodeProgram(config(*flags)))
        snapshot = until(lambda: (found := made[-1].collect()).health[0].up and found)
        found = {}
        for family in snapshot.families:
            for labels, _ in family.samples:
                pairs = dict(labels.pairs)
                if "gpu" in pairs:
                    found.setdefault(family.metric.name, set()).add((pairs["gpu"], pairs.get("GPU_I_ID", "")))
        return found, [problem.reason for problem in snapshot.problems]

    yield run
    for one in made:
        one.close()


def test_only_the_selected_gpus_have_dcgm_named_series_and_all_have_ours(gpus_of):
    found, problems = gpus_of("g:1,3,99", "whole")
    for name in ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_FB_USED", "DCGM_EXP_XID_ERRORS_COUNT"):
        assert found[name] == {("1", ""), ("3", "")}, name
    assert len(found["gpugauge_device_up"]) == len(found["gpugauge_xid_errors_total"]) == 8
    assert problems == ["selected_device_missing"]


def test_with_gpus_alone_mig_devices_have_no_series_and_with_mig_devices_their_gpus_keep_theirs(gpus_of):
    everything, _ = gpus_of("f", "mig")
    mig_enabled = {gpu for gpu, gi in everything["DCGM_FI_DEV_FB_USED"] if gi}
    gpus, _ = gpus_of("g", "mig")
    instances, problems = gpus_of("i", "mig")
    assert {gi for _, gi in gpus["DCGM_FI_DEV_FB_USED"]} <= {""}
    assert gpus["DCGM_FI_DEV_GPU_TEMP"] == everything["DCGM_FI_DEV_GPU_TEMP"]
    assert instances["DCGM_FI_DEV_FB_USED"] == {pair for pair in everything["DCGM_FI_DEV_FB_USED"] if pair[1]}
    assert {gpu for gpu, _ in instances["DCGM_FI_DEV_GPU_TEMP"]} == mig_enabled
    assert problems == []
