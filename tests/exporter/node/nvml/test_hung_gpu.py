"""A call of NVML that hangs or is slow costs its own GPU; the others are in every collection."""

import os
import time
from pathlib import Path

import msgspec
import pytest

from exporter.node.nvml.source import MAX_BUDGET_SECONDS, MIN_BUDGET_SECONDS, time_budget
from exporter.node.reader.process import ReaderProcess
from exporter.node.reader.supervisor import COMMAND, Reader, ReaderTimings
from exporter.node.simulation.document import CallFault, GpuLoss, XidEvent
from exporter.node.simulation.scenario import Scenario, load
from exporter.source import SourceError
from tests.exporter.node.nvml.fixture import column, config, samples, wait_for_xids, with_events
from tests.exporter.node.reader.fake_readers import LIMIT_SECONDS, PATIENT, eventually, settled
from tests.fakes.build import build
from tests.fakes.scenario_table import VARIABLE, ScenarioTable
from tests.waiting import until

pytestmark = pytest.mark.slow

TEMPERATURE, XID, MEMORY, TENSOR = 150, 230, 252, 1004
FIELDS = (TEMPERATURE, XID, MEMORY, TENSOR)
UUIDS = tuple(gpu.uuid for gpu in load("whole").document.devices)


def hangs(function, uuid=UUIDS[0], name="whole"):
    return with_events(name, CallFault(function, hang=True, device=uuid))


def two_gpus_with_mig():
    """The scenario `mig` with its GPU twice."""
    document = load("mig").document
    first = document.devices[0]

    def renamed(instance):
        compute = tuple(msgspec.structs.replace(each, uuid=f"{each.uuid}-2") for each in instance.compute)
        return msgspec.structs.replace(instance, compute=compute)

    second = msgspec.structs.replace(
        first,
        uuid=f"{first.uuid}-2",
        index=1,
        pci_bus_id="00000000:FE:00.0",
        instances=tuple(renamed(instance) for instance in first.instances),
    )
    return msgspec.structs.replace(document, devices=(first, second), events=())


@pytest.fixture
def ended(scenario_table, open_source):
    """Ends every hang before the sources are closed, so that no thread of the fake library stays behind."""
    yield
    scenario_table("whole")


@pytest.mark.usefixtures("ended")
@pytest.mark.parametrize(
    "function",
    [
        "nvmlDeviceGetHandleByIndex_v2",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlGpmSampleGet",
    ],
)
def test_a_call_that_hangs_on_one_gpu_costs_that_gpu_until_it_returns(scenario_table, open_source, clock, function):
    table, source = scenario_table("whole"), open_source(*FIELDS)
    before = source.read()
    table.scenario = hangs(function)
    table.tick(1)
    for _ in range(3):
        clock.now += 1
        readings = source.read()
        assert readings.inventory == before.inventory
        assert readings.down == UUIDS[:1]
        assert {key[0] for key in samples(readings)} == set(UUIDS[1:])
        assert None not in samples(readings).values()
        assert [reason for reason, _ in readings.problems] == ["gpu_hung"]
        assert f"NVML index 0 ({UUIDS[0]})" in readings.problems[0][1]
    table.scenario = with_events("whole")
    table.tick(2)

    def everything_is_read():
        clock.now += 1
        readings = source.read()
        return readings.down == readings.problems == () and None not in column(readings, TENSOR)

    until(everything_is_read)


@pytest.mark.usefixtures("ended")
def test_other_gpus_that_are_lost_or_have_an_xid_meanwhile_are_read_as_ever(scenario_table, open_source):
    table, source = scenario_table("whole"), open_source(TEMPERATURE, XID)
    source.read()
    hang = CallFault("nvmlDeviceGetTemperatureV", hang=True, device=UUIDS[0])
    table.scenario = with_events("whole", hang, GpuLoss(UUIDS[1], 1), XidEvent(UUIDS[2], 1, 31))
    table.tick(2)
    wait_for_xids(source, 31)
    readings = source.read()
    assert readings.down == UUIDS[:2]
    assert column(readings, XID) == [31, 0, 0, 0, 0, 0]


