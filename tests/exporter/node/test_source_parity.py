"""One scenario through three sources: libdcgm, NVML and the simulated source give the same exposition.

The sources `dcgm` and `nvml` read compiled fake libraries in reader processes of their own, as in the product.
"""

import json
import time
from functools import partial

import pytest

from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.fields.field import fields, fields_by_name
from exporter.node.devices.fields.field_ids import FRAMEBUFFER
from exporter.node.nvml.calls import gpm
from exporter.node.reader.supervisor import COMMAND, Reader, ReaderTimings
from exporter.node.simulation.kubelet import ScenarioKubelet
from exporter.node.simulation.scenario import load
from tests.exporter.node.read_fields import NOT_IN_NVML, READ
from tests.exporter.node.scenario_flow import (
    INTERVAL,
    SCENARIOS,
    STYLE,
    SimulatedFlow,
    config_of,
    default_counters,
    flow_over,
    series_of,
)
from tests.exporter.node.test_golden_expositions import BLANK_NUMBERS, BLANK_TEXT
from tests.fakes.build import build
from tests.fakes.engine_socket import EngineSocket
from tests.fakes.scenario_table import VARIABLE
from tests.fakes.table_bytes import known_fields, table
from tests.waiting import until

NOT_IN_SCENARIOS = {
    4: "number of devices, which the driver counts",
    843: "NVLink traffic by direction, which the fake library derives from the sum",
    897: "likewise",
    526: "0 on a GPU that is no vGPU of a virtual machine",
}
LABELS_UNKNOWN_TO_DCGM = {"numa_node": "libdcgm has the affinity to processors, not the number of the NUMA node"}

LABELS_REJECTED = {"sentinels": {"driver_version": 1}}
"""By scenario: labels whose field has no value there. The driver's version is a field of the node, for which the DCGM
source exposes no reason when it is missing."""
UNKNOWN_FIELD = frozenset({("reason", "unknown_field"), ("node", "node-1")})

OF_THE_PROCESS = {
    "gpugauge_source_read_duration_seconds": "a measurement",
    "gpugauge_last_collection_timestamp_seconds": "the wall clock",
    "gpugauge_build_info": "names the source",
    "gpugauge_xid_last_timestamp_seconds": "the wall clock",
    "gpugauge_source_errors_total": "counts while the reader process starts",
    "gpugauge_device_state_seconds_total": "counts seconds of the wall clock over collections",
    "gpugauge_rejected_values_total": "counts over collections; gpugauge_field_unsupported_devices is about one",
}
TIMINGS = ReaderTimings(deadline=30.0, opening=30.0)
"""On a busy machine the reader process must not look hung."""


def every_number():
    """A counters file of every field that is a number, and the driver's version as a label."""
    rows = [f"{f.names[0]}, gauge, Field {f.id}." for f in READ.values() if f.kind != "string"]
    return parse("\n".join([*rows, "DCGM_FI_DRIVER_VERSION, label, Version."]), "numbers.csv")


COUNTERS = {"default fields": default_counters, "every number": every_number}


def write_table(path, scenario, t, age=0.0):
    """Write the table of that moment of the scenario; its values are `age` seconds old."""
    draft = path.with_suffix(".new")
    draft.write_bytes(table(scenario.at(t), time.time() - age))
    draft.replace(path)


def first_answer(flow, source, seconds=60.0):
    """The exposition of the first collection with an answer, which may be that the host engine cannot be reached."""
    end = time.monotonic() + seconds
    while True:
        exposition = flow.exposition()
        text = exposition.text.decode()
        if f'source="{source}"}} 1.0' in text or 'reason="connection_lost"' in text:
            return exposition
        assert time.monotonic() < end, exposition.text.decode()[-3000:]


def with_xids(flow, source, count):
    """An exposition, if so many XIDs have been received: NVML's come in a thread of their own."""
    exposition = first_answer(flow, source)
    series = series_of(exposition.text)
    return sum(v for (name, _), v in series.items() if name == "gpugauge_xid_errors_total") == count and exposition


