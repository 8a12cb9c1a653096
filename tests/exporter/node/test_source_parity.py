"""One scenario, three ways to read it: libdcgm, NVML and the simulated source give the same page.

The real sources read the compiled stand-ins from reader children of their own, as in the product.
"""

import time

import pytest

from exporter.node.devices.counters_file import parse
from exporter.node.devices.field import fields, fields_by_name
from exporter.node.nvml import gpm
from exporter.node.reader.supervisor import COMMAND, Patience, Reader
from exporter.node.simulation.kubelet import SimulatedHolders
from exporter.node.simulation.scenario import load
from tests.exporter.node.scenario_flow import SCENARIOS, Simulation, config_of, default_counters, played, series_of
from tests.exporter.node.test_golden_expositions import RATHER_AS_FLOAT, SENTINELS
from tests.fakes.build import build
from tests.fakes.scenario_table import VARIABLE, known_fields, table

NOT_FROM_NVML = {
    **dict.fromkeys((170, 171, 172, 173, 175), "state of the NVLink fabric, which the NVML source does not read"),
    **dict.fromkeys((1200, 1201, 1202, 1203, 1206, 1212, 1216, 1218, 1220), "the engine's sums over single links"),
    **dict.fromkeys((450, 497, 498, 499), "the engine's sums over single links"),
    **dict.fromkeys((200, 201), "NVML measures for 20 ms in each call: too long for a pass"),
    **dict.fromkeys((1080, 1084, 1091, 1092), "counters of the engine's profiling module"),
    **dict.fromkeys((285, 1507), "no field value of NVML is the same quantity"),
    6: "binding and unbinding are events of the engine",
    526: "the licence is asked of the vGPU guest by the engine",
}
"""Fields that the NVML source cannot know, and why."""
NOT_IN_SCENARIOS = {
    4: "number of devices: the driver counts",
    843: "NVLink traffic by direction: the stand-in's driver derives it from the sum",
    897: "likewise",
}
LABELS_UNKNOWN_TO_DCGM = {"numa_node": "libdcgm tells the affinity to processors, not the node's number"}

LABELS_SPOILT = {"sentinels": {"driver_version": 1}}
"""The engine tells the driver's version as a field of the node, which is spoilt there; of such a field it keeps that
it is missing, not why."""
SAYS_UNKNOWN_FIELD = frozenset({("reason", "unknown_field"), ("hostname", "node-1")})

OF_THE_PROCESS = {
    "gpugauge_source_read_duration_seconds": "a measurement",
    "gpugauge_snapshot_timestamp_seconds": "the wall clock",
    "gpugauge_build_info": "names the source",
    "gpugauge_source_errors_total": "counts while a child starts",
    "gpugauge_rejected_values_total": "counts passes; gpugauge_field_unsupported_devices tells of one",
}
PATIENT = Patience(deadline=30.0, opening=30.0)
"""A busy machine must not look like a hang."""


def every_number():
    """A counters file of every field that is a number, and the driver's version as a label."""
    rows = [f"{f.names[0]}, gauge, Field {f.id}." for f in fields().values() if f.kind != "string"]
    return parse("\n".join([*rows, "DCGM_FI_DRIVER_VERSION, label, Version."]), "numbers.csv")


COUNTERS = {"default fields": default_counters, "every number": every_number}


def show(path, scenario, t):
    """The table is at that moment of the scenario, and its values are fresh."""
    draft = path.with_suffix(".new")
    draft.write_bytes(table(scenario.at(t), time.time()))
    draft.replace(path)


def answered(flow, source, seconds=30.0):
    """The page of the first pass in which the reader child answers, if only that the engine is away."""
    end = time.monotonic() + seconds
    while True:
        page = flow.page()
        text = page.text.decode()
        if f'source="{source}"}} 1.0' in text or 'reason="connection_lost"' in text:
            return page
        assert time.monotonic() < end, page.text.decode()[-3000:]


def pages_through(source, name, counters, folder, *moments, soname="libdcgm.so.4"):
    """The page of that source at each of the moments, all through one reader child."""
    scenario, path, at = load(SCENARIOS[name]), folder / f"{source}-table", [0.0]
    build(folder / source, only=soname if source == "dcgm" else "libnvidia")
    config = config_of(source, counters, remote="localhost:5555" if source == "dcgm" else None)
    environment = ("env", f"{VARIABLE}={path}", f"LD_LIBRARY_PATH={folder / source}")
    flow = played(
        Reader(config, PATIENT, (*environment, *COMMAND)), SimulatedHolders(scenario, 0.0, lambda: at[0]), counters
    )
    pages = []
    try:
        for at[0] in moments:
            show(path, scenario, at[0])
            page = answered(flow, source)
            if source == "nvml":  # rates and activity are differences between two passes
                time.sleep(gpm.SHORTEST + 0.02)
                show(path, scenario, at[0])
                page = answered(flow, source)
            pages.append(page)
    finally:
        flow.pipeline.close()
    return pages


def comparable(page, without=()):
    """Every series that speaks of devices and pods, whichever source it came from."""
    found = {}
    for (metric, pairs), value in series_of(page.text).items():
        if metric not in OF_THE_PROCESS:
            skipped = {"source"} if metric.startswith("gpugauge_source_") else set(without)
            found[metric, frozenset(pair for pair in pairs if pair[0] not in skipped)] = value
    return found


