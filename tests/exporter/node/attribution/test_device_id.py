"""Device ids in every spelling: what they are parsed to, and which device they mean."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exporter.gpu_names import gpu_resources
from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.device_id import (
    ClaimDevice,
    DeviceMinor,
    DeviceReference,
    GpuUuid,
    MigInstance,
    MigUuid,
    NvmlIndex,
    PciAddress,
    UnknownId,
    names_gpu,
    parse,
    reference,
)
from exporter.node.attribution.device_lookup import DeviceLookup, Unmatched
from exporter.node.devices.device import Device

U = "6f9bdf1c-2d0a-4c1e-9d34-0a1b2c3d4e5f"
M = "0b8fd1a3-98a7-5c11-8a0e-b1f4b2d3a001"

SPELLINGS = [
    (f"GPU-{U}", DeviceReference(GpuUuid(f"gpu-{U}"))),
    (f"GPU-{U.upper()}", DeviceReference(GpuUuid(f"gpu-{U}"))),
    ("GPU-short", DeviceReference(GpuUuid("gpu-short"))),
    (f"GPU-{U}::3", DeviceReference(GpuUuid(f"gpu-{U}"), "replica", "3")),
    (f"GPU-{U}::3::4", DeviceReference(GpuUuid(f"gpu-{U}"), "replica", "3::4")),
    (f"MIG-{M}", DeviceReference(MigUuid(f"mig-{M}"))),
    (f"MIG-{M}::7", DeviceReference(MigUuid(f"mig-{M}"), "replica", "7")),
    (f"MIG-GPU-{U}/7/0", DeviceReference(MigInstance(GpuUuid(f"gpu-{U}"), 7, 0))),
    (f"MIG-GPU-{U}/7/0::1", DeviceReference(MigInstance(GpuUuid(f"gpu-{U}"), 7, 0), "replica", "1")),
    ("nvidia0", DeviceReference(DeviceMinor(0))),
    ("nvidia12", DeviceReference(DeviceMinor(12))),
    ("nvidia0/gi3", DeviceReference(MigInstance(DeviceMinor(0), 3, -1))),
    ("nvidia0/vgpu2", DeviceReference(DeviceMinor(0), "replica", "2")),
    ("nvidia0/gi3/vgpu2", DeviceReference(MigInstance(DeviceMinor(0), 3, -1), "replica", "2")),
    (f"GPU-{U}-4", DeviceReference(GpuUuid(f"gpu-{U}"), "fraction", "4")),
    ("0", DeviceReference(NvmlIndex(0))),
    ("0000:3b:00.0", DeviceReference(PciAddress("00000000:3B:00.0"), "passthrough")),
    ("00000000:3B:00.0", DeviceReference(PciAddress("00000000:3B:00.0"), "passthrough")),
    ("3b:00.0", DeviceReference(PciAddress("00000000:3B:00.0"), "passthrough")),
    ("all", DeviceReference(UnknownId("all"))),
    ("tegra", DeviceReference(UnknownId("tegra"))),
    ("", DeviceReference(UnknownId(""))),
    ("::0", DeviceReference(UnknownId("::0"))),
    ("nvidia0/vgpu2/gi3", DeviceReference(UnknownId("nvidia0/vgpu2/gi3"))),
    (f"MIG-GPU-{U}/7", DeviceReference(UnknownId(f"MIG-GPU-{U}/7"))),
    ("nvidia٣", DeviceReference(UnknownId("nvidia٣"))),
]


@pytest.mark.parametrize(("device_id", "meant"), SPELLINGS)
def test_each_spelling_is_parsed_to_one_reference(device_id, meant):
    assert parse(device_id) == meant


@given(st.text())
@example("9" * 5000)
@example("nvidia" + "9" * 5000)
@example("İ::\x00")
def test_no_text_makes_parsing_fail(text):
    meant = parse(text)
    assert isinstance(meant, DeviceReference)
    assert meant.share in {"exclusive", "replica", "fraction", "passthrough"}


uuids = st.uuids().map(str)
numbers = st.integers(0, 999_999_999)
replicas = st.none() | st.integers(0, 5000)


def replicated(device_id, replica):
    return device_id if replica is None else f"{device_id}::{replica}"


def shared(target, replica):
    return DeviceReference(target) if replica is None else DeviceReference(target, "replica", str(replica))


@given(uuids, replicas, st.booleans())
def test_a_gpu_uuid_is_parsed_in_any_case_and_with_any_replica(uuid, replica, upper):
    spelled = f"GPU-{uuid.upper() if upper else uuid}"
    assert parse(replicated(spelled, replica)) == shared(GpuUuid(f"gpu-{uuid}"), replica)


@given(uuids, replicas)
def test_a_mig_uuid_is_parsed_with_any_replica(uuid, replica):
    assert parse(replicated(f"MIG-{uuid}", replica)) == shared(MigUuid(f"mig-{uuid}"), replica)


@given(uuids, numbers, numbers, replicas)
def test_the_older_mig_form_is_parsed_to_its_parent_and_ids(uuid, gi, ci, replica):
    assert parse(replicated(f"MIG-GPU-{uuid}/{gi}/{ci}", replica)) == shared(
        MigInstance(GpuUuid(f"gpu-{uuid}"), gi, ci), replica
    )


@given(numbers, st.none() | numbers, replicas)
def test_a_device_file_name_is_parsed_to_minor_number_instance_and_replica(minor, gi, replica):
    target = DeviceMinor(minor) if gi is None else MigInstance(DeviceMinor(minor), gi, -1)
    spelled = f"nvidia{minor}" + ("" if gi is None else f"/gi{gi}") + ("" if replica is None else f"/vgpu{replica}")
    assert parse(spelled) == shared(target, replica)


@given(uuids, numbers)
def test_hamis_suffix_is_never_parsed_as_part_of_the_uuid(uuid, replica):
    assert parse(f"GPU-{uuid}-{replica}") == DeviceReference(GpuUuid(f"gpu-{uuid}"), "fraction", str(replica))


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
def test_the_resources_of_nvidias_plugins_name_gpus(resource):
    assert names_gpu(resource, gpu_resources())


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
def test_other_resources_do_not_name_gpus(resource):
    assert not names_gpu(resource, gpu_resources())


def test_configured_resources_name_gpus_too():
    gpus = gpu_resources(("example.com/H100_PCIE", "amd.com/*"))
    assert names_gpu("example.com/H100_PCIE", gpus)
    assert names_gpu("amd.com/gpu", gpus)
    assert not names_gpu("example.com/H100", gpus)


def test_the_device_of_a_claim_is_not_parsed_as_an_id_of_a_device_plugin():
    allocation = Allocation("n", "p", "c", "gpu.nvidia.com", "nvidia0")
    assert reference(allocation) == DeviceReference(ClaimDevice("nvidia0"))


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
    return DeviceLookup(INVENTORY).find(parse(device_id).target)


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
    found = DeviceLookup(inventory, down=(GPU.uuid,)).find(parse(device_id).target)
    assert inventory[found] is LIVING


LIVING_MIG = Device("GPU-f", 3, "00000000:AF:00.0", 3, "NVIDIA A100", gi=3, mig_uuids=("MIG-f3",))


@pytest.mark.parametrize("inventory", [(OLD, OLD_GI, LIVING_MIG), (LIVING_MIG, OLD_GI, OLD)])
def test_a_mig_device_of_a_lost_gpu_does_not_shadow_one_of_a_living_gpu(inventory):
    found = DeviceLookup(inventory, down=(OLD.uuid,)).find(parse("nvidia3/gi3").target)
    assert inventory[found] is LIVING_MIG


def test_a_lost_gpu_that_no_other_one_replaced_is_found():
    lookup = DeviceLookup(INVENTORY, down=(GPU.uuid,))
    assert {INVENTORY[lookup.find(parse(text).target)] for text in ("0", "nvidia4", f"GPU-{U}")} == {GPU}


def test_a_claim_may_mean_any_device():
    found = DeviceLookup((GPU, NO_MINOR)).find(ClaimDevice("node/gpu-0"))
    assert found == Unmatched("unresolved_claim", frozenset({0, 1}))


@given(st.permutations(INVENTORY), st.text() | st.sampled_from([spelling for spelling, _ in SPELLINGS]))
def test_the_order_of_devices_does_not_change_which_one_is_found(inventory, device_id):
    found = DeviceLookup(tuple(inventory)).find(parse(device_id).target)
    expected = find(device_id)
    if isinstance(expected, int):
        assert inventory[found] is INVENTORY[expected]
    else:
        assert found.reason == expected.reason
