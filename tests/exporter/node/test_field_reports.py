"""What users of GPU exporters reported, as tests: values and lifecycle. A test is named after the number of its report.

Each runs the whole node exporter but its server over the compiled fake libdcgm.
"""

import re
from pathlib import Path

import pytest

from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.fields.field import fields_by_name
from tests.exporter.node.dcgm.fixture import EngineFixture, document, gpu_spec, instance_spec, uuid_of
from tests.exporter.node.scenario_flow import default_counters, flow_over, series_of

COUNTERS = """
DCGM_FI_DEV_GPU_TEMP, gauge, x
DCGM_FI_DEV_POWER_USAGE, gauge, x
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, x
DCGM_FI_DEV_SM_CLOCK, gauge, x
DCGM_FI_DEV_GPU_UTIL, gauge, x
DCGM_FI_DEV_FB_USED, gauge, x
DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, x
DCGM_FI_PROF_PCIE_TX_BYTES, gauge, x
DCGM_FI_DEV_VBIOS_VERSION, label, x
"""
GENERATED = Path(__file__).parents[3] / "deploy" / "generated"
RATE = re.compile(r"\b(?:rate|irate|increase)\(\s*([A-Za-z_:][\w:]*)")
SENTINELS = ("blank", "not_found", "not_supported", "no_permission")


class Node:
    """A node with one engine; `exposed` makes one collection."""

    def __init__(self, folder, scenario, counters=COUNTERS):
        rows = parse(counters, "counters.csv")
        self.engine = EngineFixture(folder, scenario)
        self.rows = rows
        self.flow = self.started()
        self.flow.exposition()  # a profiling field has its first value one interval after its watch began

    def started(self):
        """An exporter that starts now, over the running engine."""
        source = self.engine.source(*(field.id for field in self.rows.wanted))
        return flow_over(source, None, self.rows, lambda: self.engine.now)

    def exposed(self, t):
        """Every series of the collection at this time: (name, labels, value)."""
        self.engine.at(t)
        series = series_of(self.flow.exposition().text)
        return [(name, dict(labels), value) for (name, labels), value in series.items()]

    def values(self, t, metric):
        """The values of one metric by GPU number and GPU instance."""
        found = [(labels, value) for name, labels, value in self.exposed(t) if name == metric]
        return {(labels["gpu"], labels.get("GPU_I_ID", "")): value for labels, value in found}

    def dcgm(self, t, gpu=None):
        """The names of the DCGM-named series, of one GPU or of all."""
        return {n for n, labels, _ in self.exposed(t) if n.startswith("DCGM_") and gpu in (None, labels["gpu"])}


@pytest.fixture
def node(tmp_path):
    made = []

    def make(*gpus, events=(), counters=COUNTERS):
        made.append(Node(tmp_path, document(*gpus, events=events), counters))
        return made[-1]

    yield make
    for each in made:
        each.engine.close()


def whole(number=0, **fields):
    """A GPU with a value of every field of COUNTERS."""
    values = {"150": 40, "155": 200.0, "156": 10**9, "100": 1500, "203": 50, "252": 6012, "1001": 0.42, "1009": 1000}
    return gpu_spec(number, fields=values | fields, vbios="96.00.74")


