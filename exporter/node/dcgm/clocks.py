"""The two clocks of the `dcgm` source, which tests replace."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clocks:
    """`wall` gives Unix seconds, for the age of values; `steady` never jumps, for pauses."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