def expositions_through(source, name, counters, folder, *moments, soname="libdcgm.so.4", style=STYLE, **more):
    """The expositions of that source at the moments, all through one reader process with `more` configured."""
    scenario, path, at = load(SCENARIOS.get(name, name)), folder / f"{source}-table", [0.0]
    build(folder / source, only=soname if source == "dcgm" else "libnvidia")
    engine = EngineSocket(folder / "engine.sock")
    config = config_of(source, counters, remote=engine.address if source == "dcgm" else None, **more)
    environment = ("env", f"{VARIABLE}={path}", f"LD_LIBRARY_PATH={folder / source}")
    flow = flow_over(
        Reader(config, TIMINGS, (*environment, *COMMAND)),
        ScenarioKubelet(scenario, 0.0, lambda: at[0]),
        counters,
        lambda: 0.0,  # XIDs have real times: none of them is from before the start
        style=style,
    )
    expositions = []
    try:
        for at[0] in moments:
            engine.follow(listens=scenario.at(at[0]).connected)
            # Activity needs two collections: DCGM has it one interval after the watch, NVML as a difference.
            write_table(path, scenario, at[0], age=INTERVAL)
            first_answer(flow, source)
            time.sleep(gpm.MIN_SAMPLE_SECONDS + 0.02 if source == "nvml" else 0)
            write_table(path, scenario, at[0])
            received = sum(xid.at > moments[0] for xid in scenario.at(at[0]).xids) if source == "nvml" else 0
            exposition = until(partial(with_xids, flow, source, received)) if received else first_answer(flow, source)
            expositions.append(exposition)
    finally:
        flow.pipeline.close()
        engine.follow(listens=False)
    return expositions


def comparable(exposition, without=()):
    """Every series about devices and pods, from any source."""
    found = {}
    for (metric, pairs), value in series_of(exposition.text).items():
        if metric not in OF_THE_PROCESS:
            skipped = {"source"} if metric.startswith("gpugauge_source_") else set(without)
            # A table that is written again is of the same moment but later: the XIDs in it are others for DCGM.
            counted = min(value, 1) if metric == "gpugauge_xid_errors_total" else value
            found[metric, frozenset(pair for pair in pairs if pair[0] not in skipped)] = counted
    return found


def number_of(metric, labels):
    """The id of the field whose values a series has, or which it is about; -1 for others."""
    field = fields_by_name().get(labels.get("field", metric))
    return -1 if field is None else field.id


def unknown_to_the_engine(name):
    """Fields that came with a later version of DCGM than the scenario's."""
    return READ.keys() - {field.id for field in known_fields(load(SCENARIOS[name]).document.versions.dcgm)}


def without_fields(series, unknown):
    return {key: value for key, value in series.items() if number_of(key[0], dict(key[1])) not in unknown}


def as_nvml_can(series, name):
    """Without engine activity where NVML has none: below Hopper, and inside compute instances."""
    hopper = {gpu.uuid for gpu in load(SCENARIOS[name]).document.devices if gpu.architecture == "hopper"}
    kept = {}
    for (metric, pairs), value in without_fields(series, {**NOT_IN_NVML, **NOT_IN_SCENARIOS}).items():
        labels, number = dict(pairs), number_of(metric, dict(pairs))
        activity = (
            READ[number].watch == "profiling" if number >= 0 else metric.endswith(("_active_ratio", "_busy_ratio"))
        )
        possible = labels.get("UUID") in hopper and "GPU_CI_ID" not in labels
        if not activity or possible:
            kept[metric, pairs] = value
    return kept


def assert_same(ours, theirs):
    """Assert the same series and values, up to rounding: NVML has milliwatts, percent and counters of KiB."""
    assert sorted(map(str, ours.keys() ^ theirs.keys())) == []
    far = {key: (ours[key], theirs[key]) for key in ours if ours[key] != pytest.approx(theirs[key], rel=1e-9, abs=1e-3)}
    assert {key: pair for key, pair in far.items() if abs(pair[0] - pair[1]) > (1 if pair[0] > 1000 else 0)} == {}


