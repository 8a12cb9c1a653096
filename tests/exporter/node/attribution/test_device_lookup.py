"""Which device of an inventory a parsed device id means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.attribution.matching.device_id import (
    OtherVendorDevice,
    parse,
)
from exporter.node.attribution.matching.device_lookup import DeviceLookup, Unmatched
from exporter.node.devices.entities.device import Device
from tests.exporter.node.attribution.test_device_id import SPELLINGS, M, U

GPU = Device(f"GPU-{U}", index=0, pci_bus_id="00000000:3B:00.0", minor=4, model="NVIDIA H200")
NO_MINOR = Device("GPU-b", index=1, pci_bus_id="00000000:5E:00.0", minor=-1, model="NVIDIA H200", mig_enabled=False)
MIG_GPU = Device("GPU-c", index=2, pci_bus_id="00000000:86:00.0", minor=2, model="NVIDIA H200", mig_enabled=True)
GI7 = Device("GPU-c", 2, "00000000:86:00.0", 2, "NVIDIA H200", gi=7, profile="1g.18gb", mig_uuids=(f"MIG-{M}",))
GI1 = Device("GPU-c", 2, "00000000:86:00.0", 2, "NVIDIA H200", gi=1, profile="2g.35gb", mig_uuids=("MIG-c0", "MIG-c1"))
CI0 = Device("GPU-c", 2, "00000000:86:00.0", 2, "NVIDIA H200", gi=1, ci=0, profile="1c.2g.35gb", mig_uuids=("MIG-c0",))
CI1 = Device("GPU-c", 2, "00000000:86:00.0", 2, "NVIDIA H200", gi=1, ci=1, profile="1c.2g.35gb", mig_uuids=("MIG-c1",))
OLD_GI = Device("GPU-d", 3, "00000000:AF:00.0", 3, "NVIDIA A100", gi=3, mig_uuids=("MIG-GPU-d/3/0",))
OLD = Device("GPU-d", 3, "00000000:AF:00.0", 3, "NVIDIA A100", mig_enabled=True)
INVENTORY = (GPU, NO_MINOR, MIG_GPU, GI7, CI0, GI1, CI1, OLD, OLD_GI)


def find(device_id):
    return DeviceLookup(INVENTORY).find(parse(device_id, indices=True).target)


@pytest.mark.parametrize(
    ("device_id", "device"),
    [
        (f"GPU-{U}", GPU),
        (f"gpu-{U.upper()}::1", GPU),
        (f"GPU-{U}-9", GPU),
        ("nvidia4", GPU),
        ("0", GPU),
        ("0000:3b:00.0", GPU),
        ("1", NO_MINOR),
        (f"MIG-{M.upper()}::2", GI7),
        ("MIG-GPU-c/7/0", GI7),
        ("nvidia2/gi7/vgpu1", GI7),
        ("MIG-c0", CI0),
        ("MIG-c1", CI1),
        ("MIG-GPU-c/1/1", CI1),
        ("MIG-GPU-d/3/0", OLD_GI),
    ],
)
def test_each_spelling_finds_its_device(device_id, device):
    assert INVENTORY[find(device_id)] is device


@pytest.mark.parametrize(
    ("device_id", "reason", "candidates"),
    [
        ("GPU-nowhere", "no_such_gpu", ()),
        # A GPU whose minor number is unknown may be any that no other one has; its index does not say which.
        ("nvidia9", "no_such_gpu", (NO_MINOR,)),
        ("nvidia1", "no_such_gpu", (NO_MINOR,)),
        ("nvidia9/gi1", "no_such_gpu", (NO_MINOR,)),
        ("nvidia1/gi2", "no_such_gpu", (NO_MINOR,)),
        ("MIG-GPU-nowhere/1/0", "no_such_gpu", ()),
        ("17", "no_such_gpu", ()),
        ("0000:00:00.0", "no_such_gpu", ()),
        # A MIG device that was not read may be any MIG device, or one of a GPU that was partitioned a moment ago.
        ("MIG-nowhere", "no_such_instance", (GPU, GI7, CI0, CI1, OLD_GI)),
        ("MIG-GPU-c/9/0", "no_such_instance", (GI7, CI0, CI1)),
        ("GPU-c", "partitioned", (GI7, CI0, CI1)),
        ("GPU-c::0", "partitioned", (GI7, CI0, CI1)),
        ("nvidia2/gi1", "partitioned", (CI0, CI1)),
        ("all", "unknown_form", (GPU, NO_MINOR, GI7, CI0, CI1, OLD_GI)),
    ],
)
def test_an_id_without_a_device_gives_the_reason_and_the_devices_that_it_may_mean(device_id, reason, candidates):
    assert find(device_id) == Unmatched(reason, frozenset(INVENTORY.index(device) for device in candidates))


LIVING = Device("GPU-e", index=0, pci_bus_id="00000000:3B:00.0", minor=4, model="NVIDIA H200")


@pytest.mark.parametrize("device_id", ["0", "nvidia4", "0000:3b:00.0"])
@pytest.mark.parametrize("inventory", [(GPU, LIVING), (LIVING, GPU)])
def test_what_names_a_lost_gpu_and_a_living_one_means_the_living_one(inventory, device_id):
    found = DeviceLookup(inventory, down=(GPU.uuid,)).find(parse(device_id, indices=True).target)
    assert inventory[found] is LIVING


LIVING_MIG = Device("GPU-f", 3, "00000000:AF:00.0", 3, "NVIDIA A100", gi=3, mig_uuids=("MIG-f3",))


@pytest.mark.parametrize("inventory", [(OLD, OLD_GI, LIVING_MIG), (LIVING_MIG, OLD_GI, OLD)])
def test_a_mig_device_of_a_lost_gpu_does_not_shadow_one_of_a_living_gpu(inventory):
    found = DeviceLookup(inventory, down=(OLD.uuid,)).find(parse("nvidia3/gi3").target)
    assert inventory[found] is LIVING_MIG


def test_a_lost_gpu_that_no_other_one_replaced_is_found():
    lookup = DeviceLookup(INVENTORY, down=(GPU.uuid,))
    assert {INVENTORY[lookup.find(parse(text, indices=True).target)] for text in ("0", "nvidia4", f"GPU-{U}")} == {GPU}


@pytest.mark.parametrize("device_id", ["0000:77:00.0", "nvidia7"])
def test_a_gpu_whose_address_or_number_is_unknown_may_be_meant(device_id):
    unnamed = Device("GPU-x", index=7, pci_bus_id="", minor=-1, model="NVIDIA H200")
    found = DeviceLookup((GPU, unnamed)).find(parse(device_id).target)
    assert found == Unmatched("no_such_gpu", frozenset({1}))


def test_a_device_of_another_vendor_makes_no_device_uncertain():
    assert DeviceLookup(INVENTORY).find(OtherVendorDevice("card0-1")) == Unmatched("other_vendor")


@given(st.permutations(INVENTORY), st.text() | st.sampled_from([spelling for spelling, _ in SPELLINGS]))
def test_the_order_of_devices_does_not_change_which_one_is_found(inventory, device_id):
    found = DeviceLookup(tuple(inventory)).find(parse(device_id, indices=True).target)
    expected = find(device_id)
    if isinstance(expected, int):
        assert inventory[found] is INVENTORY[expected]
    else:
        assert found.reason == expected.reason


@pytest.mark.parametrize(
    ("resource", "device_id", "candidates"),
    [
        ("nvidia.com/mig-1g.18gb", "MIG-nowhere", (GPU, GI7, CI0, CI1, OLD_GI)),
        ("nvidia.com/mig-1g.20gb.shared", "MIG-nowhere::3", (GPU, GI7, CI0, CI1, OLD_GI)),
        ("nvidia.com/mig-2g.35gb", "MIG-nowhere", (GPU, CI0, CI1, OLD_GI)),
        ("nvidia.com/mig-2g.35gb", "all", (GPU, CI0, CI1, OLD_GI)),
        ("nvidia.com/mig-1g.18gb.me", "MIG-GPU-c/9/0", (GI7, CI0, CI1)),
        ("nvidia.com/gpu", "all", (GPU, NO_MINOR, GI7, CI0, CI1, OLD_GI)),
    ],
)
def test_an_id_of_a_mig_resource_can_only_mean_mig_devices_of_its_size(resource, device_id, candidates):
    lookup = DeviceLookup(INVENTORY)
    missing = lookup.narrowed(lookup.find(parse(device_id).target), resource)
    assert missing.candidates == frozenset(INVENTORY.index(device) for device in candidates)
