"""Faults of single GPUs and values: everything else is exposed as before."""

import threading

import msgspec
import pytest

from exporter.backoff import LONGEST_PAUSE
from exporter.node.dcgm.reading.sampling import BASIC_PAUSES, PROFILING_PAUSES
from exporter.node.devices.counters.counters_file import parse
from exporter.node.simulation.document import CallFault, GpuLoss, SampleFault
from exporter.node.simulation.scenario import load
from tests.exporter.node.dcgm.fixture import EngineFixture, document, gpu_spec, uuid_of
from tests.exporter.node.dcgm.rejecting_library import rejecting
from tests.exporter.node.exporter_process import INTERVAL_MS
from tests.exporter.node.scenario_flow import flow_over
from tests.fakes.build import build
from tests.faults.fault import Exposed, as_before, fault
from tests.faults.programs import INTERVAL as IN_PROCESS_INTERVAL
from tests.faults.programs import collecting
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.slow]

INTERVAL = INTERVAL_MS / 1000
FIRST = load("whole").document.devices[0].uuid
NOT_SUPPORTED = 3
"""NVML_ERROR_NOT_SUPPORTED (nvml.h)."""
GENERIC_ERROR = -3
"""A status of libdcgm."""
TIMED_OUT = -29
"""A status of libdcgm."""
NOT_UTF_8 = "\udcff"
"""In a scenario: the byte 0xFF."""
VALUES = 8 * 24
"""Of eight healthy GPUs: the rows of the default file but vGPU license."""


def settled(node):
    """The exposition of a running exporter once every series is there."""
    return Exposed(node.wait_for(lambda s: len(s.measured()) >= VALUES and s.up("kubelet"), "every series").text)


def of_gpu(exposed, uuid):
    """The DCGM-named metrics of one GPU."""
    return {name for name, labels, _ in exposed.samples if name.startswith("DCGM_") and labels["UUID"] == uuid}


@fault(
    name="One of eight GPUs is lost: it has fallen off the bus, or the host engine does not list it any more",
    shows=(
        "gpugauge_device_up 0",
        "gpugauge_devices_observed 7",
        "gpugauge_devices_expected 8",
        'gpugauge_source_up{source="dcgm"} 1',
    ),
    pause=LONGEST_PAUSE,
    collections=2,
)
@pytest.mark.parametrize("seen", ["status", "absent"])
def test_a_lost_gpu_costs_its_own_series_and_makes_nothing_unready(exporter, row, seen):
    node = exporter(scenario="whole")
    before = settled(node)
    node.set_events(GpuLoss(FIRST, node.scenario_time(), seen=seen))
    shown = row.wait_until_shown(node.scraper.get)
    assert shown.value("gpugauge_device_up", UUID=FIRST) == 0
    assert of_gpu(shown, FIRST) == set()
    assert others_of(before) <= shown.state()
    node.set_events()
    row.wait_until_recovered(node.scraper.get, as_before(before), INTERVAL)


def others_of(exposed):
    """The series of every GPU but the first, as far as they do not change with time."""
    return {sample for sample in exposed.state() if dict(sample[1]).get("UUID") not in (None, FIRST)}


@fault(
    name="DCGM does not support one of the GPUs, such as an old display adapter",
    shows=(
        "gpugauge_device_up 0",
        "gpugauge_devices_observed 7",
        "gpugauge_devices_expected 8",
        'gpugauge_source_up{source="dcgm"} 1',
    ),
    recovery="none: its values can only be read through NVML (`--source nvml`)",
)
def test_a_gpu_that_is_not_supported_costs_its_own_series(exporter, row):
    node = exporter(scenario="whole")
    before = settled(node)
    node.set_events(GpuLoss(FIRST, node.scenario_time(), state="unsupported"))
    shown = row.wait_until_shown(node.scraper.get)
    assert of_gpu(shown, FIRST) == set()
    assert others_of(before) <= shown.state()


@fault(
    name="The host engine rejects calls for one of its GPUs",
    shows=(
        "gpugauge_device_up 0",
        "gpugauge_devices_observed 7",
        'gpugauge_source_up{source="dcgm"} 1',
        'gpugauge_source_problem{source="dcgm",reason="engine_error"} 1',
    ),
    pause=BASIC_PAUSES[1],
)
def test_a_gpu_that_the_engine_rejects_costs_its_own_series(exporter, row):
    node = exporter(scenario="whole")
    before = settled(node)
    node.set_events(CallFault("dcgmEntitiesGetLatestValues", status=GENERIC_ERROR, device=FIRST))
    shown = row.wait_until_shown(node.scraper.get)
    assert of_gpu(shown, FIRST) == set()
    assert others_of(before) <= shown.state()
    node.set_events()
    row.wait_until_recovered(node.scraper.get, as_before(before), INTERVAL)


