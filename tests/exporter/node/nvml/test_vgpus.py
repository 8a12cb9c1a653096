"""vGPUs of a vGPU host through NVML, each an entity of its own; and what a virtual machine reads of its GPU."""

import msgspec
import pynvml
import pytest

from exporter.node.devices.entities.vgpu import Vgpu
from exporter.node.nvml.entities import vgpus
from exporter.node.nvml.entities.vgpus import CALLS, READ_FIELDS
from exporter.node.simulation.document import CallFault, GpuLoss, VgpuSpec
from exporter.node.simulation.scenario import Scenario, load
from tests.exporter.node.nvml.fixture import column, counted, samples

FIRST, SECOND = (gpu.uuid for gpu in load("whole").document.devices[:2])
VALUES = {520: "vm-a", 522: 557, 523: "", 524: "570.1", 525: 20480, 527: 60, 532: "Licensed", 533: "00000000:07:00.0"}


def vgpu(number, utilization=None, **fields):
    own = VALUES | {523: f"uuid-{number}"} | {int(key): value for key, value in fields.items()}
    fields = {str(key): value for key, value in own.items() if value is not None}
    return VgpuSpec(number, f"uuid-{number}", utilization, fields=fields)


def with_vgpus(*of_first, of_second=(), mode=3, faults=()):
    """The scenario `whole` whose first two GPUs are of a vGPU host, or have another virtualization mode."""
    document = load("whole").document
    first, second, *others = document.devices
    hosts = (
        msgspec.structs.replace(gpu, vgpus=own, fields=gpu.fields | {"500": mode})
        for gpu, own in ((first, of_first), (second, of_second))
    )
    return Scenario("vgpus", msgspec.structs.replace(document, devices=(*hosts, *others), events=tuple(faults)))


def of_vgpus(readings):
    """Return every sample of vGPUs by (number, field)."""
    return {
        (readings.vgpus[position].number, field): value
        for batch in readings.vgpu_batches
        for field, column in zip(batch.fields, batch.columns, strict=True)
        for position, value in zip(batch.devices, column, strict=True)
    }


def expected(number):
    values = VALUES | {523: f"uuid-{number}", 534: None}
    return {(number, field): value for field, value in values.items()}


def test_each_vgpu_has_its_own_values(scenario_table, open_source):
    scenario_table(with_vgpus(vgpu(7), vgpu(9), of_second=(vgpu(8),)))
    readings = open_source(*sorted(READ_FIELDS), 150).read()
    assert readings.vgpus == (Vgpu(0, 7, "uuid-7"), Vgpu(0, 9, "uuid-9"), Vgpu(1, 8, "uuid-8"))
    assert of_vgpus(readings) == expected(7) | expected(8) | expected(9)
    assert counted(readings, 534) == {"not_supported": 3}  # none is on a GPU instance
    assert (None not in column(readings, 150), readings.problems) == (True, ())


def test_memory_of_more_than_4_gib_is_read_whole(scenario_table, open_source):
    scenario_table(with_vgpus(vgpu(7, **{"525": 81_920})))
    assert of_vgpus(open_source(525).read()) == {(7, 525): 81_920}


def test_a_vgpu_on_a_gpu_instance_has_its_number(scenario_table, open_source):
    scenario_table(with_vgpus(vgpu(7, **{"534": 2})))
    assert of_vgpus(open_source(534).read()) == {(7, 534): 2}


@pytest.mark.parametrize(("field", "text"), [(524, "Not Available"), (533, "00000000:00:00.0"), (532, "Unknown")])
def test_what_the_virtual_machine_has_not_told_yet_is_absent(scenario_table, open_source, field, text):
    scenario_table(with_vgpus(vgpu(7, **{str(field): text}), vgpu(9)))
    readings = open_source(field).read()
    assert of_vgpus(readings) == {(7, field): None, (9, field): VALUES[field]}
    assert counted(readings, field) == {"blank": 1}


FUNCTIONS = {
    520: "VmID",
    522: "Type",
    523: "UUID",
    524: "VmDriverVersion",
    525: "FbUsage",
    527: "FrameRateLimit",
    532: "LicenseInfo_v2",
    533: "GpuPciId",
    534: "GpuInstanceId",
}
STATUSES = {
    1: "blank",
    2: "blank",
    3: "not_supported",
    4: "no_permission",
    9: "blank",  # no driver runs in the virtual machine
    10: "blank",
    12: "blank",
    13: "not_supported",
    15: "blank",
    16: "blank",
    18: "blank",
    999: "blank",
}


def test_every_call_of_vgpus_is_in_the_table_of_functions():
    assert {field for call in CALLS for field in call.fields} == FUNCTIONS.keys() == READ_FIELDS


