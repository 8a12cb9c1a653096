"""The processes of each GPU through NVML: which, their framebuffer, their utilization, and what a failure costs."""

import msgspec
import pytest

from exporter.node.devices.readings.processes import GpuProcess, GpuProcesses
from exporter.node.nvml.entities import processes
from exporter.node.nvml.source import NvmlSource
from exporter.node.simulation.document import CallFault
from exporter.node.simulation.processes import ProcessSpec
from exporter.node.simulation.scenario import Scenario, load
from tests.exporter.node.nvml.fixture import column, config
from tests.waiting import until

TEMPERATURE = 150
WHOLE = tuple(gpu.uuid for gpu in load("whole").document.devices)
MIG = load("mig").document.devices[0]
GIB = 1 << 30
CALLS = (
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetProcessUtilization",
)


def scenario(*specs, name="whole", events=()):
    document = load(name).document
    return Scenario(name, msgspec.structs.replace(document, processes=specs, events=events))


@pytest.fixture
def reads(scenario_table, clock):
    """Reads the processes of a scenario through NVML, a second after it began."""
    opened = []

    def start(what):
        table = scenario_table(what)
        wanted = msgspec.structs.replace(config([TEMPERATURE]), processes=True)
        source = NvmlSource(wanted, clock=clock, wall=lambda: table._begin + 1.0, patience=0.0)
        opened.append(source)
        table.tick(1)
        return source.read()

    yield start
    for source in opened:
        source.close()


def by_uuid(readings):
    return {each.uuid: each for each in readings.processes.gpus}


def test_each_process_is_listed_once_with_its_framebuffer_and_utilization(reads):
    readings = reads(
        scenario(
            ProcessSpec(20, WHOLE[0], 2048, sm=30),
            ProcessSpec(10, WHOLE[0], 1024, sm=0, kinds=("compute", "graphics")),
            ProcessSpec(30, WHOLE[1], None, sm=50, kinds=("compute", "mps")),
        )
    )
    first, second, third, *_ = readings.processes.gpus
    assert first == GpuProcesses(
        WHOLE[0], (GpuProcess(10, memory=GIB, sm=0.0), GpuProcess(20, memory=2 * GIB, sm=pytest.approx(0.3))), True
    )
    assert second.processes == (GpuProcess(30, memory=None, sm=pytest.approx(0.5), mps=True),)
    assert third == GpuProcesses(WHOLE[2], sm_known=True)
    assert len(readings.processes.gpus) == 8


def test_under_mig_each_process_has_its_instance_and_no_utilization(reads):
    readings = reads(
        scenario(
            ProcessSpec(7, f"{MIG.uuid}/{MIG.instances[0].gi}", 100, sm=10),
            ProcessSpec(7, f"{MIG.uuid}/{MIG.instances[1].gi}/0", 300, sm=10),
            name="mig",
        )
    )
    found = by_uuid(readings)[MIG.uuid]
    assert not found.sm_known
    places = sorted((MIG.instances[n].gi, 0, size << 20) for n, size in enumerate((100, 300)))
    assert [(each.gi, each.ci, each.memory) for each in found.processes] == places
    assert {each.sm for each in found.processes} == {None}


def test_without_the_privilege_for_a_whole_gpu_the_processes_of_each_of_its_instances_are_listed(reads):
    specs = [ProcessSpec(7 + n, f"{MIG.uuid}/{each.gi}", 100 + n) for n, each in enumerate(MIG.instances)]
    expected = by_uuid(reads(scenario(*specs, name="mig")))[MIG.uuid]
    faults = tuple(CallFault(f"{call}/all", status=4) for call in CALLS[:3])
    assert by_uuid(reads(scenario(*specs, name="mig", events=faults)))[MIG.uuid] == expected
    assert len(expected.processes) == len(MIG.instances)