@fault(
    name="Calls of NVML for one GPU hang, or take many seconds",
    shows=(
        "gpugauge_device_up 0",
        "gpugauge_devices_observed 7",
        'gpugauge_source_up{source="nvml"} 1',
        'gpugauge_source_problem{source="nvml",reason="gpu_hung"} 1',
    ),
    collections=3,
)
def test_a_gpu_whose_calls_hang_costs_its_own_series_in_every_collection(exporter, row):
    node = exporter("nvml", scenario="whole")
    before, reader = settled(node), node.reader_pid()
    node.set_events(CallFault("nvmlDeviceGetMemoryInfo_v2", hang=True, device=FIRST))
    row.wait_until_shown(node.scraper.get)
    others = others_of(before)
    number = node.scraper.count
    until(lambda: node.scraper.count > number + 60)
    for _, scrape in node.scraper.recent.copy():
        if scrape.reasons("nvml") == {"gpu_hung"}:
            assert others <= Exposed(scrape.text).state()
    assert node.scraper.latest.reasons("nvml") == {"gpu_hung"}
    node.set_events()
    row.wait_until_recovered(node.scraper.get, as_before(before), INTERVAL)
    assert node.reader_pid() == reader


@fault(
    name="One GPU fewer is read than `--expected-gpus` says or the PCI bus has",
    shows=("gpugauge_devices_observed 8", "gpugauge_devices_expected 9", 'gpugauge_source_up{source="dcgm"} 1'),
    collections=0,
    recovery="with the missing GPU",
)
def test_a_gpu_that_was_never_seen_is_expected(exporter, row):
    node = exporter("dcgm", "--expected-gpus", "9", scenario="whole")
    row.wait_until_shown(node.scraper.get)


@fault(
    name="The engine has no value of a field, or one that no GPU can have",
    shows=(
        'gpugauge_rejected_values_total{field="DCGM_FI_DEV_GPU_TEMP",reason="blank"} > 0',
        'gpugauge_source_up{source="dcgm"} 1',
        "gpugauge_device_up 1",
    ),
    absent=("DCGM_FI_DEV_GPU_TEMP",),
)
def test_a_blank_value_costs_itself(exporter, row):
    node = exporter(scenario="whole")
    before = settled(node)
    node.set_events(SampleFault(node.scenario_time(), fields=("DCGM_FI_DEV_GPU_TEMP",), sentinel="blank"))
    shown = row.wait_until_shown(node.scraper.get)
    assert before.named("DCGM_") - shown.named("DCGM_") == {"DCGM_FI_DEV_GPU_TEMP"}
    node.set_events()
    row.wait_until_recovered(node.scraper.get, as_before(before), INTERVAL)


@pytest.mark.slow
@fault(
    name="The values of a field stand still: its watch has ended",
    shows=(
        'gpugauge_rejected_values_total{field="DCGM_FI_DEV_GPU_TEMP",reason="stale"} > 0',
        'gpugauge_source_up{source="dcgm"} 1',
    ),
    absent=("DCGM_FI_DEV_GPU_TEMP",),
    pause=LONGEST_PAUSE,
)
def test_a_value_that_stands_still_is_not_exposed(exporter, row):
    node = exporter(scenario="whole")
    before = settled(node)
    node.set_events(SampleFault(node.scenario_time(), fields=("DCGM_FI_DEV_GPU_TEMP",), stale=True))
    row.wait_until_shown(node.scraper.get)
    node.set_events()
    row.wait_until_recovered(node.scraper.get, as_before(before), INTERVAL)


@fault(
    name="The driver does not support a field on these GPUs",
    shows=(
        'gpugauge_field_unsupported_devices{field="DCGM_FI_DEV_POWER_USAGE",reason="not_supported"} 8',
        'gpugauge_source_up{source="nvml"} 1',
    ),
    absent=("DCGM_FI_DEV_POWER_USAGE",),
)
def test_a_field_that_is_not_supported_costs_itself(exporter, row):
    node = exporter("nvml", scenario="whole")
    before = settled(node)
    node.set_events(CallFault("nvmlDeviceGetPowerUsage", status=NOT_SUPPORTED))
    row.wait_until_shown(node.scraper.get)
    node.set_events()
    until(lambda: "DCGM_FI_DEV_POWER_USAGE" in Exposed(node.scraper.get("/metrics")[1]).named("DCGM_"))
    row.wait_until_recovered(node.scraper.get, as_before(before), INTERVAL)


def with_first_name_damaged(node):
    """The running scenario, in which the name of the first GPU has a byte that is not UTF-8."""
    first, *others = node.document.devices
    damaged = msgspec.structs.replace(first, model=f"NVIDIA{NOT_UTF_8}")
    return msgspec.structs.replace(node.document, devices=(damaged, *others))


