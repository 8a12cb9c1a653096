"""What device ids mean, in every spelling, and which device they find."""

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.device_id import (
    Claim,
    Index,
    Instance,
    MigUuid,
    Minor,
    PciAddress,
    Reference,
    Unknown,
    Uuid,
    names_gpu,
    parse,
    reference,
    resource_label,
)
from exporter.node.attribution.device_lookup import DeviceLookup, Unmatched
from exporter.node.devices.readings import Device

U = "6f9bdf1c-2d0a-4c1e-9d34-0a1b2c3d4e5f"
M = "0b8fd1a3-98a7-5c11-8a0e-b1f4b2d3a001"

SPELLINGS = [
    (f"GPU-{U}", Reference(Uuid(f"gpu-{U}"))),
    (f"GPU-{U.upper()}", Reference(Uuid(f"gpu-{U}"))),
    ("GPU-short", Reference(Uuid("gpu-short"))),
    (f"GPU-{U}::3", Reference(Uuid(f"gpu-{U}"), "replica", "3")),
    (f"GPU-{U}::3::4", Reference(Uuid(f"gpu-{U}"), "replica", "3::4")),
    (f"MIG-{M}", Reference(MigUuid(f"mig-{M}"))),
    (f"MIG-{M}::7", Reference(MigUuid(f"mig-{M}"), "replica", "7")),
    (f"MIG-GPU-{U}/7/0", Reference(Instance(Uuid(f"gpu-{U}"), 7, 0))),
    (f"MIG-GPU-{U}/7/0::1", Reference(Instance(Uuid(f"gpu-{U}"), 7, 0), "replica", "1")),
    ("nvidia0", Reference(Minor(0))),
    ("nvidia12", Reference(Minor(12))),
    ("nvidia0/gi3", Reference(Instance(Minor(0), 3, -1))),
    ("nvidia0/vgpu2", Reference(Minor(0), "replica", "2")),
    ("nvidia0/gi3/vgpu2", Reference(Instance(Minor(0), 3, -1), "replica", "2")),
    (f"GPU-{U}-4", Reference(Uuid(f"gpu-{U}"), "fraction", "4")),
    ("0", Reference(Index(0))),
    ("0000:3b:00.0", Reference(PciAddress("00000000:3B:00.0"), "passthrough")),
    ("00000000:3B:00.0", Reference(PciAddress("00000000:3B:00.0"), "passthrough")),
    ("3b:00.0", Reference(PciAddress("00000000:3B:00.0"), "passthrough")),
    ("all", Reference(Unknown("all"))),
    ("tegra", Reference(Unknown("tegra"))),
    ("", Reference(Unknown(""))),
    ("::0", Reference(Unknown("::0"))),
    ("nvidia0/vgpu2/gi3", Reference(Unknown("nvidia0/vgpu2/gi3"))),
    (f"MIG-GPU-{U}/7", Reference(Unknown(f"MIG-GPU-{U}/7"))),
    ("nvidia٣", Reference(Unknown("nvidia٣"))),
]


@pytest.mark.parametrize(("device_id", "meant"), SPELLINGS)
def test_each_spelling_has_one_meaning(device_id, meant):
    assert parse(device_id) == meant


@given(st.text())
@example("9" * 5000)
@example("nvidia" + "9" * 5000)
@example("İ::\x00")
def test_no_text_makes_parsing_fail(text):
    meant = parse(text)
    assert isinstance(meant, Reference)
    assert meant.share in {"exclusive", "replica", "fraction", "passthrough"}


uuids = st.uuids().map(str)
numbers = st.integers(0, 999_999_999)
slots = st.none() | st.integers(0, 5000)


def replicated(device_id, slot):
    return device_id if slot is None else f"{device_id}::{slot}"


def shared(target, slot):
    return Reference(target) if slot is None else Reference(target, "replica", str(slot))


