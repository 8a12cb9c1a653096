"""Classes of clock events: what holds down the clocks of a GPU (the bits of DCGM field 112), and what it is a sign of.

As of 2026-11-30, from nvml.h (`nvmlClocksEventReasons`). The label `reason` of `gpugauge_clock_event` has those that
are a sign of something.
"""

from collections.abc import Mapping
from enum import StrEnum


class Throttle(StrEnum):
    """What a clock event is a sign of."""

    HEAT = "heat"
    WARMTH = "warmth"
    """Near the highest temperature in use: usual in a warm aisle."""
    POWER_SUPPLY = "power_supply"
    POWER_LIMIT = "power_limit"
    """Usual under full load, unless somebody has lowered the limit."""
    HARDWARE = "hardware"
    """Heat or power supply; GPUs that do not tell which set this bit alone."""
    NOTHING = "nothing"
    """Idleness, or what somebody has set."""


THROTTLES: Mapping[int, tuple[str, Throttle]] = {
    0: ("gpu_idle", Throttle.NOTHING),
    1: ("clocks_setting", Throttle.NOTHING),
    2: ("power_cap", Throttle.POWER_LIMIT),
    3: ("hw_slowdown", Throttle.HARDWARE),
    4: ("sync_boost", Throttle.NOTHING),
    5: ("sw_thermal", Throttle.WARMTH),
    6: ("hw_thermal", Throttle.HEAT),
    7: ("hw_power_brake", Throttle.POWER_SUPPLY),
    8: ("display_clocks", Throttle.NOTHING),
}
"""By bit: the name of the event, and its class."""
