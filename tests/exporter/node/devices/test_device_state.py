"""How busy a device is: the larger of compute and video, and not known without compute."""

import pytest

from exporter.node.devices.computed.device_state import busy_ratios


def samples(**fields):
    """Samples of the first device, by field id after the letter f."""
    return {int(name[1:]): [((0,), (value,))] for name, value in fields.items()}


@pytest.mark.parametrize(
    ("fields", "busy"),
    [
        ({"f1001": 0.4}, 0.4),
        ({"f1001": 0.4, "f203": 90}, 0.4),
        ({"f203": 90}, 0.9),
        ({"f1001": 0.4, "f206": 70, "f207": 10}, 0.7),
        ({"f1001": 0.4, "f206": 3, "f207": 50}, 0.5),
        ({"f1001": 0.0, "f206": 0, "f207": 0}, 0.0),
        ({"f206": 70, "f207": 10}, None),
        ({"f1001": None, "f203": None, "f206": 70}, None),
        ({"f1001": None, "f203": 20}, 0.2),
        ({}, None),
    ],
)
def test_a_gpu_is_as_busy_as_the_busier_of_its_engines(fields, busy):
    assert busy_ratios(["gpu"], samples(**fields)) == [busy]


@pytest.mark.parametrize("level", ["instance", "compute_instance"])
def test_a_mig_device_is_as_busy_as_its_compute_engine_whatever_the_utilization_of_its_gpu(level):
    assert busy_ratios([level], samples(f1001=0.4, f203=90, f206=90)) == [0.4]
    assert busy_ratios([level], samples(f203=0, f206=0)) == [None]


def test_each_device_has_its_own_samples_whichever_batch_they_are_in():
    by_field = {1001: [((0, 2), (0.1, 0.3)), ((1,), (0.2,))], 206: [((1,), (80,))]}
    assert busy_ratios(["gpu", "gpu", "instance", "gpu"], by_field) == [0.1, 0.8, 0.3, None]
