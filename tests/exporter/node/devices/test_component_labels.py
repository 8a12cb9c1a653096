"""The labels of the series of components."""

from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.entities.component import Component
from exporter.node.devices.series.component_labels import ComponentLabelCache
from exporter.node.devices.series.labels import LabelStyle

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


def test_a_cpu_has_its_serial_number_where_it_is_known_and_a_core_its_cpu():
    components = (Component("cpu", 0, serial="00A1"), Component("cpu", 1), Component("core", 72, 1))
    labels = cache().labels(components, {})
    names = [dict(each.pairs) for each in labels]
    assert names == [
        {"cpu": "0", "cpu_serial": "00A1", "hostname": "n1"},
        {"cpu": "1", "cpu_serial": "", "hostname": "n1"},
        {"cpucore": "72", "cpu": "1", "hostname": "n1"},
    ]


def test_the_texts_of_a_cpu_label_its_cores_too_whatever_its_serial_number():
    counters = parse("DCGM_FI_DEV_CPU_MODEL, label, M", "f")
    components = (Component("cpu", 0, serial="00A1"), Component("core", 3, 0))
    labels = cache(counters=counters).labels(components, {1141: [((0,), ("Grace",))]})
    assert [each.pairs[-1] for each in labels] == [("DCGM_FI_DEV_CPU_MODEL", "Grace")] * 2


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
