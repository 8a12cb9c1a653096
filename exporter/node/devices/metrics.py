"""Readings to families: the DCGM-named series, and what describes the devices themselves. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import cast

from exporter.metric import Family, Kind, Labels, Metric, Value
from exporter.node.devices.counters_file import Counter, Counters
from exporter.node.devices.labels import canonical_model, instance_labels
from exporter.node.devices.readings import Cell, Device, Readings

DEVICE_INFO = Metric(
    "gpugauge_device_info",
    Kind.GAUGE,
    "Constant 1; one for each GPU and MIG instance, with what does not change while it exists.",
    ("gpu", "UUID", "pci_bus_id", "device", "model", "GPU_I_PROFILE", "GPU_I_ID", "GPU_CI_ID", "serial",
     "architecture", "driver_version", "mig_mode", "numa_node", "hostname"),
)  # fmt: skip
DEVICE_UP = Metric(
    "gpugauge_device_up",
    Kind.GAUGE,
    "1 while the GPU can be read, 0 while it is known but lost or in need of a reset.",
    ("gpu", "UUID", "hostname"),
)
DEVICES_OBSERVED = Metric("gpugauge_devices_observed", Kind.GAUGE, "GPUs that could be read.", ("hostname",))
DEVICES_EXPECTED = Metric(
    "gpugauge_devices_expected", Kind.GAUGE, "GPUs that should be there: the largest number known.", ("hostname",)
)
UNSUPPORTED = Metric(
    "gpugauge_field_unsupported_devices",
    Kind.GAUGE,
    "GPUs and MIG instances on which a configured field has no value.",
    ("field", "reason", "hostname"),
)
METRICS = (DEVICE_INFO, DEVICE_UP, DEVICES_OBSERVED, DEVICES_EXPECTED, UNSUPPORTED)
KINDS = {"gauge": Kind.GAUGE, "counter": Kind.COUNTER, "untyped": Kind.UNTYPED}
DEVICE_LABELS = (
    "gpu", "UUID", "pci_bus_id", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID", "GPU_CI_ID", "hostname",
    "namespace", "pod", "container",
)  # fmt: skip

_NUMBERS = frozenset({int, float})

Columns = dict[int, list[tuple[tuple[int, ...], tuple[Cell, ...]]]]


def columns(readings: Readings) -> Columns:
    """Cells by field id: (device indices, values) for each block that has the field."""
    by_field: Columns = defaultdict(list)
    for block in readings.blocks:
        for field, column in zip(block.fields, block.columns, strict=True):
            by_field[field].append((block.devices, column))
    return by_field


def label_rows(counters: Counters, readings: Readings, by_field: Columns) -> list[tuple[tuple[str, str], ...]]:
    """Per device, the values of the `label` rows; a row without a value is left out.

    A field of the whole node (the driver version) stands for all of its devices.
    """
    rows: list[list[tuple[str, str]]] = [[] for _ in readings.inventory]
    for counter in counters.rows:
        if counter.type != "label":
            continue
        for index, value in _label_values(counter, readings, by_field):
            rows[index].append((counter.name, value))
    return [tuple(row) for row in rows]


def _label_values(counter: Counter, readings: Readings, by_field: Columns) -> Iterator[tuple[int, str]]:
    cells: dict[int, str] = {}
    for devices, column in by_field.get(counter.field.id, ()):
        cells.update((d, str(v)) for d, v in zip(devices, column, strict=True) if v is not None)
    boards = {readings.inventory[d].uuid: value for d, value in cells.items() if readings.inventory[d].gi < 0}
    for index, device in enumerate(readings.inventory):
        value = cells.get(index) or boards.get(device.uuid)
        if value:
            yield index, value


def dcgm_families(counters: Counters, by_field: Columns, labels: Sequence[Labels]) -> list[Family]:
    """One family for each row of the counters file that has a value, in the order of the file."""
    families = []
    labelled: dict[tuple[int, ...], list[Labels]] = {}
    for counter in counters.rows:
        if counter.type == "label":
            continue
        samples: list[tuple[Labels, Value]] = []
        for devices, column in by_field.get(counter.field.id, ()):
            own = labelled.get(devices)
            if own is None:
                own = labelled[devices] = [labels[device] for device in devices]
            samples += _samples(own, column)
        families.append(Family(_metric(counter.name, counter.type, counter.help), samples))
    return families


def _samples(labels: Sequence[Labels], column: Sequence[Cell]) -> Iterable[tuple[Labels, Value]]:
    """The cells that hold a number, each with the labels of its device."""
    pairs = zip(labels, column, strict=True)
    if _NUMBERS.issuperset(map(type, column)):
        return cast("Iterable[tuple[Labels, Value]]", pairs)
    return [(label, cell) for label, cell in pairs if cell is not None and not isinstance(cell, str)]


@lru_cache(maxsize=1024)
def _metric(name: str, kind: str, help_: str) -> Metric:
    """Made once and not in every pass, for about as many rows as a counters file has."""
    return Metric(name, KINDS[kind], help_, DEVICE_LABELS)


def _info(device: Device, hostname: str) -> Labels:
    mig = {True: "enabled", False: "disabled", None: ""}[device.mig_enabled]
    pairs = (
        ("gpu", str(device.index)),
        ("UUID", device.uuid),
        ("pci_bus_id", device.pci_bus_id),
        ("device", f"nvidia{device.minor if device.minor >= 0 else device.index}"),
        ("model", canonical_model(device.model)),
        *instance_labels(device),
        ("serial", device.serial),
        ("architecture", device.architecture),
        ("driver_version", device.driver_version),
        ("mig_mode", mig),
        ("numa_node", str(device.numa_node) if device.numa_node >= 0 else ""),
        ("hostname", hostname),
    )
    return Labels(tuple(pair for pair in pairs if pair[1]))


class InventoryFamilies:
    """The families that change only with the inventory; the last ones are kept."""

    def __init__(self, hostname: str) -> None:
        self._hostname = hostname
        self._inventory: tuple[Device, ...] | None = None
        self._info: list[tuple[Labels, Value]] = []
        self._boards: list[tuple[Device, Labels]] = []
        self._most = 0

    def families(self, readings: Readings, expected: int) -> list[Family]:
        """Identity, reachability and number of the devices."""
        if readings.inventory != self._inventory:
            self._learn(readings.inventory)
        down = frozenset(readings.down)
        up: list[tuple[Labels, Value]] = [(labels, 0 if d.uuid in down else 1) for d, labels in self._boards]
        observed = sum(value for _, value in up)
        host = Labels((("hostname", self._hostname),))
        return [
            Family(DEVICE_INFO, self._info),
            Family(DEVICE_UP, up),
            Family(DEVICES_OBSERVED, [(host, observed)]),
            Family(DEVICES_EXPECTED, [(host, max(expected, self._most))]),
        ]

    def _learn(self, inventory: tuple[Device, ...]) -> None:
        host = ("hostname", self._hostname)
        self._inventory = inventory
        self._info = [(_info(device, self._hostname), 1) for device in inventory]
        self._boards = [(d, Labels((("gpu", str(d.index)), ("UUID", d.uuid), host))) for d in inventory if d.gi < 0]
        self._most = max(self._most, len(self._boards))


def field_names(counters: Counters) -> dict[int, str]:
    """The name under which each field is exposed, for series that speak of fields."""
    return {row.field.id: row.name for row in reversed(counters.rows)}


def unsupported(readings: Readings, names: dict[int, str], hostname: str) -> Family:
    """How many devices have no value for a configured field, from the rejections of this pass."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for rejection in readings.rejections:
        if rejection.field in names:
            counts[names[rejection.field], rejection.reason] += rejection.count
    return Family(UNSUPPORTED, list(_counted(counts, hostname)))


def _counted(counts: dict[tuple[str, str], int], hostname: str) -> Iterable[tuple[Labels, Value]]:
    for (field, reason), count in sorted(counts.items()):
        yield Labels((("field", field), ("reason", reason), ("hostname", hostname))), count
