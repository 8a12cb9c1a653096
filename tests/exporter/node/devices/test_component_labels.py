"""The labels of the series of components."""

from exporter.node.devices.component import Component
from exporter.node.devices.component_labels import ComponentLabelCache
from exporter.node.devices.counters_file import parse
from exporter.node.devices.labels import LabelStyle

COUNTERS = parse(
    "DCGM_FI_DEV_NVSWITCH_FIRMWARE_VERSION, label, F\n"
    "DCGM_FI_DEV_NVSWITCH_LINK_DEVICE_UUID, label, U\n"
    "DCGM_FI_DRIVER_VERSION, label, V\n",
    "f",
)
FIRMWARE, DEVICE_UUID = 1524, 878
SWITCHES = (Component("switch", 0), Component("switch", 2), Component("switch_link", 5, 2))


def cache(style=None, counters=COUNTERS):
    return ComponentLabelCache(style or LabelStyle("n1"), counters)


def test_the_names_are_those_of_dcgm_exporter_and_each_switch_has_its_own_number():
    labels = cache().labels(SWITCHES, {})
    assert [each.pairs for each in labels] == [
        (("nvswitch", "nvswitch0"), ("hostname", "n1")),
        (("nvswitch", "nvswitch2"), ("hostname", "n1")),
        (("nvlink", "5"), ("nvswitch", "nvswitch2"), ("hostname", "n1")),
    ]


def test_a_text_labels_its_own_component_and_what_is_part_of_it():
    by_field = {FIRMWARE: [((0, 1), ("1.0", "2.0"))], DEVICE_UUID: [((2,), ("SW-a",))]}
    rows = [each.pairs[2:] for each in cache().labels(SWITCHES, by_field)]
    firmware, uuid = (row.name for row in COUNTERS.label_rows[:2])
    assert rows == [((firmware, "1.0"),), ((firmware, "2.0"),), (("hostname", "n1"), (firmware, "2.0"), (uuid, "SW-a"))]


def test_options_rename_or_leave_out_the_host():
    assert cache(LabelStyle("n1", "none")).labels(SWITCHES[:1], {})[0].pairs == (("nvswitch", "nvswitch0"),)
    names = [name for name, _ in cache(LabelStyle("n1", "both")).labels(SWITCHES[:1], {})[0].pairs]
    assert names == ["nvswitch", "hostname", "Hostname"]


def test_the_schema_has_the_names_in_the_order_of_the_labels():
    made = cache()
    by_field = {FIRMWARE: [((0,), ("1.0",))]}
    assert made.schemas["switch"].names == tuple(name for name, _ in made.labels(SWITCHES[:1], by_field)[0].pairs)


def test_equal_inputs_give_the_same_label_objects_and_only_those_of_the_last_collection_are_kept():
    made = cache()
    first = made.labels(SWITCHES, {})
    assert all(a is b for a, b in zip(made.labels(SWITCHES, {}), first, strict=True))
    made.labels((), {})
    assert made.labels(SWITCHES, {})[0] is not first[0]