@given(uuids, slots, st.booleans())
def test_a_gpus_uuid_is_found_again_in_any_case_and_under_any_replica(uuid, slot, upper):
    spelled = f"GPU-{uuid.upper() if upper else uuid}"
    assert parse(replicated(spelled, slot)) == shared(Uuid(f"gpu-{uuid}"), slot)


@given(uuids, slots)
def test_a_mig_uuid_is_found_again_under_any_replica(uuid, slot):
    assert parse(replicated(f"MIG-{uuid}", slot)) == shared(MigUuid(f"mig-{uuid}"), slot)


@given(uuids, numbers, numbers, slots)
def test_the_older_mig_form_gives_parent_and_ids_again(uuid, gi, ci, slot):
    assert parse(replicated(f"MIG-GPU-{uuid}/{gi}/{ci}", slot)) == shared(Instance(Uuid(f"gpu-{uuid}"), gi, ci), slot)


@given(numbers, st.none() | numbers, slots)
def test_a_device_file_gives_minor_instance_and_slot_again(minor, gi, slot):
    target = Minor(minor) if gi is None else Instance(Minor(minor), gi, -1)
    spelled = f"nvidia{minor}" + ("" if gi is None else f"/gi{gi}") + ("" if slot is None else f"/vgpu{slot}")
    assert parse(spelled) == shared(target, slot)


@given(uuids, numbers)
def test_hamis_single_dash_is_never_taken_for_a_part_of_the_uuid(uuid, slot):
    assert parse(f"GPU-{uuid}-{slot}") == Reference(Uuid(f"gpu-{uuid}"), "fraction", str(slot))


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFF), st.integers(0, 0x1F), st.integers(0, 7))
def test_a_pci_address_is_spelled_as_devices_spell_theirs(domain, bus, device, function):
    meant = parse(f"{domain:04x}:{bus:02x}:{device:02x}.{function}")
    assert meant.target == PciAddress(f"{domain:08X}:{bus:02X}:{device:02X}.{function}")


@pytest.mark.parametrize(
    "resource",
    [
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/mig-1g.10gb.me",
        "nvidia.com/mig-1g.10gb.shared",
        "gpu.nvidia.com",
    ],
)
def test_the_plugins_resources_count_gpus(resource):
    assert names_gpu(resource)


@pytest.mark.parametrize(
    "resource",
    [
        "nvidia.com/gpumem",
        "nvidia.com/gpu.product",
        "nvidia.com/mig-",
        "amd.com/gpu",
        "xnvidia.com/gpu",
        "nvidia_com/gpu",
        "",
    ],
)
def test_other_resources_do_not_count_gpus(resource):
    assert not names_gpu(resource)


def test_further_resources_count_gpus_when_they_are_named_exactly():
    assert names_gpu("nvidia.com/GH100_H100_PCIE", frozenset({"nvidia.com/GH100_H100_PCIE"}))
    assert not names_gpu("nvidia.com/GH100_H100", frozenset({"nvidia.com/GH100_H100_PCIE"}))


def test_resources_are_labelled_as_kube_state_metrics_labels_them():
    assert resource_label("nvidia.com/gpu") == "nvidia_com_gpu"
    assert resource_label("nvidia.com/mig-1g.10gb") == "nvidia_com_mig_1g_10gb"


@given(st.text())
def test_a_resource_label_has_only_letters_digits_and_underscores(resource):
    assert set(resource_label(resource)) <= set(string.ascii_letters + string.digits + "_")


def test_a_claims_device_is_no_device_plugins_id():
    allocation = Allocation("n", "p", "c", "gpu.nvidia.com", "nvidia0")
    assert reference(allocation) == Reference(Claim("nvidia0"))


