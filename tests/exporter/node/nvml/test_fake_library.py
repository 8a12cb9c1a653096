"""The fake libnvidia-ml.so.1 behaves as the real library, above all where that one returns an error."""

import ctypes

import pynvml
import pytest

from exporter.node.simulation.document import CallFault, GpuLoss, XidEvent
from exporter.node.simulation.scenario import load
from tests.exporter.node.nvml.fixture import with_events

MIG_ENABLED = load("mig").document.devices[0]
WHOLE_GPU = load("mig").document.devices[1]


@pytest.fixture
def nvml(scenario_table):
    table = scenario_table("mig")
    pynvml.nvmlInit()
    yield table
    pynvml.nvmlShutdown()


def code_of(function, *arguments, **options):
    with pytest.raises(pynvml.NVMLError) as error:
        function(*arguments, **options)
    return error.value.value


def mig(index=0):
    return pynvml.nvmlDeviceGetMigDeviceHandleByIndex(pynvml.nvmlDeviceGetHandleByIndex(0), index)


def test_nothing_works_before_initialization_or_after_shutdown(scenario_table):
    scenario_table("mig")
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlShutdown()
    assert code_of(pynvml.nvmlDeviceGetCount) == 1
    assert code_of(pynvml.nvmlDeviceGetUUID, handle) == 1
    assert code_of(pynvml.nvmlShutdown) == 1


def test_a_handle_of_an_earlier_session_is_an_invalid_argument(scenario_table):
    scenario_table("mig")
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    try:
        fresh = pynvml.nvmlDeviceGetHandleByIndex(1)
        assert pynvml.nvmlDeviceGetUUID(fresh) == WHOLE_GPU.uuid
        assert code_of(pynvml.nvmlDeviceGetUUID, handle) == 2
        assert code_of(pynvml.nvmlDeviceGetUUID, ctypes.c_void_p(1234)) == 2
    finally:
        pynvml.nvmlShutdown()


def test_sessions_are_counted(nvml):
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    assert pynvml.nvmlDeviceGetCount() == 2


def test_a_gpu_is_found_by_index_uuid_and_bus_id(nvml):
    for find, by in (
        (pynvml.nvmlDeviceGetHandleByIndex, 1),
        (pynvml.nvmlDeviceGetHandleByUUID, WHOLE_GPU.uuid),
        (pynvml.nvmlDeviceGetHandleByPciBusId, WHOLE_GPU.pci_bus_id),
        (pynvml.nvmlDeviceGetHandleByPciBusId, WHOLE_GPU.pci_bus_id[4:].lower()),
    ):
        assert pynvml.nvmlDeviceGetUUID(find(by)) == WHOLE_GPU.uuid
    assert code_of(pynvml.nvmlDeviceGetHandleByIndex, 2) == 2
    assert code_of(pynvml.nvmlDeviceGetHandleByUUID, "GPU-unknown") == 6
    assert code_of(pynvml.nvmlDeviceGetHandleByPciBusId, "00000000:FF:00.0") == 6


def test_versions_are_those_of_the_scenario(nvml):
    versions = load("mig").document.versions
    assert pynvml.nvmlSystemGetDriverVersion() == versions.driver
    assert pynvml.nvmlSystemGetNVMLVersion() == versions.nvml
    assert pynvml.nvmlSystemGetCudaDriverVersion() == versions.cuda


def test_pci_information_has_both_spellings_of_the_bus_id(nvml):
    info = pynvml.nvmlDeviceGetPciInfo(pynvml.nvmlDeviceGetHandleByIndex(1))
    assert info.busId == WHOLE_GPU.pci_bus_id
    assert info.busIdLegacy == WHOLE_GPU.pci_bus_id[4:]
    assert info.bus == int(WHOLE_GPU.pci_bus_id[9:11], 16)


def test_a_mig_device_has_its_gpu_its_ids_and_its_attributes(nvml):
    handle = mig()
    first = MIG_ENABLED.instances[0]
    parent = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
    assert pynvml.nvmlDeviceGetUUID(parent) == MIG_ENABLED.uuid
    assert pynvml.nvmlDeviceGetUUID(handle) == first.compute[0].uuid
    assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByUUID(first.compute[0].uuid)) == first.compute[0].uuid
    assert pynvml.nvmlDeviceGetGpuInstanceId(handle) == first.gi
    assert pynvml.nvmlDeviceGetComputeInstanceId(handle) == first.compute[0].ci
    assert pynvml.nvmlDeviceIsMigDeviceHandle(handle).value == 1
    assert pynvml.nvmlDeviceIsMigDeviceHandle(parent).value == 0
    attributes = pynvml.nvmlDeviceGetAttributes(handle)
    assert (attributes.gpuInstanceSliceCount, attributes.memorySizeMB) == (first.slices, first.memory_mib)
    assert pynvml.nvmlDeviceGetMemoryInfo(handle).total == first.memory_mib << 20