@pytest.mark.parametrize("sentinel", SENTINELS)
def test_report_10_no_constant_for_missing_data_is_exposed_as_a_number(node, sentinel):
    fault = {"event": "samples", "at": 5.0, "sentinel": sentinel}
    made = node(whole(), events=[fault])
    assert len(made.dcgm(1.0)) == 8
    exposed = made.exposed(6.0)
    assert [series for series in exposed if series[0].startswith("DCGM_")] == []
    rejected = {
        (labels["field"], labels["reason"]) for n, labels, _ in exposed if n == "gpugauge_rejected_values_total"
    }
    assert rejected >= {(name, sentinel) for name in ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE")}


def test_report_10_a_reading_that_looks_like_a_constant_of_another_type_is_kept(node):
    made = node(whole(**{"156": 126272101025, "1009": 2147483633}))
    assert made.values(1.0, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION") == {("0", ""): 126272101025}
    assert made.values(2.0, "DCGM_FI_PROF_PCIE_TX_BYTES") == {("0", ""): 2147483633}


def mig(number=0, *instances, **fields):
    return whole(number, **fields) | {"mig": True, "instances": list(instances)}


def slice_of(gi, **fields):
    return instance_spec(gi) | {"fields": {"252": 6012, "1001": 0.1} | fields}


def test_report_12_a_mig_device_has_its_engine_activity_and_no_utilization_of_zero(node):
    unsupported = {"event": "samples", "devices": [uuid_of(0)], "fields": ["203"], "sentinel": "not_supported"}
    made = node(mig(0, slice_of(7, **{"203": 0, "1001": 0.42})), events=[unsupported])
    assert made.values(1.0, "DCGM_FI_PROF_GR_ENGINE_ACTIVE") == {("0", "7"): 0.42}
    assert made.values(2.0, "DCGM_FI_DEV_GPU_UTIL") == {}


def test_report_13_quantities_of_the_gpu_appear_once_and_memory_is_that_of_the_mig_devices(node):
    made = node(mig(0, *(slice_of(gi) for gi in range(1, 8)), **{"252": 50000}))
    for metric in (
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "DCGM_FI_DEV_SM_CLOCK",
        "DCGM_FI_DEV_GPU_TEMP",
    ):
        assert len(made.values(1.0, metric)) == 1, metric
    assert sum(made.values(1.0, "DCGM_FI_DEV_POWER_USAGE").values()) == 200
    assert sum(made.values(1.0, "DCGM_FI_DEV_FB_USED").values()) == 7 * 6012


@pytest.mark.parametrize("status", [-6, -33, -36], ids=["not supported", "no module", "profiling not supported"])
def test_report_14_a_gpu_without_profiling_costs_no_other_gpu_and_no_other_field(node, status):
    rejected = {"event": "call", "function": "dcgmWatchFields", "device": uuid_of(0), "field": "1001", "status": status}
    made = node(whole(0), whole(1), events=[rejected])
    exposed = made.exposed(2.0)
    profiling = {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PCIE_TX_BYTES"}
    names = {gpu: {n for n, labels, _ in exposed if n.startswith("DCGM_") and labels["gpu"] == gpu} for gpu in "01"}
    assert len(names["1"]) == 8
    assert names["0"] >= names["1"] - profiling
    assert "DCGM_FI_PROF_GR_ENGINE_ACTIVE" not in names["0"]
    unsupported = {labels["field"]: v for n, labels, v in exposed if n == "gpugauge_field_unsupported_devices"}
    assert unsupported["DCGM_FI_PROF_GR_ENGINE_ACTIVE"] == 1
    assert {labels["gpu"]: v for n, labels, v in exposed if n == "gpugauge_device_up"} == {"0": 1, "1": 1}


def xid_31(exposed, metric):
    return [value for name, labels, value in exposed if name == metric and labels["xid"] == "31"]


def test_report_16_an_xid_is_counted_once_however_often_it_is_read_and_a_repeated_one_again(node):
    xids = [{"event": "xid", "device": uuid_of(0), "at": at, "xid": 31} for at in (5.0, 70.0)]
    made = node(whole(), events=xids)
    assert sum(xid_31(made.exposed(4.0), "gpugauge_xid_errors_total")) == 0
    for t in range(6, 66):
        assert xid_31(made.exposed(float(t)), "gpugauge_xid_errors_total") == [1]
    exposed = made.exposed(71.0)
    assert xid_31(exposed, "gpugauge_xid_errors_total") == [2]
    assert xid_31(exposed, "gpugauge_xid_last_timestamp_seconds") == [pytest.approx(made.engine.now - 1.0)]
    made.flow = made.started()
    assert sum(xid_31(made.exposed(72.0), "gpugauge_xid_errors_total")) == 0


def test_report_15_a_field_that_is_a_rate_is_a_gauge_in_the_default_counters_file():
    rows = {row.name: row.type for row in default_counters().rows}
    rates = {name: kind for name, kind in rows.items() if name.endswith(("_TX_BYTES", "_RX_BYTES"))}
    assert set(rates.values()) == {"gauge"}
    assert "DCGM_FI_PROF_PCIE_TX_BYTES" in rates


def test_report_15_no_rule_and_no_panel_takes_the_rate_of_a_gauge():
    counters = {row.name for row in default_counters().rows if row.type == "counter"}
    fields = fields_by_name()
    suffixes = ("_total", "_bucket", "_count", "_sum")
    files = [path for path in GENERATED.rglob("*") if path.suffix in (".json", ".yaml")]
    texts = {path.name: path.read_text() for path in files}
    taken = {(name, metric) for name, text in texts.items() for metric in RATE.findall(text)}
    assert taken
    for name, metric in sorted(taken):
        same = set(fields[metric].names) if metric in fields else {metric}
        assert metric.lower().endswith(suffixes) or same & counters, f"{name}: {metric}"


@pytest.mark.slow
@pytest.mark.parametrize("number", [-21, -1], ids=["connection invalid", "any error"])
def test_report_19_while_the_engine_fails_nothing_old_is_exposed_and_values_return_within_two_intervals(node, number):
    fault = {"event": "call", "function": "*", "at": 60.0, "for": 120.0, "status": number}
    restart = {"event": "restart", "at": 180.0}
    made = node(whole(), events=[fault, restart])
    assert len(made.dcgm(59.0)) == 8
    for t in range(61, 180):
        exposed = made.exposed(float(t))
        assert [n for n, _, _ in exposed if n.startswith("DCGM_")] == [], t
        up = {labels["source"]: value for n, labels, value in exposed if n == "gpugauge_source_up"}
        assert up == {"dcgm": 0}, t
    # The pause between two attempts has grown to its limit by now.
    recovered = next(t for t in range(180, 215) if made.dcgm(float(t)))
    assert recovered <= 212
    assert len(made.dcgm(float(recovered) + 1)) == 8


def test_report_21_after_a_repartitioning_old_series_end_and_a_reused_number_is_another_series(node):
    before = [slice_of(gi) | {"profile": "3g.20gb"} for gi in (1, 2)]
    after = [instance_spec(gi, profile="1g.5gb", tag="b") | {"fields": {"252": 1, "1001": 0.2}} for gi in range(1, 8)]
    gone = {"event": "call", "function": "dcgmEntitiesGetLatestValues", "at": 10.0, "for": 5.0, "status": -14}
    change = {"event": "mig", "device": uuid_of(0), "at": 10.0, "instances": after}
    made = node(mig(0, *before), events=[gone, change])

    def instances(t):
        exposed = made.exposed(t)
        return {
            (labels["GPU_I_ID"], labels["GPU_I_PROFILE"])
            for name, labels, _ in exposed
            if name.startswith("DCGM_") and "GPU_I_ID" in labels
        }

    assert instances(5.0) == {("1", "3g.20gb"), ("2", "3g.20gb")}
    for t in (11.0, 12.0, 13.0, 14.0):
        assert instances(t) == set()
    settled = next(t for t in range(15, 20) if instances(float(t)))
    assert instances(float(settled) + 1) == {(str(gi), "1g.5gb") for gi in range(1, 8)}


def test_report_23_a_gpu_that_falls_off_the_bus_is_down_and_the_other_seven_go_on(node):
    lost = {"event": "lost", "device": uuid_of(5), "at": 60.0}
    made = node(*(whole(number) for number in range(8)), events=[lost])
    assert len(made.dcgm(59.0, gpu="5")) == 8
    exposed = made.exposed(61.0)
    up = {labels["gpu"]: value for name, labels, value in exposed if name == "gpugauge_device_up"}
    assert up == {str(number): float(number != 5) for number in range(8)}
    assert made.dcgm(62.0, gpu="5") == set()
    for number in (0, 1, 2, 3, 4, 6, 7):
        assert len(made.dcgm(62.0, gpu=str(number))) == 8


def test_report_71_a_gpu_that_dcgm_does_not_support_is_listed_and_costs_the_others_nothing(node):
    old = {"event": "lost", "device": uuid_of(1), "at": 0.0, "state": "unsupported"}
    made = node(whole(0), whole(1), events=[old])
    exposed = made.exposed(1.0)
    assert {labels["gpu"]: v for n, labels, v in exposed if n == "gpugauge_device_up"} == {"0": 1, "1": 0}
    assert {labels["source"]: v for n, labels, v in exposed if n == "gpugauge_source_up"} == {"dcgm": 1}
    assert (len(made.dcgm(2.0, gpu="0")), made.dcgm(2.0, gpu="1")) == (8, set())