@pytest.mark.parametrize("which", COUNTERS)
@pytest.mark.parametrize(
    ("name", "moments", "soname"),
    [
        ("whole", (61,), "libdcgm.so.4"),
        ("mig", (61,), "libdcgm.so.3"),
        ("time_sliced", (61,), "libdcgm.so.4"),
        ("mig_56", (5,), "libdcgm.so.4"),
        ("mig_reconfigured", (5, 25, 60), "libdcgm.so.4"),
        ("dcgm3", (5,), "libdcgm.so.3"),
        ("restart", (5, 20, 40), "libdcgm.so.4"),
        ("restart", (5, 12), "libdcgm.so.4"),
        ("sentinels", (5, 15, 25, 35, 45), "libdcgm.so.4"),
        ("stale", (19, 60), "libdcgm.so.4"),
        ("xid", (0, 20), "libdcgm.so.3"),
        ("unified", (5,), "libdcgm.so.4"),
    ],
)
def test_dcgm_and_the_simulated_source_give_the_same_exposition(tmp_path, name, moments, soname, which):
    counters = COUNTERS[which]()
    simulated = SimulatedFlow(name, counters)
    unknown = unknown_to_the_engine(name) | set(LABELS_REJECTED.get(name, {}).values())
    labels = {*LABELS_UNKNOWN_TO_DCGM, *LABELS_REJECTED.get(name, ())}
    expositions = expositions_through("dcgm", name, counters, tmp_path, *moments, soname=soname)
    for moment, exposition in zip(moments, expositions, strict=True):
        real = without_fields(comparable(exposition, labels), unknown)
        if which == "every number":
            real = {key: value for key, value in real.items() if not key[1] >= UNKNOWN_FIELD}
        wanted = without_fields(comparable(simulated.exposition(moment), labels), unknown)
        assert sorted(map(str, real.items() ^ wanted.items())) == []


@pytest.mark.parametrize("which", COUNTERS)
@pytest.mark.parametrize(
    ("name", "moments"),
    [
        ("whole", (61,)),
        ("mig", (61,)),
        ("time_sliced", (61,)),
        ("mig_56", (5,)),
        ("mig_reconfigured", (5, 25, 60)),
        ("xid", (0, 20)),
        ("restart", (20,)),
    ],
)
def test_nvml_and_the_simulated_source_give_the_same_exposition_of_what_nvml_can_read(tmp_path, name, moments, which):
    counters = COUNTERS[which]()
    simulated = SimulatedFlow(name, counters)
    for moment, exposition in zip(
        moments, expositions_through("nvml", name, counters, tmp_path, *moments), strict=True
    ):
        assert_same(
            as_nvml_can(comparable(exposition), name), as_nvml_can(comparable(simulated.exposition(moment)), name)
        )


@pytest.mark.parametrize(
    ("name", "moments"), [("whole", (61,)), ("mig", (61,)), ("lost", (5, 20)), ("mig_reconfigured", (5, 60))]
)
def test_dcgm_and_nvml_give_the_same_exposition_of_what_both_can_read(tmp_path, name, moments):
    expositions = {
        source: expositions_through(source, name, default_counters(), tmp_path, *moments)[-1]
        for source in ("dcgm", "nvml")
    }
    dcgm, nvml = (
        as_nvml_can(comparable(exposition, LABELS_UNKNOWN_TO_DCGM), name) for exposition in expositions.values()
    )
    assert_same(dcgm, nvml)
    assert len([key for key in dcgm if key[0].startswith("DCGM_")]) >= (0 if name == "lost" else 40)


