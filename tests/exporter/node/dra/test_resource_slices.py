"""ResourceSlices of this node: which device a name of the driver is."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.dra.device import DraDevice, named
from exporter.node.dra.resource_slices import ClaimableKey, offered_devices, resource_slice
from tests.exporter.node.dra.slices import DRIVER, PCI_BUS_ID, device, raw, slice_object

CORPUS = Path(__file__).parents[2] / "cluster" / "scheduler_corpus"


def offered(*objects):
    found = (resource_slice(raw(each)) for each in objects)
    return {key.name: known for key, known in offered_devices(filter(None, found)).items()}


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_every_version_of_the_api_has_the_same_devices(version):
    devices = [
        device("gpu-1", version=version, type="gpu", uuid="GPU-1"),
        device(
            "gpu-0-mig-1g10gb-me-20-4",
            version=version,
            type="mig",
            uuid="MIG-a",
            parentUUID="GPU-0",
            profile="1g.10gb+me",
        ),
        device("gpu-0-mig-3g40gb-9-0", version=version, type="mig", parentUUID="GPU-0", profile="3g.40gb"),
        device("gpu-vfio-2", [(PCI_BUS_ID, "0000:07:00.0")], version=version, type="vfio", uuid="of-the-address"),
        device("gpu-3", version=version, type="gpu", uuid="GPU-3", shares=True),
    ]
    found = offered(slice_object(*devices))
    assert found == {
        "gpu-1": DraDevice("gpu", 1, uuid="GPU-1"),
        "gpu-0-mig-1g10gb-me-20-4": DraDevice("mig", 0, "MIG-a", "GPU-0", "1g10gb-me", 4),
        "gpu-0-mig-3g40gb-9-0": DraDevice("mig", 0, "", "GPU-0", "3g40gb", 0),
        "gpu-vfio-2": DraDevice("vfio", pci_address="0000:07:00.0"),
        "gpu-3": DraDevice("gpu", 3, uuid="GPU-3", shares=True),
    }


def test_attributes_come_before_what_a_name_shows():
    found = offered(
        slice_object(device("first", type="gpu", uuid="GPU-0"), device("gpu-7", [("gpu.nvidia.com/uuid", "GPU-2")]))
    )
    assert found == {"first": DraDevice("gpu", uuid="GPU-0"), "gpu-7": DraDevice("gpu", 7, uuid="GPU-2")}


def test_only_the_newest_generation_of_a_pool_counts():
    old = slice_object(device("gpu-0", uuid="GPU-old"), device("gpu-9", uuid="GPU-gone"), generation=1)
    new = [slice_object(device(f"gpu-{n}", uuid=f"GPU-{n}"), generation=2, name=f"part-{n}") for n in range(2)]
    other = slice_object(device("gpu-0", uuid="GPU-x"), pool="other")
    found = offered_devices(filter(None, (resource_slice(raw(each)) for each in (old, *new, other))))
    assert {(key.pool, key.name): known.uuid for key, known in found.items()} == {
        ("node-1", "gpu-0"): "GPU-0",
        ("node-1", "gpu-1"): "GPU-1",
        ("other", "gpu-0"): "GPU-x",
    }
    assert all(key.driver == DRIVER for key in found)


def test_devices_of_other_drivers_are_not_read():
    assert resource_slice(raw(slice_object(device("d"), driver="compute-domain.nvidia.com"))) is None


@pytest.mark.parametrize("name", ["064-dra-extended-resource-fits", "101-dra-more"])
def test_recorded_slices_name_the_gpus_of_their_node(name):
    recorded = json.loads((CORPUS / f"{name}.json").read_text())["resourceslices"]
    found = offered_devices(filter(None, (resource_slice(raw(each)) for each in recorded)))
    assert len(found) == 8 * len(recorded)
    for key, known in found.items():
        assert known == DraDevice(
            "gpu", int(key.name[4:]), uuid=f"GPU-0000000{key.name[4:]}-0000-0000-0000-000000000000"
        )


@pytest.mark.parametrize("text", [b"{}", b'{"metadata": {}, "spec": {"driver": 1}}', b"[]", b"x"])
def test_what_is_no_slice_raises(text):
    with pytest.raises(msgspec.DecodeError):
        resource_slice(msgspec.Raw(text))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["string", "int", "x"]), inner, max_size=2)
    ),
)


@given(
    st.dictionaries(st.sampled_from(["type", "uuid", "parentUUID", "profile", "d/uuid", "pciBusID"]), anything),
    st.text(),
)
def test_attributes_of_any_form_cost_nothing_but_themselves(odd, name):
    found = resource_slice(raw(slice_object({"name": name, "attributes": odd}, device("gpu-1", uuid="GPU-1"))))
    assert dict(found.devices)["gpu-1"].uuid == "GPU-1"
    devices = dict(found.devices)
    assert devices[name].minor == named(name).minor


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.sampled_from(["gpu-0", "gpu-1"]))))
def test_the_order_of_slices_makes_no_difference_to_what_is_offered(parts):
    parts = list(dict.fromkeys(parts))
    slices = [
        resource_slice(
            raw(slice_object(device(name, uuid=f"{pool}{generation}{name}"), pool=pool, generation=generation))
        )
        for pool, generation, name in parts
    ]
    found = offered_devices(slices)
    assert found == offered_devices(reversed(slices))
    newest = {pool: max(g for p, g, _ in parts if p == pool) for pool, _, _ in parts}
    assert set(found) == {ClaimableKey(DRIVER, pool, name) for pool, g, name in parts if g == newest[pool]}
