"""The likely causes of low utilization, ranked by how much of it each could explain. No I/O, no state."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

from exporter.commands.explain.past.activity import DeviceActivity, PodActivity
from exporter.reason import Reason

IDLE, BUSY = 0.01, 0.1
_NOTABLE = 0.1
"""A share of the hour below which a cause is not named."""
_RESTARTS = 3
_PCIE_FULL = 16e9
"""Bytes per second of 16 lanes of the third generation, the slowest that data center GPUs have today."""
_BURST = 0.5


class LowUtilizationCause(Reason):
    """Likely causes of low utilization, which the command explain ranks where it may ask Prometheus."""

    CRASH_LOOPING = (
        "crash_looping",
        "Containers of the pod are restarted again and again, and the GPUs wait meanwhile.",
        "Read the log of the container that ended: kubectl logs --previous.",
    )
    NEVER_BUSY = (
        "never_busy",
        "No kernel ran on any of its GPUs.",
        "Check whether the program sees the GPUs (CUDA_VISIBLE_DEVICES, a build for CPUs) and what it waits for.",
    )
    RANK_IDLE = (
        "rank_idle",
        "Some of its GPUs are idle while others work.",
        "Check that each process uses a GPU of its own; else ask for fewer GPUs.",
    )
    CPU_THROTTLED = (
        "cpu_throttled",
        "Its containers want more CPU than their limit.",
        "Raise or remove the CPU limit, or prepare less data on the CPU.",
    )
    DATA_OPERATIONS = (
        "data_operations",
        "The GPUs work in bursts, or processes wait for input and output: data does not come fast enough.",
        "More workers that load data, a faster or nearer copy, larger batches; save checkpoints in the background.",
    )
    PCIE_BOUND = (
        "pcie_bound",
        "Much data moves between host and GPU.",
        "Keep data on the GPU, pin host memory, and copy while kernels run.",
    )
    GPU_THROTTLED = (
        "gpu_throttled",
        "Power, heat or hardware keeps the clocks of its GPUs down.",
        "Look at cooling, power limit and gpugauge_clock_event of the node.",
    )
    SHARED = (
        "shared",
        "Its GPUs are shared with other pods, so that how busy they are is not known for one pod.",
        "Look at all pods of the GPU; a MIG device would be its own.",
    )
    TENSOR_UNUSED = (
        "tensor_unused",
        "Kernels run and hardly use the tensor cores.",
        "Use reduced precision (BF16, FP16, TF32 or FP8) and shapes that suit tensor cores.",
    )


@dataclass(frozen=True, slots=True)
class CauseFound:
    """A cause with the number that speaks for it."""

    cause: LowUtilizationCause
    weight: float
    """From 0 to 1: how much of the low utilization it could explain. It orders causes, and is no probability."""
    text: str


def causes(found: PodActivity) -> list[CauseFound]:
    """The causes for which the last hour speaks, the likeliest first."""
    return sorted(_causes(found), key=lambda each: -each.weight)


def _causes(found: PodActivity) -> Iterator[CauseFound]:
    if found.restarts is not None and found.restarts >= _RESTARTS - 0.5:  # increase() extrapolates
        weight = min(1.0, found.restarts / (2 * _RESTARTS))
        yield CauseFound(LowUtilizationCause.CRASH_LOOPING, weight, f"{found.restarts:.0f} restarts in the last hour")
    if found.cpu_throttled is not None and found.cpu_throttled >= _NOTABLE:
        text = f"throttled in {found.cpu_throttled:.0%} of its CPU periods"
        yield CauseFound(LowUtilizationCause.CPU_THROTTLED, min(1.0, found.cpu_throttled), text)
    yield from _of_activity(found)
    yield from _of_gpus(found.devices)


def _of_activity(found: PodActivity) -> Iterator[CauseFound]:
    """Causes that the share of busy time shows."""
    known = [(each.busy, each.busiest) for each in found.devices if each.busy is not None and each.busiest is not None]
    idle = sum(busiest < IDLE for _, busiest in known)
    if known and idle == len(known) == len(found.devices):
        text = f"none of its {len(known)} GPUs was busy for 1 % of any collection"
        yield CauseFound(LowUtilizationCause.NEVER_BUSY, 0.9, text)
    elif idle:
        text = f"{idle} of its {len(found.devices)} GPUs are idle"
        yield CauseFound(LowUtilizationCause.RANK_IDLE, idle / len(found.devices), text)
    texts, weight = [], 0.0
    if found.io_waiting is not None and found.io_waiting >= _NOTABLE:
        texts, weight = (
            [f"processes waited for input or output in {found.io_waiting:.0%} of the time"],
            found.io_waiting,
        )
    bursts = [(busiest, busy) for busy, busiest in known if busiest >= _BURST and busy < _BURST * busiest]
    if bursts:
        busiest, busy = max(bursts)
        texts.append(f"at most {busiest:.0%} busy, {busy:.0%} on average")
        weight = max(weight, (busiest - busy) / 2)
    if texts:
        yield CauseFound(LowUtilizationCause.DATA_OPERATIONS, min(1.0, weight), "; ".join(texts))


def _of_gpus(devices: tuple[DeviceActivity, ...]) -> Iterator[CauseFound]:
    """Causes that the GPUs themselves show."""
    traffic = max((each.pcie for each in devices if each.pcie is not None), default=0.0)
    if traffic >= _PCIE_FULL / 2:
        text = f"{traffic / 1e9:.1f} GB/s over PCIe on average"
        yield CauseFound(LowUtilizationCause.PCIE_BOUND, min(1.0, traffic / _PCIE_FULL), text)
    throttled = max((share, reason) for reason, share in [("", 0.0), *(e for each in devices for e in each.throttled)])
    if throttled[0] >= _NOTABLE:
        text = f"{throttled[1]} in {throttled[0]:.0%} of the time"
        yield CauseFound(LowUtilizationCause.GPU_THROTTLED, throttled[0], text)
    others = max((each.pods - 1 for each in devices if each.sharing != "exclusive" and each.pods), default=0)
    if others:
        text = f"with {others} other pod{'s' if others > 1 else ''}"
        yield CauseFound(LowUtilizationCause.SHARED, others / (others + 1), text)
    worked = [each for each in devices if each.busy is not None and each.busy >= BUSY and each.tensor is not None]
    if worked and all((each.tensor or 0.0) < IDLE for each in worked):
        busy, tensor = fmean(each.busy or 0.0 for each in worked), fmean(each.tensor or 0.0 for each in worked)
        text = f"tensor cores active {tensor:.1%} of the time, GPUs {busy:.0%}"
        yield CauseFound(LowUtilizationCause.TENSOR_UNUSED, busy / 2, text)
