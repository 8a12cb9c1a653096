"""What is checked on a machine with a GPU: a node exporter that reads it through NVML, idle and under known loads."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import pynvml

from bench.fixture import ROOT
from bench.process import RunningExporter, running
from tests.gpu.capture import masked
from tests.gpu.reference import NUMBERS, Exposition, NoGpuError, differences, gpus, is_whole, nvidia_smi, within

ENGINE, SM, TENSOR = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
UTILIZATION, USED = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"
COUNTERS = "".join(
    f"{name}, {kind}, Measured.\n"
    for name, kind in (
        *((each.metric, "gauge") for each in NUMBERS),
        *((name, "gauge") for name in (ENGINE, SM, TENSOR, "DCGM_FI_PROF_DRAM_ACTIVE")),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter"),
        ("DCGM_FI_DRIVER_VERSION", "label"),
    )
)
COLLECTED = "gpugauge_last_collection_timestamp_seconds"
SETTLE_COLLECTIONS, LOAD_COLLECTIONS = 3, 8
"""Collections after a load has begun that may see it in part, and those that are averaged."""
LOAD_SECONDS = 18.0
FULL = 0.9
LIMIT_SECONDS = 30.0
MIG_ENABLED = "the GPU is MIG-enabled"
MEMORY_SHARE = 0.1


class CheckFailedError(Exception):
    """What was read is not what it must be; the message has both."""


class NotCheckedError(Exception):
    """This machine cannot show it; the message says why."""


@dataclass(frozen=True)
class Machine:
    """The exporter that reads the GPUs of this machine."""

    exporter: RunningExporter
    output: Path

    def exposition(self) -> Exposition:
        return Exposition.of(self.exporter.exposition().decode())

    def collections(self, number: int) -> list[Exposition]:
        """Wait for so many collections, each once. Raises CheckFailedError when they do not come."""
        found: dict[float, Exposition] = {}
        end = time.monotonic() + number * 2 + LIMIT_SECONDS
        while len(found) <= number:  # the first may be from before the call
            if time.monotonic() > end:
                raise CheckFailedError(f"only {len(found)} collections in {number * 2 + LIMIT_SECONDS:.0f} s")
            exposition = self.exposition()
            found.setdefault(exposition.value(COLLECTED) or 0.0, exposition)
            time.sleep(0.1)
        return list(found.values())[1:]


@contextmanager
def machine(output: Path) -> Iterator[Machine]:
    """Run a node exporter that reads NVML every second."""
    with tempfile.TemporaryDirectory() as folder:
        counters = Path(folder) / "counters.csv"
        counters.write_text(COUNTERS)
        flags = ("--source", "nvml", "--collect-interval", "1000", "--collectors", str(counters))
        with running(flags, {}, Path(folder)) as exporter:
            exporter.wait_for(b"\nDCGM_FI_DEV_GPU_TEMP{")
            yield Machine(exporter, output)


@dataclass
class Load:
    """A known load that runs in another process."""

    process: subprocess.Popen[str]
    uuid: str = field(default="")

    def line(self) -> dict:
        """What it says next. Raises NotCheckedError when it cannot run."""
        said = json.loads(self.process.stdout.readline() or '{"error": "the load ended"}')
        if "error" in said:
            raise NotCheckedError(said["error"])
        return said


@contextmanager
def load(*arguments: object) -> Iterator[Load]:
    """Start a load and wait until it may begin."""
    command = [sys.executable, "-m", "tests.gpu.load", *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            started = Load(process)
            started.uuid = started.line()["uuid"]
            if not is_whole(gpus().get(started.uuid, {})):
                raise NotCheckedError(MIG_ENABLED)
            yield started
        finally:
            process.kill()


def averages(machine: Machine, kind: str, share: float, *metrics: str) -> tuple[float, list[float | None]]:
    """Put a load on the first GPU. Returns its true share, and the average of each metric meanwhile."""
    with load(kind, share, LOAD_SECONDS) as running_load:
        machine.collections(SETTLE_COLLECTIONS)
        seen = machine.collections(LOAD_COLLECTIONS)
        if running_load.process.poll() is not None:
            raise CheckFailedError(f"the load ended within {SETTLE_COLLECTIONS + LOAD_COLLECTIONS} collections")
        uuid, true = running_load.uuid, running_load.line()["share"]
    values = [[each.value(metric, uuid) for each in seen] for metric in metrics]
    return true, [fmean(found) if (found := [v for v in some if v is not None]) else None for some in values]


def check_nvml(machine: Machine) -> str:
    """The source is up without a problem, and sees every GPU."""
    exposition, expected = machine.exposition(), gpus()
    up = [value for (name, _), (labels, value) in exposition.series.items() if name == "gpugauge_source_up"]
    observed = exposition.value("gpugauge_devices_observed")
    if up != [1.0] or "gpugauge_source_problem{" in exposition.text:
        problems = [line for line in exposition.text.splitlines() if line.startswith("gpugauge_source_")]
        raise CheckFailedError("; ".join(problems))
    missing = [uuid for uuid in expected if exposition.value("DCGM_FI_DEV_GPU_TEMP", uuid) is None]
    if missing or observed != len(expected):
        raise CheckFailedError(f"{observed} of {len(expected)} GPUs; without values: {missing}")
    return f"{len(expected)} GPUs"


def check_values(machine: Machine) -> str:
    """Identity and values are those of nvidia-smi."""
    before, theirs = machine.collections(1)[0], {uuid: row for uuid, row in gpus().items() if is_whole(row)}
    after = machine.collections(1)[0]
    if not theirs:
        raise NotCheckedError(MIG_ENABLED)
    found = [difference for row in theirs.values() for difference in differences(row, before, after)]
    if found:
        raise CheckFailedError("; ".join(found))
    return f"{len(NUMBERS)} values of {len(theirs)} GPUs"


def check_gpm(machine: Machine) -> str:
    """On Hopper and newer, engine activity is read from NVML alone."""
    pynvml.nvmlInit()
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
        uuid = pynvml.nvmlDeviceGetUUID(handle)
        supported = major >= 9 and pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice
    except pynvml.NVMLError as error:
        raise NotCheckedError(f"GPM: {error}") from None
    finally:
        pynvml.nvmlShutdown()
    if not supported:
        raise NotCheckedError(f"compute capability {major}.{minor} has no GPM here")
    seen = machine.collections(2)[-1]
    missing = [name for name in (ENGINE, SM, TENSOR) if seen.value(name, uuid) is None]
    if missing:
        raise CheckFailedError(f"absent: {', '.join(missing)}")
    return f"idle: engine {seen.value(ENGINE, uuid):.3f}, tensor {seen.value(TENSOR, uuid):.3f}"


def check_duty(share: float) -> Callable[[Machine], str]:
    """A GPU that computes for this share of the time reads that."""

    def check(machine: Machine) -> str:
        true, (engine, sm, utilization) = averages(machine, "duty", share, ENGINE, SM, UTILIZATION)
        read = {"engine": engine, "SM": sm}
        if engine is None:
            read = {"utilization": None if utilization is None else utilization / 100}
        wrong = [name for name, value in read.items() if value is None or not within(value, true)]
        shown = ", ".join(f"{name} {'absent' if value is None else f'{value:.3f}'}" for name, value in read.items())
        if wrong:
            raise CheckFailedError(f"computed {true:.3f} of the time; read {shown}")
        return f"computed {true:.3f} of the time; read {shown}"

    check.__doc__ = f"A GPU that computes {share:.0%} of the time reads that."
    return check


def check_tensor(machine: Machine) -> str:
    """Tensor activity is in proportion to the time in which matrices are multiplied."""
    true_full, (full,) = averages(machine, "tensor", FULL, TENSOR)
    if full is None:
        raise NotCheckedError("tensor activity is not measured here")
    true_half, (half,) = averages(machine, "tensor", FULL / 2, TENSOR)
    shown = f"multiplied {true_full:.3f} and {true_half:.3f} of the time; read {full:.3f} and {half or 0:.3f}"
    if full < 0.2 or half is None or not within(half, full * true_half / true_full):
        raise CheckFailedError(shown)
    return shown


def check_memory(machine: Machine) -> str:
    """An allocation of known size is in the memory used."""

    def used(uuid: str) -> float:
        value = machine.collections(2)[-1].value(USED, uuid)
        if value is None:
            raise CheckFailedError(f"{USED} is absent")
        return value * 2**20

    return _grows(used, "memory used")


def check_processes(machine: Machine) -> str:
    """An allocation of known size is in the driver's list of processes."""
    return _grows(_process_bytes, "memory of the processes")


