"""Known loads, on a fake libcuda: what is called, and the share of the time that is computed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from exporter.node.simulation.scenario import load as scenario
from tests.fakes.build import CUDA, put
from tests.gpu import load
from tests.gpu.cuda import Cuda, CudaError, uuid_text

ROOT = Path(__file__).parents[2]
UUID = scenario("whole").at(0.0).gpus[0].spec.uuid
GIB = 2**30


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return put(CUDA, tmp_path_factory.mktemp("libcuda"))


class Gpu:
    """A GPU whose time passes only while it computes and between its computations."""

    def __init__(self, late=0.0):
        self.now, self.late = 100.0, late

    def run(self, seconds):
        self.now += seconds + self.late

    def sleep(self, seconds):
        self.now += seconds


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_a_duty_cycle_computes_its_share_of_the_time(share):
    gpu = Gpu()
    assert load.duty_cycle(gpu.run, share, 10.0, lambda: gpu.now, gpu.sleep) == pytest.approx(share)


def test_time_that_is_lost_counts_as_time_without_computing():
    gpu = Gpu(late=load.PERIOD)
    assert load.duty_cycle(gpu.run, 0.5, 10.0, lambda: gpu.now, gpu.sleep) == pytest.approx(1 / 3)


def run(library, *arguments, given=""):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    command = (sys.executable, "-m", "tests.gpu.load", *arguments)
    answer = subprocess.run(
        command, input=given, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=60, check=False
    )
    return answer.returncode, [json.loads(line) for line in answer.stdout.splitlines()]


@pytest.mark.process
@pytest.mark.parametrize("kind", ["duty", "tensor"])
def test_a_load_names_its_gpu_then_computes_and_says_how_much(library, kind):
    code, (first, last) = run(library, kind, "0.5", "0.5")
    assert code == 0
    assert first == {"uuid": UUID}
    assert 0.2 < last["share"] < 0.6  # a busy machine computes less


@pytest.mark.process
def test_memory_is_allocated_when_a_line_was_read(library):
    assert run(library, "memory", "0.1", given="\n") == (0, [{"uuid": UUID}, {"bytes": 8 * GIB}])


def test_a_failed_call_is_named_with_the_word_of_the_library(library):
    cuda = Cuda(str(library))
    assert (cuda.uuid, cuda.capability, cuda.total_bytes()) == (UUID, (9, 0), 80 * GIB)
    with pytest.raises(CudaError, match=r"^cuModuleLoadData: CUDA_ERROR_INVALID_PTX \(218\)$"):
        cuda.load("nothing")


def test_a_machine_without_libcuda_is_one_message():
    with pytest.raises(CudaError, match=r"^libcuda\.so\.none cannot be loaded: "):
        Cuda("libcuda.so.none")


def test_a_uuid_is_written_as_nvml_writes_it():
    raw = bytes.fromhex("00112233445566778899aabbccddeeff")
    assert uuid_text(raw) == "GPU-00112233-4455-6677-8899-aabbccddeeff"