BOARD = Device(f"GPU-{U}", index=0, pci_bus_id="00000000:3B:00.0", minor=4, model="NVIDIA H200")
NO_MINOR = Device("GPU-b", index=1, pci_bus_id="00000000:5E:00.0", minor=-1, model="NVIDIA H200", mig_enabled=False)
MIGGED = Device("GPU-c", index=2, pci_bus_id="00000000:86:00.0", minor=2, model="NVIDIA H200", mig_enabled=True)
GI7 = Device("GPU-c", 2, "00000000:86:00.0", 2, "NVIDIA H200", gi=7, profile="1g.18gb", mig_uuids=(f"MIG-{M}",))
GI1 = Device("GPU-c", 2, "00000000:86:00.0", 2, "NVIDIA H200", gi=1, profile="2g.35gb", mig_uuids=("MIG-c0", "MIG-c1"))
CI0 = Device("GPU-c", 2, "00000000:86:00.0", 2, "NVIDIA H200", gi=1, ci=0, profile="1c.2g.35gb", mig_uuids=("MIG-c0",))
CI1 = Device("GPU-c", 2, "00000000:86:00.0", 2, "NVIDIA H200", gi=1, ci=1, profile="1c.2g.35gb", mig_uuids=("MIG-c1",))
OLD_GI = Device("GPU-d", 3, "00000000:AF:00.0", 3, "NVIDIA A100", gi=3, mig_uuids=("MIG-GPU-d/3/0",))
OLD = Device("GPU-d", 3, "00000000:AF:00.0", 3, "NVIDIA A100", mig_enabled=True)
INVENTORY = (BOARD, NO_MINOR, MIGGED, GI7, CI0, GI1, CI1, OLD, OLD_GI)


def find(device_id):
    return DeviceLookup(INVENTORY).find(parse(device_id).target)


@pytest.mark.parametrize(
    ("device_id", "device"),
    [
        (f"GPU-{U}", BOARD),
        (f"gpu-{U.upper()}::1", BOARD),
        (f"GPU-{U}-9", BOARD),
        ("nvidia4", BOARD),
        ("0", BOARD),
        ("0000:3b:00.0", BOARD),
        ("nvidia1", NO_MINOR),
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
    ("device_id", "reason", "doubt"),
    [
        ("GPU-nowhere", "no_such_gpu", ()),
        ("nvidia9", "no_such_gpu", ()),
        ("nvidia9/gi1", "no_such_gpu", ()),
        ("MIG-GPU-nowhere/1/0", "no_such_gpu", ()),
        ("17", "no_such_gpu", ()),
        ("0000:00:00.0", "no_such_gpu", ()),
        # An instance nobody can find may be any instance, or on a GPU that was divided a moment ago.
        ("MIG-nowhere", "no_such_instance", (BOARD, GI7, CI0, CI1, OLD_GI)),
        ("MIG-GPU-c/9/0", "no_such_instance", (GI7, CI0, CI1)),
        ("nvidia1/gi2", "no_such_instance", (NO_MINOR,)),
        ("GPU-c", "partitioned", (GI7, CI0, CI1)),
        ("GPU-c::0", "partitioned", (GI7, CI0, CI1)),
        ("nvidia2/gi1", "partitioned", (CI0, CI1)),
        ("all", "unknown_form", (BOARD, NO_MINOR, GI7, CI0, CI1, OLD_GI)),
    ],
)
def test_an_id_without_device_says_why_and_what_it_may_mean(device_id, reason, doubt):
    assert find(device_id) == Unmatched(reason, frozenset(INVENTORY.index(device) for device in doubt))


def test_a_claim_may_mean_any_device():
    found = DeviceLookup((BOARD, NO_MINOR)).find(Claim("node/gpu-0"))
    assert found == Unmatched("unresolved_claim", frozenset({0, 1}))


@given(st.permutations(INVENTORY), st.text() | st.sampled_from([spelling for spelling, _ in SPELLINGS]))
def test_what_is_found_does_not_depend_on_the_order_of_devices(inventory, device_id):
    found = DeviceLookup(tuple(inventory)).find(parse(device_id).target)
    expected = find(device_id)
    if isinstance(expected, int):
        assert inventory[found] is INVENTORY[expected]
    else:
        assert found.reason == expected.reason