@pytest.mark.parametrize("field", sorted(FUNCTIONS))
def test_each_status_of_each_call_costs_one_value_of_one_vgpu(scenario_table, open_source, field):
    table = scenario_table(with_vgpus(vgpu(7, **{"534": 1}), vgpu(9, **{"534": 1})))
    source = open_source(*sorted(READ_FIELDS), 150)
    healthy = of_vgpus(source.read())
    assert None not in healthy.values()
    for status, reason in STATUSES.items():
        fault = CallFault(f"nvmlVgpuInstanceGet{FUNCTIONS[field]}", status=status, device=f"{FIRST}/vgpu9")
        table.scenario = with_vgpus(vgpu(7, **{"534": 1}), vgpu(9, **{"534": 1}), faults=[fault])
        table.tick(1)
        readings = source.read()
        assert of_vgpus(readings) == healthy | {(9, field): None}, status
        assert counted(readings, field) == {reason: 1}, status
        assert (readings.down, readings.problems, None in column(readings, 150)) == ((), (), False), status
        assert readings.vgpus[1] == Vgpu(0, 9, "" if field == 523 else "uuid-9"), status


def test_a_vgpu_that_ends_while_it_is_read_is_none(scenario_table, open_source):
    fault = CallFault("nvmlVgpuInstanceGetUUID", status=6, device=f"{FIRST}/vgpu7")
    scenario_table(with_vgpus(vgpu(7), vgpu(9), faults=[fault]))
    readings = open_source(525).read()
    assert readings.vgpus == (Vgpu(0, 9, "uuid-9"),)
    assert (of_vgpus(readings), readings.rejections) == ({(9, 525): 20480}, ())


def test_a_vgpu_that_ends_between_two_calls_has_no_further_values(scenario_table, open_source):
    fault = CallFault("nvmlVgpuInstanceGetFbUsage", status=6, device=f"{FIRST}/vgpu7")
    scenario_table(with_vgpus(vgpu(7), vgpu(9), faults=[fault]))
    readings = open_source(525).read()
    assert (of_vgpus(readings), counted(readings, 525)) == ({(7, 525): None, (9, 525): 20480}, {"not_found": 1})


@pytest.mark.parametrize("status", [3, 13])
def test_a_gpu_or_driver_without_vgpus_has_none_and_that_is_no_problem(scenario_table, open_source, status):
    fault = CallFault("nvmlDeviceGetActiveVgpus", status=status, device=FIRST)
    scenario_table(with_vgpus(vgpu(7), of_second=(vgpu(9),), faults=[fault]))
    readings = open_source(525, 150).read()
    assert (readings.vgpus, readings.problems) == ((Vgpu(1, 9, "uuid-9"),), ())
    assert None not in column(readings, 150)


@pytest.mark.parametrize("status", [2, 4, 10, 999])
def test_vgpus_that_cannot_be_listed_cost_those_of_one_gpu_and_it_is_said(scenario_table, open_source, status):
    fault = CallFault("nvmlDeviceGetActiveVgpus", status=status, device=FIRST)
    scenario_table(with_vgpus(vgpu(7), of_second=(vgpu(9),), faults=[fault]))
    readings = open_source(525, 150).read()
    assert readings.vgpus == (Vgpu(1, 9, "uuid-9"),)
    message = f"the vGPUs of {FIRST} cannot be listed: return code {status}"
    assert readings.problems == (("vgpus_unreadable", message),)
    assert (readings.down, None in column(readings, 150)) == ((), False)


@pytest.mark.parametrize("status", [15, 16, 28])
def test_a_gpu_that_is_lost_at_its_list_costs_that_gpu(scenario_table, open_source, status):
    fault = CallFault("nvmlDeviceGetActiveVgpus", status=status, device=FIRST)
    scenario_table(with_vgpus(vgpu(7), of_second=(vgpu(9),), faults=[fault]))
    readings = open_source(525, 150).read()
    assert (readings.down, readings.vgpus) == ((FIRST,), (Vgpu(1, 9, "uuid-9"),))


def test_a_list_that_grew_between_its_two_calls_is_made_again(scenario_table, open_source, monkeypatch):
    scenario_table(with_vgpus(vgpu(7)))
    failures, original = [7, 7], pynvml.nvmlDeviceGetActiveVgpus

    def growing(handle):
        if failures:
            raise pynvml.NVMLError(failures.pop())
        return original(handle)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetActiveVgpus", growing)
    assert open_source(525).read().vgpus == (Vgpu(0, 7, "uuid-7"),)


