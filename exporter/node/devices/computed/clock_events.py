"""Clock events: what holds the clocks of a GPU down. Counts the samples of field 112 that have them. No I/O.

In: the bit mask of each GPU in each collection. Out: which events are active now, how many samples of a window had
each, and how often each has begun since the start.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from exporter.node.devices.computed.window import Window
from exporter.reason import Reason


class ClockEventReason(Reason):
    """What holds the clocks of a GPU down: label `clock_event` of `DCGM_EXP_CLOCK_EVENTS_TOTAL` and `…_COUNT`.

    Those that are THROTTLES are also the label `reason` of `gpugauge_clock_event`.
    """

    GPU_IDLE = ("gpu_idle", "Nothing runs on the GPU, so its clocks are low.", "None: it is not a fault.")
    CLOCKS_SETTING = (
        "clocks_setting",
        "The clocks that were set for applications are the limit.",
        "Reset them with nvidia-smi if nobody set them on purpose.",
    )
    POWER_CAP = (
        "power_cap",
        "The power limit is reached, as is usual under full load.",
        "None under full load; else compare the power limit with that of other GPUs of the model.",
    )
    HW_SLOWDOWN = (
        "hw_slowdown",
        "The hardware has halved the clocks or more: it is too hot, or its power supply asked for it.",
        "Look at hw_thermal and hw_power_brake, which tell the two causes apart; check cooling and power supply.",
    )
    SYNC_BOOST = (
        "sync_boost",
        "The GPU is in a group of which all have the clocks of the slowest.",
        "Look for what holds down another GPU of the group, or dissolve the group.",
    )
    SW_THERMAL = (
        "sw_thermal",
        "The driver lowers the clocks because the GPU or its memory is near its highest temperature in use.",
        "Check air flow, inlet temperature and fans.",
    )
    HW_THERMAL = (
        "hw_thermal",
        "The hardware lowers the clocks because the temperature is too high.",
        "Check cooling at once; take the node out of service if it stays.",
    )
    HW_POWER_BRAKE = (
        "hw_power_brake",
        "The power supply of the system asked for lower clocks.",
        "Check power supplies, their redundancy and the power budget of the chassis.",
    )
    DISPLAY_CLOCKS = ("display_clocks", "The clocks of a display are the limit.", "None on a node without displays.")


REASONS: Mapping[ClockEventReason, int] = {reason: 1 << bit for bit, reason in enumerate(ClockEventReason)}
"""The bits of field 112, which are those of `nvmlClocksEventReasons` (nvml.h), in their order. The names are those that
dcgm-exporter has for them. A bit that is not here has no name yet and is left out."""


THROTTLES = tuple(reason for reason in ClockEventReason if reason == "power_cap" or reason.startswith(("hw_", "sw_")))
"""The reasons that `gpugauge_clock_event` has: power, heat and hardware, but neither idleness nor what somebody set."""


def active(mask: int) -> Iterator[str]:
    """Yield the reasons whose bits are set."""
    return (reason for reason, bit in REASONS.items() if mask & bit)


class ClockEvents:
    """What is known of one GPU."""

    def __init__(self, window_seconds: float) -> None:
        self.mask: int | None = None
        """Of the last sample; None before the first."""
        self.begun: Counter[str] = Counter()
        """How often each event has begun. One that is active in the first sample counts too."""
        self._samples: Window[int] = Window(window_seconds)

    def add(self, mask: int, at: float) -> None:
        """Note a sample of Unix time `at`."""
        self.begun.update(active(mask & ~(self.mask or 0)))
        self.mask = mask
        self._samples.add(mask, at)

    def samples_with(self, now: float) -> Counter[str]:
        """Count, per reason, the samples within the window before `now` that have it."""
        counts: Counter[str] = Counter()
        for mask, number in self._samples.counts(now).items():
            for reason in active(mask):
                counts[reason] += number
        return counts