def test_indexes_without_a_mig_device_are_not_found(nvml):
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    count = sum(len(instance.compute) for instance in MIG_ENABLED.instances)
    assert code_of(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, count) == 6
    assert code_of(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 7) == 2
    assert pynvml.nvmlDeviceGetMigMode(gpu) == [1, 1]


def test_values_of_the_gpu_are_not_supported_on_a_mig_device(nvml):
    for function in (pynvml.nvmlDeviceGetPowerUsage, pynvml.nvmlDeviceGetUtilizationRates, pynvml.nvmlDeviceGetSerial):
        assert code_of(function, mig()) == 3
    assert [value.nvmlReturn for value in pynvml.nvmlDeviceGetFieldValues(mig(), [82])] == [3]


def test_utilization_is_not_supported_while_mig_is_on(nvml):
    assert code_of(pynvml.nvmlDeviceGetUtilizationRates, pynvml.nvmlDeviceGetHandleByIndex(0)) == 3
    assert pynvml.nvmlDeviceGetUtilizationRates(pynvml.nvmlDeviceGetHandleByIndex(1)).gpu >= 0


def test_a_buffer_that_is_too_small_is_an_error(nvml, library):
    small = ctypes.create_string_buffer(4)
    handle = pynvml.nvmlDeviceGetHandleByIndex(1)
    for name in ("nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetSerial"):
        assert getattr(library, name)(handle, small, 4) == 7
    assert library.nvmlSystemGetDriverVersion(small, 4) == 7


def test_a_record_of_another_version_is_an_error(nvml):
    handle = pynvml.nvmlDeviceGetHandleByIndex(1)
    assert code_of(pynvml.nvmlDeviceGetMemoryInfo, handle, version=pynvml.nvmlMemory_v2 + 1) == 25
    request = pynvml.c_nvmlGpmMetricsGet_t(version=7)
    assert code_of(pynvml.nvmlGpmMetricsGet, request) == 25


def test_used_memory_of_the_first_record_version_includes_what_is_reserved(nvml):
    handle = pynvml.nvmlDeviceGetHandleByIndex(1)
    newer = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    older = pynvml.nvmlDeviceGetMemoryInfo(handle)
    assert older.used == newer.used + newer.reserved > newer.used
    assert (older.total, older.free) == (newer.total, newer.free)


def test_each_field_value_has_its_own_return_code(nvml):
    handle = pynvml.nvmlDeviceGetHandleByIndex(1)
    values = pynvml.nvmlDeviceGetFieldValues(handle, [83, 9999, (138, 0xFFFFFFFF), 142])
    assert [value.nvmlReturn for value in values] == [0, 2, 0, 0]
    assert values[0].value.ullVal == pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) > 0
    assert values[0].timestamp > 0


def test_calls_and_field_values_give_the_same(nvml):
    handle = pynvml.nvmlDeviceGetHandleByIndex(1)
    corrected, uncorrected, pending, failed = pynvml.nvmlDeviceGetRemappedRows(handle)
    values = pynvml.nvmlDeviceGetFieldValues(handle, [142, 143, 144, 145, 3, 5, 94])
    totals = [pynvml.nvmlDeviceGetTotalEccErrors(handle, 0, counter) for counter in (0, 1)]
    plain = [corrected, uncorrected, pending, failed, *totals, pynvml.nvmlDeviceGetPcieReplayCounter(handle)]
    assert [value.value.ullVal for value in values] == plain
    assert pynvml.nvmlDeviceGetTemperature(handle, 0) == pynvml.nvmlDeviceGetTemperatureV(handle, 0)
    reasons = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    assert reasons == pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)


def test_there_are_no_processes(nvml):
    handle = pynvml.nvmlDeviceGetHandleByIndex(1)
    assert pynvml.nvmlDeviceGetComputeRunningProcesses(handle) == []
    assert pynvml.nvmlDeviceGetGraphicsRunningProcesses(handle) == []


