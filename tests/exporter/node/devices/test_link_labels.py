"""The labels of the series of NVLinks."""

from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.link import Link
from exporter.node.devices.series.labels import NO_CONTAINER, ExclusiveContainer, LabelStyle
from exporter.node.devices.series.link_labels import LinkLabelCache, link_schema

GPU = Device("GPU-a", 2, "00000000:07:00.0", 3, "NVIDIA H100 80GB HBM3")
MIG_DEVICE = Device("GPU-a", 2, "00000000:07:00.0", 3, "NVIDIA H100 80GB HBM3", gi=1, profile="1g.10gb")
INVENTORY = (GPU, MIG_DEVICE)
VERSION = (("DCGM_FI_DRIVER_VERSION", "580.1"),)


def pairs_of(style=None, container=NO_CONTAINER, rows=((), ())):
    style = style or LabelStyle("n1")
    names = tuple(name for name, _ in rows[0])
    cache = LinkLabelCache(style, link_schema(style, names))
    (labels,) = cache.labels((Link(0, 5),), INVENTORY, (container, NO_CONTAINER), rows)
    return labels.pairs


def test_a_link_has_the_names_of_dcgm_exporter_and_the_labels_of_its_gpu():
    assert pairs_of(container=ExclusiveContainer("ns", "p", "c"), rows=(VERSION, ())) == (
        ("nvlink", "5"),
        ("gpu", "2"),
        ("gpu_uuid", "GPU-a"),
        ("pci_bus_id", "00000000:07:00.0"),
        ("device", "nvidia3"),
        ("model_name", "NVIDIA H100 80GB HBM3"),
        ("hostname", "n1"),
        ("DCGM_FI_DRIVER_VERSION", "580.1"),
        ("namespace", "ns"),
        ("pod", "p"),
        ("container", "c"),
    )


def test_the_labels_of_a_container_are_there_and_empty_where_none_has_the_gpu_alone():
    assert pairs_of()[-3:] == (("namespace", ""), ("pod", ""), ("container", ""))


def test_options_rename_the_host_and_the_container_and_nothing_else():
    style = LabelStyle("n1", "both", old_namespace=True, replace_blanks_in_model=True)
    names = [name for name, _ in pairs_of(style)]
    assert names[:6] == ["nvlink", "gpu", "gpu_uuid", "pci_bus_id", "device", "model_name"]
    assert names[6:] == ["hostname", "Hostname", "pod_namespace", "pod_name", "container_name"]
    assert dict(pairs_of(style))["model_name"] == "NVIDIA H100 80GB HBM3"
    bare = LabelStyle("n1", "none", allocation_labels=False)
    assert [name for name, _ in pairs_of(bare)][-1] == "model_name"


def test_the_schema_has_the_names_in_the_order_of_the_labels():
    style = LabelStyle("n1")
    assert link_schema(style, ("A",)).names == tuple(name for name, _ in pairs_of(style, rows=((("A", "x"),), ())))


def test_equal_inputs_give_the_same_label_objects_and_only_those_of_the_last_collection_are_kept():
    style = LabelStyle("n1")
    cache = LinkLabelCache(style, link_schema(style, ()))
    links, none, other = (Link(0, 0), Link(0, 1)), (NO_CONTAINER,) * 2, (ExclusiveContainer("a", "b", "c"),) * 2
    first = cache.labels(links, INVENTORY, none, ((), ()))
    assert all(a is b for a, b in zip(cache.labels(links, INVENTORY, none, ((), ())), first, strict=True))
    assert cache.labels(links, INVENTORY, other, ((), ()))[0] is not first[0]
    assert cache.labels(links, INVENTORY, none, ((), ()))[0] is not first[0]