@pytest.mark.usefixtures("ended")
def test_a_wait_for_events_that_hangs_costs_the_xids_of_that_gpu_until_it_returns(scenario_table, open_source):
    # From the start: however late a thread begins to wait, it hangs.
    hang = CallFault("nvmlEventSetWait_v2", for_=10, hang=True, device=UUIDS[0])
    table = scenario_table(with_events("whole", hang, XidEvent(UUIDS[0], 5, 63), XidEvent(UUIDS[1], 5, 31)))
    source = open_source(TEMPERATURE, XID)
    source.read()
    table.tick(6)
    assert [report.uuid for report in wait_for_xids(source, 31)] == [UUIDS[1]]
    assert source.read().down == ()
    table.tick(11)
    assert [report.uuid for report in wait_for_xids(source, 63)] == [UUIDS[0]]


@pytest.mark.usefixtures("ended")
def test_a_session_is_neither_reopened_nor_shut_down_while_a_call_hangs(scenario_table, open_source, clock):
    table, source = scenario_table("whole"), open_source(TENSOR)
    source.read()
    table.scenario = hangs("nvmlDeviceGetMigMode")
    table.tick(1)
    for _ in range(3):
        clock.now += 61
        assert column(source.read(), TENSOR).count(None) == 0, "two samples of one session"
    source.close()
    assert column(source.read(), TENSOR) == [None] * 7, "what the source holds is freed for the other GPUs"


@pytest.mark.usefixtures("ended")
def test_a_gpu_that_is_slow_within_the_time_is_read(scenario_table, open_source):
    table, source = scenario_table("whole"), open_source(TEMPERATURE)
    source.read()
    table.scenario = with_events("whole", CallFault("nvmlDeviceGetTemperatureV", delay=0.5, device=UUIDS[0]))
    table.tick(1)
    readings = source.read()
    assert readings.down == readings.problems == ()
    assert None not in column(readings, TEMPERATURE)


@pytest.mark.parametrize(
    ("interval", "first", "seconds"),
    [(0.1, False, 2.0), (1.0, False, 2.0), (6.0, False, 3.0), (30.0, False, 5.0), (1.0, True, 5.0), (30.0, True, 5.0)],
)
def test_the_time_for_the_gpus_is_shorter_than_the_deadline_of_the_reader(interval, first, seconds):
    assert time_budget(interval, first=first) == seconds
    assert MIN_BUDGET_SECONDS <= seconds <= MAX_BUDGET_SECONDS < ReaderTimings().deadline


@pytest.fixture
def reader_of(tmp_path):
    """Starts real reader processes over the fake library, which follows the table."""
    build(tmp_path, only="libnvidia-ml")
    readers = []

    def start(scenario, timings=PATIENT, interval=5.0):
        table = ScenarioTable(scenario, tmp_path / "table")
        table.tick(0)
        environment = ("env", f"{VARIABLE}={table.path}", f"LD_LIBRARY_PATH={tmp_path}")
        asked = msgspec.structs.replace(config(FIELDS), interval=interval)
        readers.append(Reader(asked, timings, (*environment, *COMMAND)))
        return table, readers[-1]

    yield start
    for reader in readers:
        reader.close()


