"""What is known of each device in a part of the time: its model, its size, its price. No I/O, no state."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from exporter.commands.mig.models import model_of
from exporter.commands.prometheus.answer import PrometheusSample
from exporter.commands.report.fetch import Answers
from exporter.commands.report.prices import DayPrices

_COMPUTE = re.compile(r"(?:(\d+)c\.)?(\d+)g\.", re.ASCII)
_USUAL_SLICES = 7
"""Compute slices of every GPU with MIG that the table does not have, up to now."""


class GpuKey(NamedTuple):
    """A GPU."""

    cluster: str
    node: str
    uuid: str

    @classmethod
    def of(cls, sample: PrometheusSample) -> Self:
        """The GPU that a sample is about."""
        return cls(sample["cluster"], sample["node"], sample["UUID"])


class ReportDeviceKey(NamedTuple):
    """A GPU or a MIG device."""

    gpu: GpuKey
    gi: str
    ci: str

    @classmethod
    def of(cls, sample: PrometheusSample) -> Self:
        """The device that a sample is about."""
        return cls(GpuKey.of(sample), sample["GPU_I_ID"], sample["GPU_CI_ID"])


def gpu_share(model: str, profile: str) -> float:
    """How much of a GPU a MIG device is, by compute slices: 3/7 for `3g.40gb`. 1 for a whole GPU."""
    found = _COMPUTE.match(profile)
    if found is None:
        return 1.0
    row = model_of(model)
    return int(found[1] or found[2]) / (row.compute if row else _USUAL_SLICES)


@dataclass(frozen=True, slots=True)
class ReportedDevice:
    """A device in a part of the time."""

    model: str
    """Empty where it is not known."""
    profile: str
    """Empty for a whole GPU."""
    share: float
    """How much of a GPU it is."""
    pool: str
    price: float | None
    """Of an hour of the whole GPU."""
    currency: str
    memory: float | None
    """Bytes that can be allocated."""


@dataclass(frozen=True, slots=True)
class DeviceTable:
    """The devices of a part of the time."""

    facts: Mapping[ReportDeviceKey, ReportedDevice]
    steps: Mapping[ReportDeviceKey, float]
    """In how many samples each was there."""

    def of(self, key: ReportDeviceKey) -> ReportedDevice:
        """The facts of a device; those of an unknown GPU where there are none."""
        return self.facts.get(key) or self.facts.get(ReportDeviceKey(key.gpu, "", "")) or _UNKNOWN

    def mig_devices(self) -> Mapping[GpuKey, list[ReportDeviceKey]]:
        """The MIG devices that can be allocated, by GPU: compute instances, where a GPU instance has some."""
        split = {(key.gpu, key.gi) for key in self.facts if key.ci}
        found: dict[GpuKey, list[ReportDeviceKey]] = defaultdict(list)
        for key in self.facts:
            if key.gi and (key.ci or (key.gpu, key.gi) not in split):
                found[key.gpu].append(key)
        return found


_UNKNOWN = ReportedDevice("", "", 1.0, "", None, "", None)


def device_table(answers: Answers, prices: DayPrices) -> DeviceTable:
    """Join what is known of devices."""
    pools = {(each["cluster"], each["node"]): each["pool"] for each in answers["POOLS"]}
    memory = {ReportDeviceKey.of(each): each.value for each in answers["MEMORY_TOTAL"]}
    facts, steps = {}, {}
    # Of two exporters that name a GPU differently, the one that was there longer is right.
    for each in sorted(answers["DEVICES"], key=lambda sample: (bool(sample["model"]), sample.value)):
        key = ReportDeviceKey.of(each)
        pool = pools.get((key.gpu.cluster, key.gpu.node), "")
        price = prices.of(each["model"], pool)
        facts[key] = ReportedDevice(
            each["model"],
            each["GPU_I_PROFILE"],
            gpu_share(each["model"], each["GPU_I_PROFILE"]) if key.gi else 1.0,
            pool,
            price[0] if price else None,
            price[1] if price else "",
            memory.get(key),
        )
        steps[key] = each.value
    return DeviceTable(facts, steps)


def by_device(samples: Iterable[PrometheusSample]) -> dict[ReportDeviceKey, float]:
    """The values of a query by device."""
    return {ReportDeviceKey.of(each): each.value for each in samples}


def by_gpu(samples: Iterable[PrometheusSample]) -> dict[GpuKey, float]:
    """The values of a query by GPU."""
    return {GpuKey.of(each): each.value for each in samples}