def test_every_call_on_a_lost_gpu_returns_15(scenario_table):
    table = scenario_table(with_events("mig", GpuLoss(WHOLE_GPU.uuid, 10)))
    pynvml.nvmlInit()
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(1)
        table.tick(11)
        assert code_of(pynvml.nvmlDeviceGetHandleByIndex, 1) == 15
        for function in (pynvml.nvmlDeviceGetUUID, pynvml.nvmlDeviceGetPowerUsage, pynvml.nvmlDeviceGetMemoryInfo):
            assert code_of(function, handle) == 15
        assert pynvml.nvmlDeviceGetCount() == 2
    finally:
        pynvml.nvmlShutdown()


def test_an_event_is_returned_once_and_only_if_it_came_after_the_set_was_created(scenario_table):
    table = scenario_table(
        with_events(
            "mig",
            XidEvent(WHOLE_GPU.uuid, 1, 13),
            XidEvent(f"{MIG_ENABLED.uuid}/{MIG_ENABLED.instances[0].gi}", 10, 43),
        )
    )
    table.tick(2)
    pynvml.nvmlInit()
    try:
        events = pynvml.nvmlEventSetCreate()
        for index in range(2):
            pynvml.nvmlDeviceRegisterEvents(pynvml.nvmlDeviceGetHandleByIndex(index), 8, events)
        assert code_of(pynvml.nvmlEventSetWait_v2, events, 0) == 10
        table.tick(11)
        event = pynvml.nvmlEventSetWait_v2(events, 0)
        assert (event.eventType, event.eventData, event.gpuInstanceId) == (8, 43, MIG_ENABLED.instances[0].gi)
        assert pynvml.nvmlDeviceGetUUID(event.device) == MIG_ENABLED.uuid
        assert code_of(pynvml.nvmlEventSetWait_v2, events, 20) == 10
        pynvml.nvmlEventSetFree(events)
    finally:
        pynvml.nvmlShutdown()


def gpm(first, second, *metrics):
    request = pynvml.c_nvmlGpmMetricsGet_t(version=1, numMetrics=len(metrics), sample1=first, sample2=second)
    for position, number in enumerate(metrics):
        request.metrics[position].metricId = number
    pynvml.nvmlGpmMetricsGet(request)
    return [(metric.nvmlReturn, metric.value) for metric in request.metrics[: len(metrics)]]


@pytest.fixture
def samples(nvml):
    pair = [pynvml.nvmlGpmSampleAlloc() for _ in range(2)]
    yield pair
    for sample in pair:
        pynvml.nvmlGpmSampleFree(sample)


def test_gpm_is_percent_and_mebibytes_per_second(samples):
    gpu = pynvml.nvmlDeviceGetHandleByIndex(1)
    for sample in samples:
        pynvml.nvmlGpmSampleGet(gpu, sample)
    (code, tensor), (_, sent) = gpm(*samples, 5, 20)
    assert code == 0
    assert 0 <= tensor <= 100
    assert 0 <= sent < 100_000
    assert gpm(*samples, 400)[0][0] == 2


def test_gpm_has_no_number_when_the_samples_are_in_the_wrong_order(samples):
    gpu = pynvml.nvmlDeviceGetHandleByIndex(1)
    for sample in samples:
        pynvml.nvmlGpmSampleGet(gpu, sample)
    ((code, value),) = gpm(*reversed(samples), 5)
    assert code == 0
    assert value != value  # noqa: PLR0124 - NaN


def test_gpm_rejects_empty_samples_and_samples_of_different_devices(samples):
    assert code_of(gpm, *samples, 5) == 2
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlGpmSampleGet(gpu, samples[0])
    pynvml.nvmlGpmMigSampleGet(gpu, MIG_ENABLED.instances[0].gi, samples[1])
    assert code_of(gpm, *samples, 5) == 2
    assert code_of(pynvml.nvmlGpmMigSampleGet, gpu, 99, samples[1]) == 6


def test_a_call_fault_affects_only_its_function(scenario_table):
    scenario_table(with_events("mig", CallFault("nvmlDeviceGetPowerUsage", status=4)))
    pynvml.nvmlInit()
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(1)
        assert code_of(pynvml.nvmlDeviceGetPowerUsage, handle) == 4
        assert pynvml.nvmlDeviceGetTemperature(handle, 0) > 0
    finally:
        pynvml.nvmlShutdown()


def test_without_a_table_there_is_no_driver(scenario_table):
    scenario_table("mig").path.unlink()
    assert code_of(pynvml.nvmlInit) == 9
