"""GPU architectures: DCGM's and NVML's numbers have the same names."""

import pynvml
import pytest

from exporter.node.devices.entities.architecture import architecture_name

NOT_GPUS = {"DLA", "DLA2", "NPU3", "UNKNOWN"}
NVML = {
    name.removeprefix("NVML_DEVICE_ARCH_"): getattr(pynvml, name)
    for name in dir(pynvml)
    if name.startswith("NVML_DEVICE_ARCH_")
}
DCGM = {
    "KEPLER": 2,
    "MAXWELL": 3,
    "PASCAL": 4,
    "VOLTA": 5,
    "TURING": 6,
    "AMPERE": 7,
    "ADA": 8,
    "HOPPER": 9,
    "BLACKWELL": 10,
    "RUBIN": 13,
}
"""DCGM_CHIP_ARCH_… of dcgm_structs.h, which are "made to match" NVML's."""


def test_every_gpu_architecture_of_nvml_has_its_name():
    assert {"HOPPER", "BLACKWELL", "RUBIN"} <= NVML.keys()
    names = {name: architecture_name(number) for name, number in NVML.items() if name not in NOT_GPUS}
    assert names == {name: name.lower() for name in names}


def test_every_architecture_of_dcgm_has_its_name():
    assert {name: architecture_name(number) for name, number in DCGM.items()} == {name: name.lower() for name in DCGM}


def test_rubin_is_number_13_in_both_libraries():
    assert architecture_name(13) == "rubin"
    assert DCGM["RUBIN"] == NVML["RUBIN"] == 13


@pytest.mark.parametrize("number", [-1, 0, 1, 11, 12, 14, 99, pynvml.NVML_DEVICE_ARCH_UNKNOWN])
def test_a_number_that_is_no_known_gpu_architecture_has_no_name(number):
    assert architecture_name(number) == ""