def test_more_vgpus_than_are_read_are_left_out_and_it_is_said(scenario_table, open_source, monkeypatch):
    monkeypatch.setattr(vgpus, "MAX_VGPUS", 2)
    scenario_table(with_vgpus(vgpu(7), vgpu(8), vgpu(9)))
    readings = open_source(525).read()
    assert [each.number for each in readings.vgpus] == [7, 8]
    assert readings.problems == (("vgpus_left_out", f"of 3 vGPUs of {FIRST} 2 are read"),)


def test_a_lost_gpu_has_no_vgpus(scenario_table, open_source):
    table = scenario_table(with_vgpus(vgpu(7), of_second=(vgpu(9),), faults=[GpuLoss(FIRST, 10)]))
    source = open_source(525)
    assert len(source.read().vgpus) == 2
    table.tick(11)
    assert source.read().vgpus == (Vgpu(1, 9, "uuid-9"),)


def used(readings):
    """Utilization by number of the vGPU."""
    return {
        readings.vgpus[each.vgpu].number: (each.sm, each.memory, each.encoder, each.decoder)
        for each in readings.vgpu_utilization
    }


def test_the_utilization_of_each_vgpu_is_that_of_its_newest_sample(scenario_table, open_source):
    scenario = with_vgpus(vgpu(7, (40, 30, 20, 10)), vgpu(9), of_second=(vgpu(8, (1, 2, 3, 100)),))
    table = scenario_table(scenario)
    source = open_source(525)
    assert used(source.read()) == {7: (40, 30, 20, 10), 8: (1, 2, 3, 100)}
    assert used(source.read()) == {}  # the same samples are no news
    table.tick(1)
    assert used(source.read()) == {7: (40, 30, 20, 10), 8: (1, 2, 3, 100)}


@pytest.mark.parametrize("status", [2, 3, 4, 6, 10, 13, 999])
def test_a_status_of_the_utilization_costs_that_of_one_gpu(scenario_table, open_source, status):
    fault = CallFault("nvmlDeviceGetVgpuUtilization", status=status, device=FIRST)
    scenario_table(with_vgpus(vgpu(7, (1, 1, 1, 1)), of_second=(vgpu(8, (2, 2, 2, 2)),), faults=[fault]))
    readings = open_source(525).read()
    assert used(readings) == {8: (2, 2, 2, 2)}
    assert (of_vgpus(readings), readings.down, readings.problems) == ({(7, 525): 20480, (8, 525): 20480}, (), ())


def test_vgpus_are_listed_only_where_a_field_of_them_is_wanted(scenario_table, open_source, monkeypatch):
    asked = []
    original = pynvml.nvmlDeviceGetActiveVgpus
    monkeypatch.setattr(pynvml, "nvmlDeviceGetActiveVgpus", lambda handle: asked.append(1) or original(handle))
    scenario_table(with_vgpus(vgpu(7)))
    assert open_source(150, 500, 526).read().vgpus == ()
    assert asked == []


@pytest.mark.parametrize(("mode", "license_", "found"), [(2, 1, 1), (2, 0, 0), (0, 1, 0), (2, None, None)])
def test_a_virtual_machine_reads_the_license_of_its_vgpu(scenario_table, open_source, mode, license_, found):
    scenario = with_vgpus(mode=mode)
    first, *others = scenario.document.devices
    own = {key: value for key, value in first.fields.items() if key != "526"}
    first = msgspec.structs.replace(first, fields=own | ({} if license_ is None else {"526": license_}), use=())
    scenario_table(Scenario("guest", msgspec.structs.replace(scenario.document, devices=(first, *others))))
    readings = open_source(500, 526).read()
    values = samples(readings)
    assert values[FIRST, -1, -1, 526] == found
    assert values[FIRST, -1, -1, 500] == mode
    assert counted(readings, 526) == ({} if mode == 0 else {"blank": 2 if found is None else 1})  # the second has none


def test_what_a_virtual_machine_is_not_given_is_absent_and_not_zero(scenario_table, open_source):
    absent = {155: "nvmlDeviceGetPowerUsage", 191: "nvmlDeviceGetFanSpeed", 190: "nvmlDeviceGetPerformanceState"}
    faults = [CallFault(function, status=3, device=FIRST) for function in absent.values()]
    faults.append(CallFault("nvmlDeviceGetTemperatureV", status=3, device=FIRST))
    scenario_table(with_vgpus(mode=2, faults=faults))
    values = samples(open_source(*absent, 150, 500, 252).read())
    assert {field: values[FIRST, -1, -1, field] for field in (*absent, 150)} == dict.fromkeys((*absent, 150))
    assert values[FIRST, -1, -1, 500] == 2
    assert values[FIRST, -1, -1, 252] is not None
    assert values[SECOND, -1, -1, 155] is not None
