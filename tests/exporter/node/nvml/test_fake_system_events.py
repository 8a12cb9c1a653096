"""The fake libnvidia-ml reports that the driver is unbound from a GPU, and has GPUs open, as the real library does."""

import ctypes

import pynvml
import pytest

from exporter.node.simulation.document import GpuLoss
from exporter.node.simulation.scenario import load
from tests.exporter.node.nvml.fixture import with_events

UNBIND, BIND = pynvml.nvmlSystemEventTypeGpuDriverUnbind, pynvml.nvmlSystemEventTypeGpuDriverBind
UUIDS = [gpu.uuid for gpu in load("whole").document.devices]
TWICE = [GpuLoss(uuid, 10, 5, state="detached") for uuid in UUIDS[:2]]


@pytest.fixture
def table(scenario_table):
    table = scenario_table(with_events("whole", *TWICE))
    pynvml.nvmlInit()
    yield table
    pynvml.nvmlShutdown()


@pytest.fixture
def event_set(table):
    made = pynvml.nvmlSystemEventSetCreate(pynvml.nvmlSystemEventSetCreateRequest_v1)
    yield made
    pynvml.nvmlSystemEventSetFree(pynvml.nvmlSystemEventSetFreeRequest_v1, made)


def register(event_set, types):
    pynvml.nvmlSystemRegisterEvents(pynvml.nvmlSystemRegisterEventRequest_v1, types, event_set)


def received(event_set, room=4):
    events = (pynvml.c_nvmlSystemEventData_v1_t * room)()
    version = pynvml.nvmlSystemEventSetWaitRequest_v1
    return [event["eventType"] for event in pynvml.nvmlSystemEventSetWait(version, event_set, 20, events, room)]


def test_each_unbinding_and_binding_is_reported_once(table, event_set):
    register(event_set, UNBIND | BIND)
    assert received(event_set) == []
    table.tick(11)
    assert received(event_set) == [UNBIND, UNBIND]
    table.tick(16)
    assert received(event_set) == [BIND, BIND]
    assert received(event_set) == []


def test_only_what_is_registered_is_reported_and_nothing_from_before(table, event_set):
    table.tick(11)
    register(event_set, BIND)
    assert received(event_set) == []
    table.tick(16)
    assert received(event_set) == [BIND, BIND]


def test_more_events_than_there_is_room_for_are_an_error(table, event_set):
    register(event_set, UNBIND)
    table.tick(11)
    with pytest.raises(pynvml.NVMLError_InsufficientSize):
        received(event_set, room=1)


def test_unknown_events_are_an_invalid_argument(table, event_set):
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        register(event_set, 4)


def test_a_record_of_another_version_is_rejected(table):
    request = pynvml.c_nvmlSystemEventSetCreateRequest_v1_t()
    request.version = 0x2000010
    with pytest.raises(pynvml.NVMLError_ArgumentVersionMismatch):
        pynvml.c_nvmlSystemEventSetCreate(ctypes.byref(request))


def test_a_gpu_without_a_driver_is_lost_in_this_session_and_not_listed_in_the_next(table):
    handle = pynvml.nvmlDeviceGetHandleByUUID(UUIDS[0])
    table.tick(11)
    with pytest.raises(pynvml.NVMLError_GpuIsLost):
        pynvml.nvmlDeviceGetUUID(handle)
    assert pynvml.nvmlDeviceGetCount() == 8
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() == 6
    assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0)) == UUIDS[2]
