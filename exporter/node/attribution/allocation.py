"""Which container holds which device, as the kubelet names it; and how long the last answer may be held.

Plain data: nothing here knows what a device id means (see device_id.py) or where an answer came from.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

HOLD_SECONDS = 60.0


class Allocation(NamedTuple):
    """One device id of one resource, given to one container.

    `resource` is the name the kubelet uses (`nvidia.com/gpu`), or the driver's name for a device of a resource
    claim (`gpu.nvidia.com`, whose `device_id` is then `<pool>/<device>`). The kubelet never says a pod's uid.
    """

    namespace: str
    pod: str
    container: str
    resource: str
    device_id: str
    pod_uid: str = ""


Allocations = tuple[Allocation, ...]
"""Sorted and without repetition: equal when the same containers hold the same devices."""


class HeldAllocations:
    """Bridges short outages of the kubelet: gives the last known allocations until they are too old to be true.

    A restarting kubelet does not answer for some seconds while the pods keep their devices. Health is judged
    elsewhere, from the failed read itself; nothing here hides it.
    """

    def __init__(self, seconds: float = HOLD_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._last: Allocations | None = None
        self._read_at = 0.0

    def latest(self, fresh: Allocations | None) -> Allocations | None:
        """`fresh` where there is an answer; else the last one up to its age limit; else None, meaning unknown."""
        if fresh is not None:
            self._last, self._read_at = fresh, self._clock()
        elif self._clock() - self._read_at > self._seconds:
            self._last = None
        return self._last
