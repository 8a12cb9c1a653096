"""What is wrong with one GPU costs what it concerns: a text of it, or that GPU, and never the others."""

import msgspec
import pynvml
import pytest

from exporter.node.simulation.scenario import Scenario, load
from tests.exporter.node.nvml.fixture import column, counted, samples

BYTE = "\udcff"
"""In a scenario: the byte 0xFF, which is not UTF-8 anywhere."""
TEMPERATURE, NAME, SERIAL, PCI_BUS_ID, VBIOS, DRIVER = 150, 50, 53, 57, 85, 1


def with_first_gpu(name, **changes):
    document = load(name).document
    first, *others = document.devices
    devices = (msgspec.structs.replace(first, **changes), *others)
    return Scenario(name, msgspec.structs.replace(document, devices=devices, events=()))


def damaged(attribute):
    text = getattr(load("whole").document.devices[0], attribute)
    return with_first_gpu("whole", **{attribute: text[:6] + BYTE + text[7:]})


@pytest.mark.parametrize(
    ("attribute", "label", "field", "text"),
    [
        ("model", "model", NAME, "name"),
        ("serial", "serial", SERIAL, "serial number"),
        ("pci_bus_id",) * 2 + (57, "PCI id"),
    ],
)
def test_a_text_that_is_not_utf_8_costs_its_label_only(scenario_table, open_source, attribute, label, field, text):
    scenario_table("whole")
    before = open_source(TEMPERATURE, field).read()
    scenario_table(damaged(attribute))
    source = open_source(TEMPERATURE, field)
    for _ in range(2):
        readings = source.read()
        first, *others = readings.inventory
        assert first == msgspec.structs.replace(before.inventory[0], **{label: ""})
        assert tuple(others) == before.inventory[1:]
        assert column(readings, TEMPERATURE) == column(before, TEMPERATURE)
        assert column(readings, field) == [None, *column(before, field)[1:]]
        assert counted(readings, field) == {"blank": 1}
        assert readings.problems == (("text_unreadable", f"of {first.uuid} is not UTF-8: {text}"),)
        assert readings.down == ()


def test_a_uuid_that_is_not_utf_8_is_escaped_and_stays_the_identity_of_its_gpu(scenario_table, open_source):
    scenario_table(damaged("uuid"))
    source = open_source(TEMPERATURE)
    first, second = source.read(), source.read()
    assert first.inventory == second.inventory
    assert len({device.uuid for device in first.inventory}) == 8
    assert first.inventory[0].uuid.count("\\xff") == 1
    assert None not in column(first, TEMPERATURE)
    assert [reason for reason, _ in first.problems] == ["text_unreadable"]


def test_texts_that_are_not_utf_8_of_a_mig_device_cost_no_device(scenario_table, open_source):
    gpu = load("mig").document.devices[0]
    instance, *others = gpu.instances
    compute = tuple(
        msgspec.structs.replace(each, uuid=each.uuid[:8] + BYTE + each.uuid[9:]) for each in instance.compute
    )
    instances = (msgspec.structs.replace(instance, compute=compute), *others)
    scenario_table("mig")
    before = open_source(250).read()
    scenario_table(with_first_gpu("mig", instances=instances, model="NVIDIA" + BYTE))
    readings = open_source(250).read()
    assert [(d.gi, d.ci, d.profile) for d in readings.inventory] == [(d.gi, d.ci, d.profile) for d in before.inventory]
    assert len(samples(readings)) == len(samples(before))
    assert None not in samples(readings).values()


def test_a_bios_version_that_is_not_utf_8_is_a_blank(scenario_table, open_source):
    scenario_table(damaged("vbios"))
    readings = open_source(VBIOS, TEMPERATURE).read()
    assert column(readings, VBIOS)[0] is None
    assert None not in column(readings, VBIOS)[1:] + column(readings, TEMPERATURE)
    assert counted(readings, VBIOS) == {"blank": 1}


def test_a_driver_version_that_is_not_utf_8_costs_no_gpu(scenario_table, open_source):
    document = load("whole").document
    versions = msgspec.structs.replace(document.versions, driver="570" + BYTE)
    scenario_table(Scenario("whole", msgspec.structs.replace(document, versions=versions)))
    readings = open_source(TEMPERATURE).read()
    assert "driver" not in readings.versions
    assert None not in column(readings, TEMPERATURE)


def test_a_text_that_is_not_utf_8_does_not_close_the_session_again_and_again(scenario_table, open_source, clock):
    scenario_table(damaged("serial"))
    source = open_source(1004)
    source.read()
    for _ in range(3):
        clock.now += 61
        assert None not in column(source.read(), 1004)  # two samples of one session


@pytest.fixture
def defective(monkeypatch):
    """Makes a function of pynvml raise an unforeseen exception for the first GPU."""

    def start(function):
        original = getattr(pynvml, function)
        index = pynvml.nvmlDeviceGetIndex

        def raises_for_the_first(handle, *arguments, **named):
            if index(handle) == 0:
                raise ValueError("an answer that nobody knows")
            return original(handle, *arguments, **named)

        monkeypatch.setattr(pynvml, function, raises_for_the_first)

    return start


@pytest.mark.parametrize(
    "function",
    [
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetFieldValues",
        "nvmlGpmQueryDeviceSupport",
        "nvmlGpmSampleGet",
    ],
)
def test_any_exception_on_one_gpu_costs_that_gpu_only(
    scenario_table, open_source, clock, defective, monkeypatch, function
):
    scenario_table("whole")
    source = open_source(TEMPERATURE, 156, 230, 252, 1004)
    source.read()
    clock.now += 1
    if function == "nvmlGpmQueryDeviceSupport":
        source.close()  # so that a first sample is taken again
    defective(function)
    readings = source.read()
    first, *others = readings.inventory
    assert len(others) == 7
    assert readings.down == (first.uuid,)
    assert {reason for reason, _ in readings.problems} == {"gpu_failed"}
    assert "an answer that nobody knows" in readings.problems[0][1]
    assert {key[0] for key in samples(readings)} == {device.uuid for device in others}
    assert None not in column(readings, TEMPERATURE)
    monkeypatch.undo()
    scenario_table("whole")
    assert source.read().down == ()


def test_any_exception_while_events_are_registered_costs_the_xids_of_that_gpu_only(
    scenario_table, open_source, defective
):
    scenario_table("whole")
    defective("nvmlDeviceRegisterEvents")
    readings = open_source(TEMPERATURE, 230).read()
    assert readings.down == ()
    assert None not in column(readings, TEMPERATURE)
    assert column(readings, 230) == [None] + [0] * 7
    assert counted(readings, 230) == {"not_supported": 1}


def test_a_gpu_that_could_never_be_read_is_a_problem_and_the_others_are_listed(scenario_table, open_source, defective):
    scenario_table("whole")
    source = open_source(TEMPERATURE)
    source.read()
    source.close()
    defective("nvmlDeviceGetArchitecture")
    readings = open_source(TEMPERATURE).read()
    assert [device.index for device in readings.inventory] == [1, 2, 3, 4, 5, 6, 7]
    assert [reason for reason, _ in readings.problems] == ["gpu_failed"]