def test_without_being_asked_no_process_is_read(scenario_table, open_source):
    scenario_table(scenario(ProcessSpec(20, WHOLE[0], 2048)))
    assert open_source(TEMPERATURE).read().processes is None


@pytest.mark.parametrize("status", [1, 2, 3, 4, 6, 7, 9, 15, 16, 18, 25, 999])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_fails_costs_the_processes_of_its_gpu_at_most(reads, call, status):
    specs = [ProcessSpec(10 + n, uuid, 1024, sm=40) for n, uuid in enumerate(WHOLE)]
    fault = CallFault(call, status=status, device=WHOLE[0])
    readings = reads(scenario(*specs, events=(fault,)))
    assert readings.down == ()
    assert len(column(readings, TEMPERATURE)) == 8
    first, *others = readings.processes.gpus
    assert all(len(each.processes) == 1 and each.sm_known and each.problem is None for each in others)
    if call == CALLS[3]:
        idle = status == 6  # no sample: which is known after a second only
        assert first.processes == (GpuProcess(10, memory=GIB, sm=0.0 if idle else None),)
    elif first.problem is None:  # a list that the GPU does not support is one without processes
        assert status == 3
        assert len(first.processes) == 1
    else:
        assert first.processes == ()
        assert first.problem[0] in {"failed", "not_supported", "no_permission"}


@pytest.mark.slow
def test_a_call_that_hangs_costs_its_gpu(scenario_table, clock):
    scenario_table(
        scenario(
            *(ProcessSpec(10 + n, uuid, 1024) for n, uuid in enumerate(WHOLE)),
            events=(CallFault(CALLS[0], hang=True, device=WHOLE[0]),),
        )
    )
    source = NvmlSource(msgspec.structs.replace(config([TEMPERATURE]), processes=True), clock=clock, patience=0.0)
    try:
        readings = source.read()
        assert {each.uuid for each in readings.processes.gpus} == set(WHOLE[1:])
        assert [reason for reason, _ in readings.problems] == ["gpu_hung"]
    finally:
        scenario_table("whole")
        until(lambda: not source._calls.unreturned())  # the library is shut down only then
        source.close()


@pytest.mark.parametrize("missing", [("_v3",), ("_v3", "_v2")])
def test_older_records_give_the_same_processes(reads, missing):
    faults = tuple(
        CallFault(f"nvmlDeviceGet{name}RunningProcesses{suffix}", status=13)
        for name in processes.LISTS
        for suffix in missing
    )
    readings = reads(scenario(ProcessSpec(20, WHOLE[0], 2048, sm=30), events=faults))
    assert by_uuid(readings)[WHOLE[0]].processes == (GpuProcess(20, memory=2 * GIB, sm=pytest.approx(0.3)),)


def test_the_function_that_replaces_the_deprecated_one_gives_the_same(reads):
    fault = CallFault(CALLS[3], status=26)
    readings = reads(scenario(ProcessSpec(20, WHOLE[0], 2048, sm=30), events=(fault,)))
    assert by_uuid(readings)[WHOLE[0]].processes[0].sm == pytest.approx(0.3)


def test_more_processes_than_are_read_are_a_problem_of_their_gpu(reads):
    many = [ProcessSpec(n, WHOLE[0], 1) for n in range(1, processes.MAX_PROCESSES + 2)]
    readings = reads(scenario(*many, ProcessSpec(9999, WHOLE[1], 1)))
    found = by_uuid(readings)
    assert found[WHOLE[0]].problem[0] == "too_many"
    assert found[WHOLE[0]].processes == ()
    assert len(found[WHOLE[1]].processes) == 1


def test_as_many_processes_as_are_read_are_no_problem(reads):
    many = [ProcessSpec(n, WHOLE[0], 1) for n in range(1, processes.MAX_PROCESSES + 1)]
    assert len(by_uuid(reads(scenario(*many)))[WHOLE[0]].processes) == processes.MAX_PROCESSES
