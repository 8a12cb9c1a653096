"""What nvidia-smi says of every GPU, and how far our values may be from it."""

import csv
import io
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

ABSENT = {"[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[Insufficient Permissions]", ""}
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Compared:
    """A number that both have: nvidia-smi's column, our metric, and the largest difference that may be."""

    column: str
    metric: str
    absolute: float
    relative: float = 0.0

    def agrees(self, ours: float, theirs: float) -> bool:
        return abs(ours - theirs) <= self.absolute + self.relative * abs(theirs)


NUMBERS = (
    Compared("memory.total", "DCGM_FI_DEV_FB_TOTAL", 1),
    Compared("memory.used", "DCGM_FI_DEV_FB_USED", 16, 0.03),
    Compared("temperature.gpu", "DCGM_FI_DEV_GPU_TEMP", 3),
    Compared("power.draw", "DCGM_FI_DEV_POWER_USAGE", 5, 0.1),
    Compared("enforced.power.limit", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 1),
    Compared("clocks.sm", "DCGM_FI_DEV_SM_CLOCK", 30, 0.03),
    Compared("clocks.mem", "DCGM_FI_DEV_MEM_CLOCK", 30, 0.03),
    Compared("utilization.gpu", "DCGM_FI_DEV_GPU_UTIL", 3),
)
"""MiB, degrees, watts, MHz and percent: in the units of both. What moves by itself may differ by what it moves."""
TEXTS = {"index": "gpu", "pci.bus_id": "pci_bus_id", "name": "modelName", "driver_version": "DCGM_FI_DRIVER_VERSION"}
"""nvidia-smi's columns and our labels that must be equal."""
MIG = "mig.mode.current"
COLUMNS = ("uuid", "serial", MIG, *TEXTS, *(each.column for each in NUMBERS))


class NoGpuError(Exception):
    """There is no GPU to test with; the message says why."""


def nvidia_smi(*arguments: str) -> str:
    """Run nvidia-smi. Raises NoGpuError where it is missing or does not find a GPU."""
    try:
        answer = subprocess.run(
            ("nvidia-smi", *arguments), capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS
        )
    except FileNotFoundError:
        raise NoGpuError("nvidia-smi is not on PATH") from None
    except subprocess.TimeoutExpired:
        raise NoGpuError(f"nvidia-smi did not answer within {TIMEOUT_SECONDS} s") from None
    if answer.returncode != 0:
        first = (answer.stdout + answer.stderr).strip().partition("\n")[0]
        raise NoGpuError(f"nvidia-smi ended with {answer.returncode}: {first}")
    return answer.stdout


def gpus() -> dict[str, dict[str, str]]:
    """Every GPU's columns, by UUID. Raises NoGpuError."""
    found = parse(nvidia_smi(f"--query-gpu={','.join(COLUMNS)}", "--format=csv,noheader,nounits"))
    if not found:
        raise NoGpuError("nvidia-smi lists no GPU")
    return found


def parse(text: str) -> dict[str, dict[str, str]]:
    """Read nvidia-smi's table. A cell that says that there is no value is left out."""
    found = {}
    for cells in csv.reader(io.StringIO(text), skipinitialspace=True):
        if len(cells) == len(COLUMNS):
            row = {column: cell.strip() for column, cell in zip(COLUMNS, cells, strict=True)}
            found[row["uuid"]] = {column: cell for column, cell in row.items() if cell not in ABSENT}
    return found


def is_whole(row: Mapping[str, str]) -> bool:
    """Whether a GPU is not MIG-enabled: else its MIG devices have most of the values, and nvidia-smi has none."""
    return row.get(MIG) != "Enabled"


@dataclass(frozen=True)
class Exposition:
    """A `/metrics` response, by metric and UUID."""

    series: Mapping[tuple[str, str], tuple[Mapping[str, str], float]]
    text: str

    @classmethod
    def of(cls, text: str) -> "Exposition":
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        whole = (sample for sample in samples if not sample.labels.get("GPU_I_ID"))
        return cls({(each.name, each.labels.get("UUID", "")): (each.labels, each.value) for each in whole}, text)

    def value(self, metric: str, uuid: str = "") -> float | None:
        found = self.series.get((metric, uuid))
        return None if found is None else found[1]

    def labels(self, metric: str, uuid: str = "") -> Mapping[str, str]:
        found = self.series.get((metric, uuid))
        return {} if found is None else found[0]


def differences(theirs: Mapping[str, str], before: Exposition, after: Exposition) -> Iterator[str]:
    """Name every value of one GPU in which neither of two expositions, before and after nvidia-smi ran, agrees with it.

    A value that only one of the two has is a difference, too.
    """
    uuid = theirs["uuid"]
    labels = before.labels("DCGM_FI_DEV_GPU_TEMP", uuid)
    for column, label in TEXTS.items():
        if column in theirs and labels.get(label) != theirs[column]:
            yield f"{column}: nvidia-smi {theirs[column]!r}, label {label} {labels.get(label)!r}"
    for each in NUMBERS:
        ours = [exposition.value(each.metric, uuid) for exposition in (before, after)]
        known = [value for value in ours if value is not None]
        if each.column not in theirs:
            if known:
                yield f"{each.column}: nvidia-smi has none, {each.metric} {known[0]:g}"
        elif not any(each.agrees(value, float(theirs[each.column])) for value in known):
            shown = " and ".join(f"{value:g}" for value in known) or "absent"
            yield f"{each.column}: nvidia-smi {theirs[each.column]}, {each.metric} {shown}"


def within(measured: float, expected: float, points: float = 3.0) -> bool:
    """Whether two shares (0 to 1) differ by at most so many points of a hundred."""
    return abs(measured - expected) * 100 <= points
