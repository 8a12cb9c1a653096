"""The checks of a machine with a GPU: on the fake NVML, with an nvidia-smi of its values, and on a real GPU."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from exporter.node.simulation.scenario import load
from tests.fakes.build import CUDA, build, put
from tests.fakes.scenario_table import VARIABLE, ScenarioTable
from tests.gpu.__main__ import MOST_SECONDS, NO_GPU
from tests.gpu.checks import CHECKS, no_gpu
from tests.gpu.reference import COLUMNS, MIG

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MOMENT = 60.0
WITHOUT_LOAD = ("NVML", "values beside nvidia-smi", "GPM", "capture")
FIELDS = {
    "memory.total": 250, "memory.used": 252, "temperature.gpu": 150, "power.draw": 155, "enforced.power.limit": 164,
    "clocks.sm": 100, "clocks.mem": 101, "utilization.gpu": 203,
}  # fmt: skip


@pytest.fixture
def node(tmp_path, monkeypatch):
    """A node with the fake NVML and an nvidia-smi; returns the text that this nvidia-smi writes, as a file."""
    build(tmp_path / "lib", only="libnvidia-ml")
    text, script = tmp_path / "smi.csv", tmp_path / "bin" / "nvidia-smi"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\ncat {text}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "lib"))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "table"))
    scenario_table = ScenarioTable(load("whole"), tmp_path / "table", moment=MOMENT)
    with scenario_table.run():
        text.write_text("".join(row(gpu) for gpu in scenario_table.scenario.at(MOMENT).gpus))
        yield text


def row(gpu):
    spec = gpu.spec
    cells = {
        "uuid": spec.uuid,
        "serial": spec.serial,
        MIG: "Disabled",
        "index": str(spec.index),
        "pci.bus_id": spec.pci_bus_id,
        "name": spec.model,
        "driver_version": "570.133.20",
        **{column: str(gpu.samples[number].value) for column, number in FIELDS.items()},
    }
    return ", ".join(cells[column] for column in COLUMNS) + "\n"


def run(*arguments, limit=MOST_SECONDS):
    command = (sys.executable, "-m", "tests.gpu", *arguments)
    answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=limit + 30, check=False)
    return answer.returncode, answer.stdout


@pytest.mark.slow
@pytest.mark.process
def test_everything_agrees_on_a_node_with_the_values_of_nvidia_smi(node, tmp_path):
    code, said = run("--output", str(tmp_path), *WITHOUT_LOAD)
    assert [line.split("  ")[0] for line in said.splitlines()] == list(WITHOUT_LOAD)
    assert all(" ok " in line for line in said.splitlines()), said
    assert code == 0
    capture = (tmp_path / "capture.prom").read_text()
    assert "GPU-00000000-0000-0000-0000-000000000007" in capture
    assert not [line for line in node.read_text().splitlines() if line.split(", ")[0] in capture]


@pytest.mark.process
def test_a_value_that_is_not_that_of_nvidia_smi_fails_and_the_others_are_checked(node):
    node.write_text(node.read_text().replace("NVIDIA H200", "NVIDIA H100", 1))
    code, said = run("values beside nvidia-smi", "NVML")
    assert code == 1
    first, second = said.splitlines()
    assert "FAILED       name: nvidia-smi 'NVIDIA H100', label modelName 'NVIDIA H200'" in first
    assert " ok " in second


@pytest.mark.process
def test_a_load_that_cannot_run_is_not_checked_with_the_reason(node):
    code, said = run("duty cycle 50%", "memory")
    assert code == 0
    assert all("not checked  libcuda.so.1 cannot be loaded: " in line for line in said.splitlines()), said


@pytest.mark.process
def test_a_mig_enabled_gpu_is_compared_with_nothing_and_gets_no_load(node, tmp_path):
    put(CUDA, tmp_path / "lib")
    node.write_text(node.read_text().replace("Disabled", "Enabled"))
    code, said = run("values beside nvidia-smi", "duty cycle 50%", "NVML")
    assert code == 0
    assert [line.split("  ")[-1].strip() for line in said.splitlines()] == ["the GPU is MIG-enabled"] * 2 + ["8 GPUs"]


@pytest.mark.process
@pytest.mark.slow
def test_a_load_that_is_not_read_fails(node, tmp_path):
    put(CUDA, tmp_path / "lib")
    code, said = run("duty cycle 30%", "memory", "list of processes")
    assert code == 1
    duty, memory, processes = said.splitlines()
    assert re.search(r"FAILED +computed 0\.[0-9]+ of the time; read engine 0\.[0-9]+, SM 0\.[0-9]+$", duty), said
    assert re.search(r"FAILED +allocated 8192 MiB, memory used grew by 0 MiB$", memory), said
    assert "not checked  of 0 processes" in processes, said


def test_a_machine_without_a_gpu_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run() == (NO_GPU, "not checked: nvidia-smi is not on PATH\n")


def test_a_check_that_does_not_exist_is_an_error():
    command = (sys.executable, "-m", "tests.gpu", "nothing")
    answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert answer.returncode == 2
    assert "no such check: nothing" in answer.stderr


@pytest.mark.gpu
@pytest.mark.slow
def test_a_real_gpu_reads_what_it_does(tmp_path):
    if reason := no_gpu():
        pytest.skip(reason)
    code, said = run("--output", str(tmp_path))
    print(said)
    assert code == 0, said
    assert len(said.splitlines()) == len(CHECKS)
