"""Device ids in every spelling: what they are parsed to."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exporter.gpu_names import ResourcePatterns, gpu_resources
from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.matching.device_id import (
    ClaimDevice,
    DeviceMinor,
    DeviceReference,
    GpuUuid,
    MigInstance,
    MigUuid,
    NvmlIndex,
    OtherVendorDevice,
    PciAddress,
    UnknownId,
    names_gpu,
    parse,
    placed_by_scheduler,
    reference,
)
from exporter.node.dra.device import DraDevice

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
    ("0", DeviceReference(UnknownId("0"))),
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
    assert reference(allocation) == DeviceReference(ClaimDevice(DraDevice()))


def meant(device_id, resource="nvidia.com/gpu", indexed=()):
    return reference(Allocation("n", "p", "c", resource, device_id), ResourcePatterns(indexed))


@given(numbers, replicas)
def test_a_bare_number_is_an_index_only_where_its_resource_is_configured_to_have_them(number, replica):
    spelled = replicated(str(number), replica)
    assert meant(spelled) == DeviceReference(UnknownId(spelled))
    assert meant(spelled, "example.com/gpu", ("nvidia.com/*",)) == DeviceReference(UnknownId(spelled))
    assert meant(spelled, "example.com/gpu", ("example.com/*",)) == shared(NvmlIndex(number), replica)


@given(st.sampled_from([spelled for spelled, _ in SPELLINGS if spelled != "0"]))
def test_every_other_spelling_means_the_same_where_numbers_are_indices(spelled):
    assert meant(spelled, indexed=("nvidia.com/gpu",)) == parse(spelled)


@pytest.mark.parametrize(
    ("resource", "device_id"),
    [
        ("amd.com/gpu", "0000:03:00.0"),
        ("amd.com/cpx_nps4", "amdgpu_xcp_7"),
        ("gpu.intel.com/i915", "card0-1"),
        ("gpu.intel.com/xe", "card1-0"),
        ("gpu.intel.com/i915_monitoring", "all"),
    ],
)
def test_ids_of_amds_and_intels_plugins_mean_no_nvidia_device(resource, device_id):
    assert meant(device_id, resource) == DeviceReference(OtherVendorDevice(device_id))


@given(st.sampled_from(["amd.com/gpu", "gpu.intel.com/xe"]), st.uuids())
def test_the_spelling_of_nvidias_plugin_means_a_gpu_under_any_resource(resource, uuid):
    assert meant(f"GPU-{uuid}", resource) == DeviceReference(GpuUuid(f"gpu-{uuid}"))


@given(uuids, numbers)
def test_a_scheduler_places_what_hami_numbers_and_what_volcano_gives(uuid, number):
    numbered, replica = meant(f"GPU-{uuid}-{number}"), meant(f"GPU-{uuid}::{number}")
    assert placed_by_scheduler("nvidia.com/gpu", numbered.share)
    assert not placed_by_scheduler("nvidia.com/gpu", replica.share)
    assert placed_by_scheduler("volcano.sh/vgpu-number", replica.share)
