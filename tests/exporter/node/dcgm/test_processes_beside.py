"""The processes on GPUs that are read from an engine: NVML lists them in the same reader process."""

import os
import time

import pytest

from exporter.node.devices.readings.processes import GpuProcess
from exporter.node.reader.supervisor import COMMAND, Reader
from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import document, gpu_spec, samples_of_gpu, uuid_of
from tests.exporter.node.reader.fake_readers import LIMIT_SECONDS, PATIENT
from tests.fakes.build import build
from tests.waiting import until

pytestmark = pytest.mark.process

HANG = {"event": "call", "function": "nvmlDeviceGetComputeRunningProcesses_v3", "at": 0.0, "hang": True}


@pytest.fixture
def reads(engine_of, tmp_path):
    """Reads an engine in a reader process until a condition on the readings is true."""
    readers = []

    def start(condition, *, nvml=True, events=()):
        processes = [{"pid": 20, "device": uuid_of(0), "memory_mib": 2048}]
        engine = engine_of(document(gpu_spec(0), processes=processes, events=events), clock=time.time)
        folder = tmp_path / "nvml"
        folder.mkdir()
        if nvml:
            build(folder, only="libnvidia-ml")
        else:
            (folder / "libnvidia-ml.so.1").write_text("this is no library")
        command = ("env", f"LD_LIBRARY_PATH={folder}:{os.environ.get('LD_LIBRARY_PATH', '')}", *COMMAND)
        readers.append(Reader(engine.config(150, interval=5.0, processes=True), PATIENT, command))
        found = []

        def is_read():
            engine.tick()
            try:
                found.append(readers[-1].read())
            except SourceError:
                return False
            return condition(found[-1].processes)

        until(is_read, LIMIT_SECONDS)
        return found[-1]

    yield start
    for reader in readers:
        reader.close()


def test_processes_come_from_nvml_and_everything_else_from_the_engine(reads):
    readings = reads(lambda processes: processes.gpus)
    (gpu,) = readings.processes.gpus
    assert (readings.source, gpu.uuid) == ("dcgm", uuid_of(0))
    (process,) = gpu.processes
    assert process == GpuProcess(20, memory=2048 << 20, sm=process.sm)
    assert samples_of_gpu(readings) == {150: 40}


@pytest.mark.parametrize(
    ("more", "reason"), [({"nvml": False}, "nvml_missing"), ({"events": [HANG]}, "nvml_slow")], ids=["missing", "hangs"]
)
def test_without_nvml_and_while_it_hangs_the_engine_is_read_as_ever(reads, more, reason):
    readings = reads(lambda processes: processes.problem and processes.problem[0] == reason, **more)
    assert readings.processes.gpus == ()
    assert samples_of_gpu(readings) == {150: 40}
