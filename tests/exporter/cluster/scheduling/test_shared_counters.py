"""MIG devices that a driver makes on demand: a slice lists all that could be made, and they exclude each other."""

import json

import pytest

from exporter.cluster.kubernetes.converting.devices import ClaimableDevice, ResourceSlice
from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.cluster.metrics.nodes import node_families
from exporter.cluster.scheduling.nodes.shared_counters import after, fitting, shared
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, exposed
from tests.exporter.cluster.scheduling.test_device_claims import (
    PLAIN,
    claim,
    claiming,
    cluster,
    device,
    device_class,
)

PLACES = range(8)
"""Of a GPU's memory: each MIG device takes some of them."""
SIZES = {"1g10gb": [[n] for n in range(7)], "2g20gb": [[0, 1], [2, 3], [4, 5]], "3g40gb": [[0, 1, 2, 3], [4, 5, 6, 7]]}


def counters(set_name, places, key="counterSet"):
    return [{key: set_name, "counters": {f"memory-slice-{n}": {"value": "1"} for n in places}}]


def partitionable(gpus=1, *, wrapped=False):
    """The devices of GPUs of which MIG devices can be made, and their counters."""
    devices, sets = [], []
    for gpu in range(gpus):
        name = f"gpu-{gpu}"
        sets += counters(name, PLACES, "name")
        made = [device(name) | {"consumesCounters": counters(name, PLACES)}]
        for size, placements in SIZES.items():
            made += [
                device(f"{name}-mig-{size}-{places[0]}", "mig") | {"consumesCounters": counters(name, places)}
                for places in placements
            ]
        devices += made
    if wrapped:
        devices = [{"name": each.pop("name"), "basic": each} for each in devices]
    return devices, sets


def slices(gpus=1, *, apart=False, wrapped=False):
    devices, sets = partitionable(gpus, wrapped=wrapped)
    pool = {"name": "d1", "generation": 1}
    spec = {"driver": "gpu.nvidia.com", "pool": pool, "nodeName": "d1"}
    parts = (
        [{"devices": devices}, {"sharedCounters": sets}] if apart else [{"devices": devices, "sharedCounters": sets}]
    )
    return [{"metadata": {"name": f"s{n}"}, "spec": spec | part} for n, part in enumerate(parts)]


CLASSES = [device_class(kind="gpu"), device_class("mig.nvidia.com", kind="mig")]


def counts(*given, **how):
    """(capacity, allocatable, requested, free) by class, while these devices are given."""
    pods = [objects.running(claiming(PLAIN, "c"), "d1")] if given else []
    kind = "mig.nvidia.com" if any("mig" in each for each in given) else "gpu.nvidia.com"
    claims = [claim("c", len(given), kind, given=list(given))] if given else []
    found = cluster(pods=pods, resourceslices=slices(**how), resourceclaims=claims, deviceclasses=CLASSES)
    series = exposed(node_families(found, {}))
    result = {}
    for name in ("gpu_nvidia_com", "mig_nvidia_com"):
        own = {key.split("{")[0]: value for key, value in series.items() if f'resource="{name}"' in key}
        result[name[:3]] = tuple(
            own[f"gpugauge_node_gpu_{what}"] for what in ("capacity", "allocatable", "requested", "free")
        )
    return result


@pytest.mark.parametrize("how", [{}, {"apart": True}, {"wrapped": True}])
def test_a_gpu_counts_once_and_as_many_mig_devices_as_can_exist_at_once(how):
    assert counts(**how) == {"gpu": (1, 1, 0, 1), "mig": (7, 7, 0, 7)}


def test_of_a_gpu_that_is_given_no_mig_device_is_free_and_of_another_each_is():
    assert counts("gpu-0", gpus=2) == {"gpu": (2, 2, 1, 1), "mig": (14, 14, 0, 7)}


@pytest.mark.parametrize(
    ("given", "free"),
    [
        (["gpu-0-mig-1g10gb-0"], 6),
        (["gpu-0-mig-3g40gb-0"], 3),
        (["gpu-0-mig-3g40gb-0", "gpu-0-mig-2g20gb-4"], 1),
        ([f"gpu-0-mig-1g10gb-{n}" for n in range(7)], 0),
    ],
)
def test_mig_devices_that_are_given_take_their_places_from_the_gpu_and_the_others(given, free):
    assert counts(*given) == {"gpu": (1, 1, 0, 0), "mig": (7, 7, len(given), free)}


def test_a_slice_with_a_counter_that_is_no_quantity_costs_itself():
    broken = slices()
    broken[0]["spec"]["sharedCounters"][0]["counters"]["memory-slice-0"] = {"value": "much"}
    kind = next(each for each in object_kinds(GPUS) if each.name == "resourceslices")
    items = [*broken, *slices()]
    page = kind.codec.page(json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode())
    assert (len(page.malformed), len(page.records)) == (1, 1)
    assert "much" in page.malformed[0]


def of_slice(*devices, counters_=()):
    pool = ResourceSlice("d", "p", 1, "n", devices, counters_)
    return [(pool, each) for each in devices]


def test_devices_without_counters_are_counted_and_unknown_counters_exclude_nothing():
    plain, sharing = ClaimableDevice("a", "gpu", False), ClaimableDevice("b", "gpu", False, (("s", "c", 1000),))
    devices = of_slice(plain, sharing, counters_=(("s", "c", 1000),))
    assert fitting(devices, shared(each for each, _ in devices[:1])) == 2
    assert fitting(devices, {}) == 2
    left = after({("d", "p", "s", "c"): 1000}, devices[1:])
    assert (left, fitting(devices, left)) == ({("d", "p", "s", "c"): 0}, 1)
