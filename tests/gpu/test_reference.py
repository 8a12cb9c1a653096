"""nvidia-smi's table, what differs from it, the tolerance, and the masked capture."""

import pytest

from exporter.node.devices.fields.field import fields_by_name
from tests.gpu.capture import masked
from tests.gpu.checks import COUNTERS
from tests.gpu.reference import (
    COLUMNS,
    NUMBERS,
    Compared,
    Exposition,
    NoGpuError,
    differences,
    nvidia_smi,
    parse,
    within,
)

UUID = "GPU-11111111-2222-3333-4444-555555555555"
ROW = {
    "uuid": UUID, "serial": "1654922012345", "mig.mode.current": "Disabled", "index": "0",
    "pci.bus_id": "00000000:07:00.0", "name": "NVIDIA H200",
    "driver_version": "570.133.20", "memory.total": "143771", "memory.used": "4096", "temperature.gpu": "41",
    "power.draw": "120.50", "enforced.power.limit": "700.00", "clocks.sm": "345", "clocks.mem": "3201",
    "utilization.gpu": "0",
}  # fmt: skip
LABELS = (
    f'gpu="0",UUID="{UUID}",pci_bus_id="00000000:07:00.0",modelName="NVIDIA H200",DCGM_FI_DRIVER_VERSION="570.133.20"'
)
VALUES = {each.metric: float(ROW[each.column]) for each in NUMBERS}


def exposition(labels=LABELS, **changed):
    values = {**VALUES, **changed}
    lines = [
        f"# TYPE {name} gauge\n{name}{{{labels}}} {value}\n" for name, value in values.items() if value is not None
    ]
    return Exposition.of("".join(lines))


def test_the_table_is_read_by_uuid_and_cells_without_a_value_are_left_out():
    line = ", ".join(ROW.values()) + "\n"
    assert parse(line + line.replace("111", "222").replace("120.50", "[N/A]")) == {
        UUID: ROW,
        UUID.replace("111", "222"): {
            column: cell.replace("111", "222") for column, cell in ROW.items() if column != "power.draw"
        },
    }
    assert parse("No devices were found\n") == {}
    assert tuple(ROW) == COLUMNS


def test_equal_values_do_not_differ_and_close_ones_neither():
    assert list(differences(ROW, exposition(), exposition())) == []
    close = exposition(DCGM_FI_DEV_GPU_TEMP=43, DCGM_FI_DEV_POWER_USAGE=130, DCGM_FI_DEV_SM_CLOCK=360)
    assert list(differences(ROW, close, close)) == []


def test_a_value_that_agrees_before_or_after_does_not_differ():
    early, late = exposition(DCGM_FI_DEV_GPU_UTIL=90), exposition()
    assert list(differences(ROW, early, late)) == list(differences(ROW, late, early)) == []


def test_values_that_are_far_absent_or_invented_are_named():
    ours = exposition(DCGM_FI_DEV_GPU_TEMP=50, DCGM_FI_DEV_MEM_CLOCK=None)
    without_limit = {column: cell for column, cell in ROW.items() if column != "enforced.power.limit"}
    assert list(differences(without_limit, ours, ours)) == [
        "temperature.gpu: nvidia-smi 41, DCGM_FI_DEV_GPU_TEMP 50 and 50",
        "enforced.power.limit: nvidia-smi has none, DCGM_FI_DEV_ENFORCED_POWER_LIMIT 700",
        "clocks.mem: nvidia-smi 3201, DCGM_FI_DEV_MEM_CLOCK absent",
    ]


def test_another_identity_is_named():
    other = exposition(LABELS.replace("H200", "H100"))
    assert list(differences(ROW, other, other)) == ["name: nvidia-smi 'NVIDIA H200', label modelName 'NVIDIA H100'"]


def test_values_of_mig_devices_are_not_those_of_their_gpu():
    text = f'DCGM_FI_DEV_FB_USED{{{LABELS},GPU_I_ID="1"}} 7\nDCGM_FI_DEV_FB_USED{{{LABELS}}} 9\n'
    assert Exposition.of(text).value("DCGM_FI_DEV_FB_USED", UUID) == 9


@pytest.mark.parametrize(
    ("measured", "agrees"), [(0.3, True), (0.329, True), (0.271, True), (0.331, False), (0.269, False), (0.0, False)]
)
def test_three_points_are_the_limit(measured, agrees):
    assert within(measured, 0.3) is agrees


def test_the_larger_the_value_the_more_it_may_differ_where_that_is_allowed():
    power = Compared("", "", absolute=5, relative=0.1)
    assert power.agrees(65, 60)
    assert power.agrees(770, 700)
    assert not power.agrees(72, 60)


def test_a_machine_without_nvidia_smi_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoGpuError, match=r"^nvidia-smi is not on PATH$"):
        nvidia_smi("-L")


def test_an_nvidia_smi_that_fails_is_quoted(monkeypatch, tmp_path):
    script = tmp_path / "nvidia-smi"
    script.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoGpuError, match=r"^nvidia-smi ended with 9: NVIDIA-SMI has failed$"):
        nvidia_smi("-L")


def test_every_metric_that_is_read_is_a_field():
    assert [line for line in COUNTERS.splitlines() if line.partition(",")[0] not in fields_by_name()] == []


def test_a_capture_names_nobody_and_keeps_what_belongs_together():
    other = UUID.replace("111", "222")
    text = (
        f'a{{UUID="{UUID}",serial="1654922012345",node="gpu-17"}} 1\n'
        f'b{{hostname="gpu-17",UUID="{other}",serial=""}} 2\nc{{UUID="{UUID}",serialized="x"}} 3\n'
    )
    first, second = (f"GPU-00000000-0000-0000-0000-{number:012d}" for number in range(2))
    assert masked(text) == (
        f'a{{UUID="{first}",serial="serial-masked",node="node-masked"}} 1\n'
        f'b{{hostname="hostname-masked",UUID="{second}",serial=""}} 2\nc{{UUID="{first}",serialized="x"}} 3\n'
    )
