"""Normalized values: base units, one value per device, and none where a part is missing."""

import pytest

from exporter.node.devices.computed.normalized import device_values

MIB = 1_048_576


def samples(position=0, **fields):
    """Samples of one device, by field id after the letter f."""
    return {int(name[1:]): [((position,), (value,))] for name, value in fields.items()}


def of_gpu(**fields):
    """The normalized values that a whole GPU with these samples has."""
    values = device_values(["gpu"], samples(**fields))
    return {name: column[0] for name, column in values._asdict().items() if column[0] is not None}


@pytest.mark.parametrize(
    ("fields", "values"),
    [
        ({}, {}),
        ({"f1001": 0.4, "f207": 90}, {"busy_ratio": 0.9}),
        ({"f1004": 0.25}, {"tensor_active_ratio": 0.25}),
        ({"f1005": 0.5}, {"dram_active_ratio": 0.5}),
        ({"f1002": 0.75}, {"sm_active_ratio": 0.75}),
        ({"f155": 301.5}, {"gpu_power_watts": 301.5}),
        ({"f164": 700.0}, {"gpu_power_limit_watts": 700.0}),
        ({"f156": 1500}, {"gpu_energy_joules": 1.5}),
        ({"f150": 61}, {"gpu_temperature_celsius": 61}),
        ({"f140": 72}, {"gpu_memory_temperature_celsius": 72}),
        (
            {"f150": 0, "f155": 0.0, "f156": 0},
            {"gpu_temperature_celsius": 0, "gpu_power_watts": 0, "gpu_energy_joules": 0},
        ),
        ({"f150": "text", "f155": None}, {}),
    ],
)
def test_a_quantity_has_one_name_and_a_base_unit(fields, values):
    assert of_gpu(**fields) == values


@pytest.mark.parametrize(
    ("fields", "used", "total"),
    [
        ({"f252": 30, "f251": 10}, 30, 40),
        ({"f252": 0, "f251": 40}, 0, 40),
        ({"f252": 40, "f251": 0}, 40, 40),
        ({"f252": 30}, 30, None),
        ({"f251": 10, "f250": 48}, None, None),
        ({"f252": 0, "f251": 0}, 0, None),  # a GPU that has no memory of its own
        ({"f252": 30, "f251": 10, "f253": 8, "f250": 48}, 30, 40),
    ],
)
def test_memory_in_total_is_what_can_be_allocated_without_the_reserved_part(fields, used, total):
    found = of_gpu(**fields)
    assert found.get("memory_used_bytes") == (None if used is None else used * MIB)
    assert found.get("memory_total_bytes") == (None if total is None else total * MIB)


def test_every_device_has_its_own_values_whichever_batch_they_are_in():
    by_field = {252: [((1,), (30,)), ((0, 2), (10, 20))], 155: [((0,), (300.0,))], 1001: [((1, 2), (0.5, None))]}
    values = device_values(["mig_enabled_gpu", "instance", "instance"], by_field)
    assert values.memory_used_bytes == [10 * MIB, 30 * MIB, 20 * MIB]
    assert values.gpu_power_watts == [300.0, None, None]
    assert values.busy_ratio == [None, 0.5, None]
