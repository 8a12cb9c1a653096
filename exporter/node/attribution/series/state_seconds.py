"""Counts how long each device was busy, idle, unallocated or shared: `gpugauge_device_state_seconds_total`. No I/O.

Only observed time counts: the time between two collections that both read the device and do not lie far apart. It is
counted for the state that the later one found, because activity is a mean of the time before it.
"""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from exporter.metric import Family, Kind, Labels, Sample, metric
from exporter.node.attribution.matching.attribute import AllocationState, Attribution, Sharing
from exporter.node.devices.computed.device_state import IDLE_BELOW, DeviceColumn, DeviceState
from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields.read_plan import PARTITIONED, Level, device_levels
from exporter.node.devices.fields.validity import MAX_AGE_INTERVALS, MIN_SECONDS
from exporter.node.devices.series.labels import INSTANCE_IDS, instance_ids
from exporter.node.state_file.content import DeviceSeconds

STATE_SECONDS = metric(
    "gpugauge_device_state_seconds_total",
    Kind.COUNTER,
    "Seconds in which a device was observed: allocated and busy, allocated and idle (less than 1 % busy), unallocated, "
    "shared, or unknown. Time in which it was not read is in none of them.",
    "UUID",
    *INSTANCE_IDS,
    "state",
    "node",
    optional=(*INSTANCE_IDS, "node"),
)
METRICS = (STATE_SECONDS,)
_SHARED: frozenset[Sharing | None] = frozenset({"time-slicing", "mps", "dra-shared", "fraction"})
_ALONE: frozenset[Sharing | None] = frozenset({"exclusive", "passthrough"})


class CountedDevice(NamedTuple):
    """What identifies a device over time: a MIG device that is made again with other ids or profile is another one."""

    uuid: str
    gi: int
    ci: int
    profile: str


def device_state(allocation: AllocationState, busy: float | None) -> DeviceState:
    """The state of a device that can be allocated; `busy` is None while its activity is not known."""
    if allocation.pods == 0:
        return DeviceState.UNALLOCATED
    if allocation.sharing in _SHARED:
        return DeviceState.SHARED
    if allocation.sharing not in _ALONE or busy is None:
        return DeviceState.UNKNOWN
    return DeviceState.IDLE if busy < IDLE_BELOW else DeviceState.BUSY


class StateSeconds:
    """Counts the seconds of every device that can be allocated. For use by one thread."""

    def __init__(
        self,
        node: str,
        interval: float,
        before: Iterable[DeviceSeconds] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`interval` is between collections, in seconds; `before` was counted earlier; `clock` must be monotonic."""
        self._node, self._clock = node, clock
        self._longest = max(MAX_AGE_INTERVALS * interval, MIN_SECONDS)
        self._seconds = {_key_before(each): _all_states(each.seconds) for each in before}
        self._labels: dict[CountedDevice, dict[DeviceState, Labels]] = {}
        self._inventory: tuple[Device, ...] = ()
        self._levels: tuple[Level, ...] = ()
        self._last = float("-inf")
        self._observed: frozenset[CountedDevice] = frozenset()

    @property
    def counted(self) -> tuple[DeviceSeconds, ...]:
        """What is counted of each device so far."""
        return tuple(DeviceSeconds(*key, dict(seconds)) for key, seconds in sorted(self._seconds.items()))

    def interrupt(self) -> None:
        """Note that the devices were not read: no time counts until they are read twice again."""
        self._observed = frozenset()

    def count(self, attribution: Attribution, busy: DeviceColumn, down: Iterable[str]) -> Family:
        """Count the time since the collection before.

        `busy` is how busy each device is; `down` are the UUIDs of GPUs that cannot be read now.
        """
        unread = frozenset(down)
        if attribution.inventory != self._inventory:
            self._inventory, self._levels = attribution.inventory, device_levels(attribution.inventory)
        self._forget(unread)
        elapsed = self._elapsed()
        observed = set()
        for position, (device, level) in enumerate(zip(self._inventory, self._levels, strict=True)):
            if level in PARTITIONED or device.uuid in unread:
                continue
            key = _key(device)
            seconds = self._seconds.setdefault(key, _all_states({}))
            if key in self._observed:
                seconds[device_state(attribution.states[position], busy[position])] += elapsed
            observed.add(key)
        self._observed = frozenset(observed)
        return Family(STATE_SECONDS, [sample for device in self._inventory for sample in self._samples(device)])

    def _elapsed(self) -> float:
        """Seconds since the collection before; none after a pause so long that nothing is known of the time in it."""
        now = self._clock()
        elapsed, self._last = now - self._last, now
        return elapsed if elapsed <= self._longest else 0.0

    def _forget(self, unread: frozenset[str]) -> None:
        """Forget the devices that are gone. Which MIG devices a GPU has is not known while it cannot be read."""
        pairs = zip(self._inventory, self._levels, strict=True)
        there = {_key(device) for device, level in pairs if level not in PARTITIONED}
        for key in [key for key in self._seconds if key not in there and key.uuid not in unread]:
            del self._seconds[key]
            self._labels.pop(key, None)

    def _samples(self, device: Device) -> Iterable[Sample]:
        key = _key(device)
        seconds = self._seconds.get(key)
        if seconds is None:
            return ()
        labels = self._labels.get(key)
        if labels is None:
            labels = self._labels[key] = {state: self._labels_of(device, state) for state in DeviceState}
        return [(labels[state], value) for state, value in seconds.items()]

    def _labels_of(self, device: Device, state: DeviceState) -> Labels:
        ids = instance_ids(device)
        return STATE_SECONDS.labels(UUID=device.uuid, **ids, state=str(state), node=self._node)


def _key(device: Device) -> CountedDevice:
    return CountedDevice(device.uuid, device.gi, device.ci, device.profile)


def _key_before(counted: DeviceSeconds) -> CountedDevice:
    return CountedDevice(counted.uuid, counted.gi, counted.ci, counted.profile)


def _all_states(seconds: dict[DeviceState, float]) -> dict[DeviceState, float]:
    """One entry per state: a counter that begins with its first second would hide that one."""
    return {state: seconds.get(state, 0.0) for state in DeviceState}