def _grows(read: Callable[[str], float], what: str) -> str:
    """Read bytes by UUID before and after an allocation."""
    with load("memory", MEMORY_SHARE) as running_load:
        before = read(running_load.uuid)
        running_load.process.stdin.write("\n")
        running_load.process.stdin.flush()
        allocated = running_load.line()["bytes"]
        grown = read(running_load.uuid) - before
    shown = f"allocated {allocated / 2**20:.0f} MiB, {what} grew by {grown / 2**20:.0f} MiB"
    if not within(grown / allocated, 1):
        raise CheckFailedError(shown)
    return shown


def _process_bytes(uuid: str) -> int:
    """Memory of all processes that compute on a GPU. Raises NotCheckedError where the driver does not say it."""
    pynvml.nvmlInit()
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        used = [each.usedGpuMemory for each in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    except pynvml.NVMLError as error:
        raise NotCheckedError(f"list of processes: {error}") from None
    finally:
        pynvml.nvmlShutdown()
    if not used or None in used:
        raise NotCheckedError(f"of {len(used)} processes that are listed the memory is not known")
    return sum(used)


def check_capture(machine: Machine) -> str:
    """What is exposed is written to a file that names nobody."""
    text = masked(machine.collections(1)[0].text)
    left = [uuid for uuid, row in gpus().items() if uuid in text or row.get("serial", uuid) in text]
    if left:
        raise CheckFailedError(f"not masked: {len(left)} GPUs")
    file = machine.output / "capture.prom"
    file.write_text(text, encoding="utf-8")
    return str(file)


CHECKS: dict[str, Callable[[Machine], str]] = {
    "NVML": check_nvml,
    "values beside nvidia-smi": check_values,
    "GPM": check_gpm,
    "capture": check_capture,
    **{f"duty cycle {share:.0%}": check_duty(share) for share in (0.1, 0.3, 0.5, 0.9)},
    "tensor cores": check_tensor,
    "memory": check_memory,
    "list of processes": check_processes,
}


def no_gpu() -> str | None:
    """Why nothing can be checked here; None where there is a GPU."""
    try:
        nvidia_smi("-L")
        gpus()
    except NoGpuError as error:
        return str(error)
    return None
