"""The driver is unbound from a GPU, or bound to one: that is noticed whatever hangs. No driver has to report it."""

import threading
from itertools import count

import pynvml
import pytest

from exporter.node.nvml.events.driver_events import DriverEvents
from exporter.node.simulation.document import CallFault, GpuLoss, XidEvent
from exporter.node.simulation.scenario import load
from exporter.source import SourceError
from tests.exporter.node.nvml.fixture import wait_for_xids, with_events
from tests.waiting import until

CREATE, REGISTER, WAIT = "nvmlSystemEventSetCreate", "nvmlSystemRegisterEvents", "nvmlSystemEventSetWait"
UUIDS = tuple(gpu.uuid for gpu in load("whole").document.devices)


def unbound(number, at, for_=None):
    return GpuLoss(UUIDS[number], at, for_, state="detached")


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "driver events"]


@pytest.fixture
def noticed():
    return threading.Event()


@pytest.fixture
def left():
    """The XIDs that were handed over."""
    return []


@pytest.fixture
def reading(scenario_table, open_source, noticed, left):
    """Opens a source that has read the GPUs of a scenario with these events; returns it and the scenario's table."""

    def start(*events):
        table = scenario_table(with_events("whole", *events))
        source = open_source(150, 230, unbound=lambda xids: (left.extend(xids), noticed.set()))
        source.read()
        return table, source

    return start


@pytest.fixture
def watched(reading):
    """Opens a source as `reading` does, and waits until the driver's events are registered."""

    def start(*events):
        table, source = reading(*events)
        until(lambda: source._driver_events and source._driver_events.receives)
        return table, source

    return start


def test_that_the_driver_is_unbound_from_any_gpu_is_noticed(watched, noticed):
    table, _ = watched(unbound(3, 10))
    assert not noticed.is_set()
    table.tick(11)
    assert noticed.wait(60)


def test_the_xids_since_the_last_reading_and_in_it_are_handed_over(watched, noticed, left):
    table, source = watched(XidEvent(UUIDS[3], 5, 31), XidEvent(UUIDS[3], 8, 79), unbound(3, 10))
    table.tick(6)
    wait_for_xids(source, 31)
    table.tick(9)
    until(lambda: [report.code for report in source._gpu_memory.xids.unconfirmed()][-1:] == [79])
    table.tick(11)
    until(noticed.is_set)
    assert [(report.uuid, report.code) for report in left] == [(UUIDS[3], 31), (UUIDS[3], 79)]


def test_it_is_noticed_while_a_call_hangs(watched, noticed):
    table, source = watched(CallFault("nvmlDeviceGetTemperatureV", at=5, for_=20, hang=True), unbound(3, 10))
    table.tick(6)
    hanging = threading.Thread(target=source.read)
    hanging.start()
    table.tick(11)
    assert noticed.wait(60)
    table.tick(30)
    hanging.join()


def test_it_is_noticed_when_the_gpu_is_bound_again_at_once(watched, noticed):
    table, _ = watched(unbound(3, 10, 0.5))
    table.tick(11)
    assert noticed.wait(60)


def test_more_events_than_fit_into_an_answer_are_as_an_unbinding(watched, noticed):
    table, _ = watched(*(unbound(3, 10 + n / 100, 0.005) for n in range(70)))
    table.tick(12)
    assert noticed.wait(60)


def test_an_unbinding_from_before_is_not_reported(watched, noticed):
    table, _ = watched(unbound(3, -10, 5))
    table.tick(1)
    assert not noticed.wait(0.3)


@pytest.mark.parametrize("function", [CREATE, REGISTER])
@pytest.mark.parametrize("code", [3, 4, 13, 25], ids=["not supported", "no permission", "not found", "version"])
def test_a_driver_without_such_events_is_read_without_them_and_without_a_problem(reading, noticed, function, code):
    table, source = reading(CallFault(function, status=code))
    until(lambda: not threads())
    table.tick(1)
    readings = source.read()
    assert (readings.problems, len(readings.inventory), threads()) == ((), 8, [])


def test_the_watch_ends_with_the_session_and_begins_with_the_next(watched):
    _, source = watched()
    assert len(threads()) == 1
    source.close()
    assert threads() == []
    source.read()
    assert len(threads()) == 1


@pytest.mark.parametrize("function", [CREATE, REGISTER, WAIT])
def test_after_a_failure_the_events_are_registered_again(scenario_table, noticed, function):
    again_and_again = (unbound(3, 10 + n, 0.5) for n in range(1000))  # one may come while none is registered
    table = scenario_table(with_events("whole", CallFault(function, for_=5, status=999), *again_and_again))
    events = DriverEvents(noticed.set, own_session=True, retry_seconds=0.01)
    time = count(6)
    until(lambda: table.tick(next(time)) and noticed.wait(0.01))
    events.close()


def test_a_source_that_is_not_to_watch_has_no_thread(scenario_table, open_source):
    scenario_table("whole")
    open_source(150).read()
    assert threads() == []


def test_a_gpu_to_which_the_driver_is_bound_is_read_at_once(watched):
    table, source = watched(unbound(3, -10, 20))
    table.tick(9)
    assert UUIDS[3] not in {device.uuid for device in source.read().inventory}
    table.tick(11)
    until(lambda: UUIDS[3] in {device.uuid for device in source.read().inventory})


def test_beside_an_engine_it_has_a_session_of_its_own(scenario_table, noticed):
    table = scenario_table(with_events("whole", unbound(3, 10)))
    events = DriverEvents(noticed.set, own_session=True)
    until(lambda: events.receives)
    assert pynvml.nvmlDeviceGetCount() == 8
    table.tick(11)
    assert noticed.wait(60)
    events.close()
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()


def test_it_is_noticed_while_a_call_that_hangs_keeps_a_failed_session_open(watched, noticed):
    hang = CallFault("nvmlDeviceGetTemperatureV", at=5, for_=30, hang=True, device=UUIDS[0])
    table, source = watched(hang, CallFault("nvmlDeviceGetCount_v2", at=7, for_=60, status=9), unbound(3, 10))
    table.tick(6)
    source.read()
    table.tick(8)
    for _ in range(2):
        with pytest.raises(SourceError, match="not loaded"):
            source.read()
    until(lambda: source._driver_events and source._driver_events.receives)
    table.tick(11)
    assert noticed.wait(60)
    table.tick(40)


def test_where_nothing_keeps_a_failed_session_open_nothing_is_watched(watched):
    table, source = watched(CallFault("nvmlDeviceGetCount_v2", at=7, for_=60, status=9))
    table.tick(8)
    with pytest.raises(SourceError, match="not loaded"):
        source.read()
    assert threads() == []