def status(pid, key):
    """One number of /proc/PID/status: `Threads`, or `VmRSS` in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


@pytest.mark.process
def test_a_reader_process_with_a_gpu_that_hangs_goes_on_with_the_others(reader_of):
    table, reader = reader_of(with_events("whole"))
    assert len(eventually(reader.read).inventory) == 8
    pid, threads = reader.pid, status(reader.pid, "Threads")
    table.scenario = hangs("nvmlDeviceGetMemoryInfo_v2")
    table.tick(1)
    until(lambda: eventually(reader.read).down == UUIDS[:1])
    memory = status(pid, "VmRSS")
    for _ in range(100):
        readings = reader.read()
        assert readings.down == UUIDS[:1]
        assert {key[0] for key in samples(readings)} == set(UUIDS[1:])
    assert status(pid, "Threads") <= threads + 1, "one thread stays in the call that hangs"
    assert status(pid, "VmRSS") - memory < 2048
    table.scenario = with_events("whole")
    table.tick(2)
    until(lambda: reader.read().down == ())
    until(lambda: status(pid, "Threads") == threads)
    assert reader.pid == pid


@pytest.mark.process
@pytest.mark.slow
def test_a_reader_process_that_starts_while_a_gpu_hangs_reads_the_others(reader_of):
    _, reader = reader_of(hangs("nvmlDeviceGetHandleByIndex_v2", UUIDS[2]))
    readings = eventually(reader.read)
    assert [device.index for device in readings.inventory] == [0, 1, 3, 4, 5, 6, 7]
    assert [reason for reason, _ in readings.problems] == ["gpu_hung"]
    assert "NVML index 2 has not returned" in readings.problems[0][1]


@pytest.mark.process
def test_the_mig_devices_of_a_gpu_that_hangs_keep_their_labels_and_cost_no_other(reader_of):
    document = two_gpus_with_mig()
    first, second = (gpu.uuid for gpu in document.devices)
    table, reader = reader_of(Scenario("two", document))
    before = eventually(reader.read)
    hang = CallFault("nvmlGpmMigSampleGet", hang=True, device=first)
    table.scenario = Scenario("two", msgspec.structs.replace(document, events=(hang,)))
    table.tick(1)
    until(lambda: eventually(reader.read).down == (first,))
    readings = reader.read()
    assert readings.inventory == before.inventory
    assert {key[0] for key in samples(readings)} == {second}
    assert {key for key in samples(before) if key[0] == second} == set(samples(readings))
    table.scenario = Scenario("two", document)
    table.tick(2)
    until(lambda: reader.read().down == ())
    assert samples(reader.read()).keys() == samples(before).keys()


@pytest.mark.process
@pytest.mark.parametrize("function", ["nvmlInitWithFlags", "nvmlDeviceGetCount_v2", "nvmlDeviceGetTemperatureV"])
def test_a_reader_process_whose_whole_library_hangs_is_killed(reader_of, function):
    scenario = with_events("whole", CallFault(function, hang=True))
    _, reader = reader_of(scenario, ReaderTimings(deadline=LIMIT_SECONDS, opening=1.0))
    assert settled(reader.read).reason == "hung"
    assert reader.pid is None


@pytest.mark.process
def test_a_call_that_hangs_does_not_keep_the_reader_process_from_ending(tmp_path):
    build(tmp_path, only="libnvidia-ml")
    table = ScenarioTable(with_events("whole"), tmp_path / "table")
    environment = ("env", f"{VARIABLE}={table.path}", f"LD_LIBRARY_PATH={tmp_path}")
    asked = config(FIELDS)
    process = ReaderProcess((*environment, *COMMAND), asked)
    never_read, never_written = os.pipe()
    for scenario in (with_events("whole"), hangs("nvmlDeviceGetTemperatureV")):
        table.scenario = scenario
        table.tick(0)
        process.request(asked.fields)
        reply = process.receive(time.monotonic() + LIMIT_SECONDS, never_read)
    os.close(never_read)
    os.close(never_written)
    assert reply.readings.down == UUIDS[:1]
    assert process.stop(LIMIT_SECONDS)
    assert process._process.returncode == 0, "it has ended by itself"


@pytest.mark.usefixtures("ended")
def test_a_failed_library_does_not_wait_for_a_call_that_hangs(scenario_table, open_source, clock):
    table, source = scenario_table("whole"), open_source(TEMPERATURE)
    source.read()
    hang = CallFault("nvmlDeviceGetMigMode", hang=True, device=UUIDS[0])
    table.scenario = with_events("whole", hang)
    table.tick(1)
    source.read()
    table.scenario = with_events("whole", hang, CallFault("nvmlDeviceGetCount_v2", status=18))
    table.tick(2)
    with pytest.raises(SourceError, match="replaced"):
        source.read()
    table.scenario = with_events("whole")
    table.tick(3)
    clock.now += 2
    until(lambda: source.read().down == ())


@pytest.mark.usefixtures("ended")
def test_a_session_that_could_not_be_shut_down_is_ended_before_the_next_one(scenario_table, open_source):
    document = load("whole").document
    table = scenario_table(
        Scenario("seven", msgspec.structs.replace(document, devices=document.devices[:7], events=()))
    )
    source = open_source(TEMPERATURE)
    assert len(source.read().inventory) == 7
    table.scenario = hangs("nvmlDeviceGetMigMode")
    table.tick(1)
    assert source.read().down == UUIDS[:1]
    source.close()
    table.scenario = with_events("whole")
    table.tick(2)
    until(lambda: not source._calls.unreturned())
    assert len(source.read().inventory) == 8, "a new session lists the GPUs of now"
