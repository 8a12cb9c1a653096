"""The type `Allocation`: a device id that the kubelet gave to a container. Also keeps the last ones for a minute.

A device id is a text that a device plugin chose; `matching/device_id.py` parses it.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

KEEP_SECONDS = 60.0
"""How long the last allocations are used while the kubelet does not answer; after that the allocation is unknown."""


UNLISTED = "unlisted:"
"""What the id of a device begins with that a container was given and of which nothing says which one it is."""
OTHERS_UNKNOWN = f"{UNLISTED}any"
"""Stands for every device that was given to a container without anything that says so."""


class ClaimName(NamedTuple):
    """The ResourceClaim (DRA) through which a container was given a device; empty for a device plugin's device."""

    namespace: str = ""
    name: str = ""
    share_id: str = ""
    """Which share of the device the claim has, where several claims can have one; else empty."""


NO_CLAIM = ClaimName()


class Allocation(NamedTuple):
    """One device id of one resource, given to one container.

    `resource` is the name that the kubelet reports (`nvidia.com/gpu`). For a device of a ResourceClaim it is the name
    of the DRA driver (`gpu.nvidia.com`), and `device_id` is `<pool>/<device>`. The kubelet never reports a pod's uid:
    pod metadata does.
    """

    namespace: str
    pod: str
    container: str
    resource: str
    device_id: str
    pod_uid: str = ""
    placed: bool = False
    """Whether a scheduler has stated it that chooses GPUs or gives out parts of them, and not the kubelet."""
    claim: ClaimName = NO_CLAIM


Allocations = tuple[Allocation, ...]
"""Sorted and without repetition: equal when the same containers have the same devices."""


class LastKnownAllocations:
    """Returns the last known allocations during short outages of the kubelet, until they are too old.

    A restarting kubelet does not answer for some seconds, while the pods keep their devices. The kubelet's health is
    not decided here: `gpugauge_source_up` follows from the failed read itself.
    """

    def __init__(self, seconds: float = KEEP_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._last: Allocations | None = None
        self._read_at = 0.0

    def latest(self, fresh: Allocations | None) -> Allocations | None:
        """Return `fresh` where the kubelet answered, else the last answer up to its age limit, else None (unknown)."""
        if fresh is not None:
            self._last, self._read_at = fresh, self._clock()
        elif self._clock() - self._read_at > self._seconds:
            self._last = None
        return self._last