@fault(
    name="A name, serial number, UUID or PCI id of a GPU is not UTF-8",
    shows=(
        'gpugauge_source_problem{source="nvml",reason="text_unreadable"} 1',
        'gpugauge_source_up{source="nvml"} 1',
        "gpugauge_devices_observed 8",
        "DCGM_FI_DEV_GPU_TEMP > 0",
    ),
    recovery="none needed: that label is empty, a UUID is escaped",
)
def test_a_text_that_is_not_utf_8_costs_its_label(exporter, row):
    node = exporter("nvml", scenario="whole", ready=False)
    node.set_document(with_first_name_damaged(node))
    node.kubelet.start()
    build(node.libraries, only="libnvidia")
    shown = row.wait_until_shown(node.scraper.get)
    models = [labels.get("model", "") for name, labels, _ in shown.samples if name == "gpugauge_device_info"]
    assert models.count("") == 1


@fault(
    name="The host engine cannot list the MIG devices",
    shows=(
        'gpugauge_source_problem{source="dcgm",reason="hierarchy_unreadable"} 1',
        'gpugauge_source_up{source="dcgm"} 1',
        "gpugauge_device_up 1",
        "DCGM_FI_DEV_GPU_TEMP > 0",
    ),
    pause=LONGEST_PAUSE,
    collections=2,
)
def test_without_the_list_of_mig_devices_the_gpus_are_exposed(exporter, row):
    node = exporter(scenario="mig", ready=False)
    node.set_events(CallFault("dcgmGetGpuInstanceHierarchy", status=TIMED_OUT))
    node.kubelet.start()
    build(node.libraries, only="libdcgm.so.4")
    row.wait_until_shown(node.scraper.get)
    node.set_events()
    row.wait_until_recovered(
        node.scraper.get,
        lambda exposed: any(labels.get("GPU_I_ID") for name, labels, _ in exposed.samples if name.startswith("DCGM_")),
        INTERVAL,
    )


PROFILING_IN_USE = -37
"""DCGM_ST_PROFILING_LIBRARY_ERROR, which means that another process has the counters (reported)."""


@fault(
    name="Another process has the hardware counters of the GPUs, such as a profiler",
    shows=(
        'gpugauge_source_problem{source="dcgm",reason="profiling_in_use"} 1',
        'gpugauge_rejected_values_total{reason="blank"} > 0',
        'gpugauge_source_up{source="dcgm"} 1',
        "DCGM_FI_DEV_GPU_TEMP > 0",
    ),
    absent=("DCGM_FI_PROF_",),
    pause=PROFILING_PAUSES[1],
)
def test_while_profiling_is_in_use_only_profiling_is_missing(tmp_path, row):
    in_use = threading.Event()
    in_use.set()
    engine = EngineFixture(tmp_path, document(gpu_spec(0)))
    counters = parse("DCGM_FI_DEV_GPU_TEMP, gauge, x\nDCGM_FI_PROF_PIPE_TENSOR_ACTIVE, gauge, x", "counters.csv")
    load = rejecting(lambda fields, _: PROFILING_IN_USE if fields[0] > 1000 and in_use.is_set() else 0)
    source = engine.source(*(field.id for field in counters.fields), load=load)
    try:
        with collecting(flow_over(source, None, counters, lambda: engine.now).pipeline.collect) as get:
            row.wait_until_shown(get)
            in_use.clear()
            engine.at(row.pause)
            until(lambda: "profiling_in_use" not in get("/metrics")[1].partition("gpugauge_source_problem{")[2])
            engine.at(row.pause + 1.0)  # an interval after the watch there are values
            row.wait_until_recovered(get, lambda exposed: bool(exposed.named("DCGM_FI_PROF_")), IN_PROCESS_INTERVAL)
    finally:
        engine.close()


@fault(
    name="The engine lacks the profiling module that one of the GPUs needs",
    shows=(
        'gpugauge_source_problem{source="dcgm",reason="profiling_module_not_loaded"} 1',
        'gpugauge_field_unsupported_devices{field="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",reason="not_supported"} 1',
        'gpugauge_source_up{source="dcgm"} 1',
        "gpugauge_device_up 1",
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE > 0",
    ),
    recovery="with the package datacenter-gpu-manager-4-proprietary, once the engine is restarted",
)
def test_while_one_gpu_cannot_be_profiled_the_others_are(tmp_path, row):
    engine = EngineFixture(tmp_path, document(gpu_spec(0), gpu_spec(1, architecture="turing"), profiling_module=False))
    counters = parse("DCGM_FI_DEV_GPU_TEMP, gauge, x\nDCGM_FI_PROF_PIPE_TENSOR_ACTIVE, gauge, x", "counters.csv")
    source = engine.source(*(field.id for field in counters.fields))
    try:
        with collecting(flow_over(source, None, counters, lambda: engine.now).pipeline.collect) as get:
            until(lambda: Exposed(get("/metrics")[1]).named("DCGM_") == {"DCGM_FI_DEV_GPU_TEMP"})
            engine.at(1.0)
            shown = row.wait_until_shown(get)
            assert of_gpu(shown, uuid_of(1)) == {"DCGM_FI_DEV_GPU_TEMP"}
    finally:
        engine.close()