@pytest.mark.parametrize("source", ["dcgm", "nvml"])
@pytest.mark.parametrize("name", ["whole", "mig"])
def test_every_source_gives_the_same_peer_to_peer_statuses(tmp_path, name, source):
    counters = parse("DCGM_FI_DEV_GPU_TEMP, gauge, T.\nDCGM_EXP_P2P_STATUS, gauge, P.", "p2p.csv")
    (exposition,) = expositions_through(source, name, counters, tmp_path, 5)
    found, expected = (
        {key: value for key, value in comparable(each).items() if key[0] == "DCGM_EXP_P2P_STATUS"}
        for each in (exposition, SimulatedFlow(name, counters).exposition(5))
    )
    assert found == expected != {}


@pytest.mark.parametrize("source", ["dcgm", "nvml"])
def test_the_architecture_of_a_rubin_gpu_is_known_from_both_libraries(tmp_path, source):
    gpu = {"uuid": "GPU-r", "index": 0, "pci_bus_id": "00000000:07:00.0", "model": "NVIDIA R100", "memory_mib": 1000}
    scenario = tmp_path / "rubin.json"
    scenario.write_text(json.dumps({"about": "one Rubin GPU", "devices": [gpu | {"architecture": "rubin"}]}))
    exposition = expositions_through(source, str(scenario), default_counters(), tmp_path, 0)[0]
    (info,) = [dict(pairs) for metric, pairs in series_of(exposition.text) if metric == "gpugauge_device_info"]
    assert info["architecture"] == "rubin"


def test_nvml_reads_every_field_of_the_default_file(tmp_path):
    exposition = expositions_through("nvml", "whole", default_counters(), tmp_path, 61)[0]
    exposed = {metric for metric, _ in series_of(exposition.text)}
    assert [row.name for row in default_counters().sample_rows if row.name not in exposed] == []


@pytest.mark.parametrize("source", ["dcgm", "nvml"])
def test_no_blank_value_of_a_library_is_exposed(tmp_path, source):
    expositions = expositions_through(source, "sentinels", every_number(), tmp_path, 5, 15, 25, 35, 45)
    for exposition in expositions:
        assert not BLANK_TEXT.search(exposition.text.decode())
        values = {value for (metric, _), value in series_of(exposition.text).items() if metric.startswith("DCGM_")}
        assert values.isdisjoint(BLANK_NUMBERS)
    assert len(series_of(expositions[-1].text)) > len(series_of(expositions[0].text))


@pytest.mark.parametrize(
    ("source", "versions"), [("dcgm", ("4.2.3", "12.570.133.20")), ("nvml", ("", "12.570.133.20"))]
)
def test_the_build_info_names_the_source_and_the_versions_of_its_libraries(tmp_path, source, versions):
    exposition = expositions_through(source, "time_sliced", default_counters(), tmp_path, 5)[0]
    labels = next(dict(pairs) for metric, pairs in series_of(exposition.text) if metric == "gpugauge_build_info")
    assert (labels["source"], labels["dcgm_version"], labels["nvml_version"]) == (source, *versions)


@pytest.mark.parametrize("source", ["simulated", "dcgm", "nvml"])
def test_report_18_a_gpu_without_memory_of_its_own_has_no_framebuffer_series_and_everything_else(tmp_path, source):
    rows = [f"{each.names[0]}, gauge, x" for each in fields().values() if each.id in {*FRAMEBUFFER, 150, 155, 203}]
    counters = parse("\n".join(rows), "memory.csv")
    if source == "simulated":
        exposition = SimulatedFlow("unified", counters, 5).exposition()
    else:
        (exposition,) = expositions_through(source, "unified", counters, tmp_path, 5)
    found = {key[0]: value for key, value in series_of(exposition.text).items()}
    values = {name: value for name, value in found.items() if name.startswith("DCGM_")}
    assert values == {"DCGM_FI_DEV_GPU_TEMP": 35, "DCGM_FI_DEV_POWER_USAGE": 11.17, "DCGM_FI_DEV_GPU_UTIL": 0}
    assert found["gpugauge_device_up"] == 1
    assert "memory" not in " ".join(found)