def number_of(metric, labels):
    """The field that a series shows or speaks of; -1 for others."""
    field = fields_by_name().get(labels.get("field", metric))
    return -1 if field is None else field.id


def unknown_to_the_engine(name):
    """Fields that came with a later version of DCGM than the scenario's."""
    return fields().keys() - {field.id for field in known_fields(load(SCENARIOS[name]).document.versions.dcgm)}


def without_fields(shown, unknown):
    return {key: value for key, value in shown.items() if number_of(key[0], dict(key[1])) not in unknown}


def as_nvml_can(shown, name):
    """Without engine activity where NVML has none: below Hopper, and inside compute instances."""
    hopper = {board.uuid for board in load(SCENARIOS[name]).document.devices if board.architecture == "hopper"}
    kept = {}
    for (metric, pairs), value in without_fields(shown, {**NOT_FROM_NVML, **NOT_IN_SCENARIOS}).items():
        labels, number = dict(pairs), number_of(metric, dict(pairs))
        activity = number >= 0 and fields()[number].watch == "profiling"
        possible = labels.get("UUID") in hopper and "GPU_CI_ID" not in labels
        if not activity or possible:
            kept[metric, pairs] = value
    return kept


def same(ours, theirs):
    """The same series, and the same values: NVML's pass through milliwatts, percent and counters of KiB."""
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
    ],
)
def test_dcgm_and_the_simulated_source_give_the_same_page(tmp_path, name, moments, soname, which):
    counters = COUNTERS[which]()
    simulation = Simulation(name, counters)
    unknown = unknown_to_the_engine(name) | set(LABELS_SPOILT.get(name, {}).values())
    labels = {*LABELS_UNKNOWN_TO_DCGM, *LABELS_SPOILT.get(name, ())}
    pages = pages_through("dcgm", name, counters, tmp_path, *moments, soname=soname)
    for moment, page in zip(moments, pages, strict=True):
        real = without_fields(comparable(page, labels), unknown)
        if which == "every number":
            real = {key: value for key, value in real.items() if not key[1] >= SAYS_UNKNOWN_FIELD}
        wanted = without_fields(comparable(simulation.page(moment), labels), unknown)
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
def test_nvml_and_the_simulated_source_give_the_same_page_as_far_as_nvml_knows(tmp_path, name, moments, which):
    counters = COUNTERS[which]()
    simulation = Simulation(name, counters)
    for moment, page in zip(moments, pages_through("nvml", name, counters, tmp_path, *moments), strict=True):
        same(as_nvml_can(comparable(page), name), as_nvml_can(comparable(simulation.page(moment)), name))


@pytest.mark.parametrize(
    ("name", "moments"), [("whole", (61,)), ("mig", (61,)), ("lost", (5, 20)), ("mig_reconfigured", (5, 60))]
)
def test_dcgm_and_nvml_give_the_same_page_as_far_as_both_know(tmp_path, name, moments):
    pages = {
        source: pages_through(source, name, default_counters(), tmp_path, *moments)[-1] for source in ("dcgm", "nvml")
    }
    dcgm, nvml = (as_nvml_can(comparable(page, LABELS_UNKNOWN_TO_DCGM), name) for page in pages.values())
    same(dcgm, nvml)
    assert len([key for key in dcgm if key[0].startswith("DCGM_")]) >= (0 if name == "lost" else 40)


def test_of_the_default_file_nvml_lacks_only_what_is_listed(tmp_path):
    page = pages_through("nvml", "whole", default_counters(), tmp_path, 61)[0]
    shown = {metric for metric, _ in series_of(page.text)}
    lacking = {row.field.id for row in default_counters().rows if row.type != "label" and row.name not in shown} - {
        230
    }  # no XID has come
    assert lacking == {526}
    assert lacking <= NOT_FROM_NVML.keys()


@pytest.mark.parametrize("source", ["dcgm", "nvml"])
def test_no_sentinel_of_a_library_reaches_a_page(tmp_path, source):
    pages = pages_through(source, "sentinels", every_number(), tmp_path, 5, 15, 25, 35, 45)
    for page in pages:
        assert not SENTINELS.search(page.text.decode())
        values = {value for (metric, _), value in series_of(page.text).items() if metric.startswith("DCGM_")}
        assert values.isdisjoint(RATHER_AS_FLOAT)
    assert len(series_of(pages[-1].text)) > len(series_of(pages[0].text))


@pytest.mark.parametrize(
    ("source", "versions"), [("dcgm", ("4.2.3", "12.570.133.20")), ("nvml", ("", "12.570.133.20"))]
)
def test_the_page_names_its_source_and_the_versions_of_its_libraries(tmp_path, source, versions):
    page = pages_through(source, "time_sliced", default_counters(), tmp_path, 5)[0]
    labels = next(dict(pairs) for metric, pairs in series_of(page.text) if metric == "gpugauge_build_info")
    assert (labels["source"], labels["dcgm_version"], labels["nvml_version"]) == (source, *versions)
