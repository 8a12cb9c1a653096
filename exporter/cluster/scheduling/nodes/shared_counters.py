"""Counts devices of DRA that exclude each other, such as the MIG devices that a driver makes of a GPU on demand.

A driver lists each of them and the whole GPU, far more than can exist at once. What they take of the GPU are shared
counters of their pool; a device can be allocated while enough is left of each. No I/O, no state.
"""

from collections.abc import Iterable, Mapping, Sequence

from exporter.cluster.kubernetes.converting.devices import ClaimableDevice, ResourceSlice

DeviceOfSlice = tuple[ResourceSlice, ClaimableDevice]
SharedCounterKey = tuple[str, str, str, str]
"""(driver, pool, set, counter)."""
Shared = Mapping[SharedCounterKey, int]
"""What there is of each counter, in thousandths."""


def shared(slices: Iterable[ResourceSlice]) -> Shared:
    """Return the counters of the pools, which may be in other slices than the devices."""
    return {(each.driver, each.pool, name, counter): value for each in slices for name, counter, value in each.counters}


def after(whole: Shared, allocated: Iterable[DeviceOfSlice]) -> Shared:
    """Return what is left of the counters when these devices are allocated."""
    left = dict(whole)
    for each in allocated:
        left.update({key: left[key] - value for key, value in _consumed(each).items() if key in left})
    return left


def fitting(devices: Sequence[DeviceOfSlice], counters: Shared) -> int:
    """Count how many of these devices can be allocated at once, the smallest first.

    That is the largest number for MIG devices of one size; of several sizes it counts the smallest. A counter that is
    not known excludes nothing.
    """
    sharing = [each for each in devices if each[1].consumes]
    if not sharing:
        return len(devices)
    left, count = dict(counters), len(devices) - len(sharing)
    for each in sorted(sharing, key=lambda each: (_size(each, counters), each[1].name)):
        wanted = _consumed(each)
        if all(left.get(key, value) >= value for key, value in wanted.items()):
            count += 1
            left.update({key: left[key] - value for key, value in wanted.items() if key in left})
    return count


def _consumed(each: DeviceOfSlice) -> dict[SharedCounterKey, int]:
    of, device = each
    return {(of.driver, of.pool, name, counter): value for name, counter, value in device.consumes}


def _size(each: DeviceOfSlice, counters: Shared) -> float:
    """The sum of the shares of the counters that the device takes."""
    return sum(value / counters[key] for key, value in _consumed(each).items() if counters.get(key))
