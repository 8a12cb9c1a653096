"""Metrics that are computed over collections: what they count, and that they end with the GPU and with nothing else."""

from dataclasses import dataclass, field

import msgspec
import pytest

from exporter.node.devices.computed.computed_families import CountWindows
from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.entities.device import Device
from exporter.node.devices.readings.readings import Batch, P2pStatus, Readings, XidReport
from exporter.node.devices.readings.xids import CRITICAL
from exporter.source import SourceError
from tests.exporter.node.scenario_flow import EPOCH, SimulatedFlow, flow_over, series_of

TEMP = "DCGM_FI_DEV_GPU_TEMP, gauge, T."
XID_ROWS = "DCGM_EXP_XID_ERRORS_COUNT, gauge, C.\nDCGM_EXP_XID_ERRORS_TOTAL, counter, T."
P2P_ROW = "DCGM_EXP_P2P_STATUS, counter, P."
P2P = "DCGM_EXP_P2P_STATUS"
XIDS, LAST = "gpugauge_xid_errors_total", "gpugauge_xid_last_timestamp_seconds"
COUNT, TOTAL = "DCGM_EXP_XID_ERRORS_COUNT", "DCGM_EXP_XID_ERRORS_TOTAL"
CLOCK_ROWS = "DCGM_EXP_CLOCK_EVENTS_COUNT, counter, C.\nDCGM_EXP_CLOCK_EVENTS_TOTAL, counter, T."
GPUS = (
    Device("GPU-a", 0, "00000000:07:00.0", 0, "NVIDIA H200"),
    Device("GPU-b", 1, "00000000:0A:00.0", 1, "NVIDIA H200"),
)


@dataclass
class SettableSource:
    """A source of devices that gives what a test has set: one value of a field per GPU, None where it has none."""

    name: str = "simulated"
    t: float = 0.0
    gpus: tuple[Device, ...] = GPUS
    values: dict[int, tuple[int | None, ...]] = field(default_factory=dict)
    down: tuple[str, ...] = ()
    fails: bool = False
    more: dict[str, object] = field(default_factory=dict)

    def read(self):
        if self.fails:
            raise SourceError("connection_lost", "a test has set this")
        batches = tuple(
            Batch(tuple(range(len(column))), (number,), (column,)) for number, column in self.values.items()
        )
        readings = Readings(self.name, EPOCH + self.t, self.gpus, batches, down=self.down)
        return msgspec.structs.replace(readings, **self.more)

    def close(self): ...


class ComputedFlow:
    """A flow over such a source, and the series of its metrics."""

    def __init__(self, rows="", windows=CountWindows()):  # noqa: B008 - it cannot change
        self.source = SettableSource()
        counters = parse(f"{TEMP}\n{rows}", "f")
        assert counters.problems == ()
        self.flow = flow_over(self.source, None, counters, lambda: EPOCH, windows=windows)

    def use(self, rows):
        self.flow.pipeline.use(parse(f"{TEMP}\n{rows}", "f"))

    def series(self, metric, t=None, **more):
        """Collect, and return the values of a metric by the labels that it has beside those of the GPU."""
        if t is not None:
            self.source.t = t
        for name, value in more.items():
            setattr(self.source, name, value)
        found = series_of(self.flow.exposition().text)
        return {own(dict(pairs)): value for (name, pairs), value in found.items() if name == metric}


OF_THE_GPU = {"UUID", "gpu", "pci_bus_id", "device", "modelName", "node", "hostname", "namespace", "pod", "container"}


def own(labels):
    return labels["UUID"], *(f"{name}={value}" for name, value in sorted(labels.items()) if name not in OF_THE_GPU)


def test_a_clock_event_is_exposed_as_0_or_1_for_each_reason_of_each_gpu_that_can_be_read():
    found = ComputedFlow().series("gpugauge_clock_event", values={112: (0x44, None)})
    assert {key for key, value in found.items() if value} == {
        ("GPU-a", "reason=power_cap"),
        ("GPU-a", "reason=hw_thermal"),
    }
    assert {key[0] for key in found} == {"GPU-a"}
    assert len(found) == 5


def test_neither_idleness_nor_clocks_that_somebody_set_are_clock_events_of_our_own():
    found = ComputedFlow().series("gpugauge_clock_event", values={112: (0x1FF, None)})
    assert {key[1] for key, value in found.items() if value} == {
        f"reason={reason}" for reason in ("power_cap", "hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake")
    }


def test_collections_with_a_clock_event_are_counted_within_the_window():
    flow = ComputedFlow(CLOCK_ROWS, CountWindows(clock_events=20_000))
    for t, masks in ((0, (0x4, 0x0)), (10, (0x4, 0x0)), (20, (0x44, 0x0))):
        found = flow.series("DCGM_EXP_CLOCK_EVENTS_COUNT", t, values={112: masks})
    assert found == {
        ("GPU-a", "clock_event=power_cap", "window_size_in_ms=20000"): 2,
        ("GPU-a", "clock_event=hw_thermal", "window_size_in_ms=20000"): 1,
    }
    assert flow.series("DCGM_EXP_CLOCK_EVENTS_COUNT", 40, values={112: (0x0, 0x0)}) == {}


def test_clock_events_that_begin_are_counted_since_the_start():
    flow = ComputedFlow(CLOCK_ROWS)
    for t, mask in enumerate((0x4, 0x4, 0x0, 0x4)):
        found = flow.series("DCGM_EXP_CLOCK_EVENTS_TOTAL", t, values={112: (mask, None)})
    assert found == {("GPU-a", "clock_event=power_cap"): 2}


def test_computed_metrics_of_dcgm_exporter_are_exposed_only_where_the_file_names_them():
    flow = ComputedFlow("DCGM_EXP_CLOCK_EVENTS_TOTAL, counter, T.")
    flow.series("x", values={112: (0x4, 0x4)})
    assert "DCGM_EXP_CLOCK_EVENTS_COUNT" not in flow.flow.exposition().text.decode()


def test_computed_series_have_the_labels_of_the_gpu_and_counts_that_fall_are_gauges():
    flow = ComputedFlow(CLOCK_ROWS)
    flow.series("x", values={112: (0x4, None)})
    text = flow.flow.exposition().text.decode()
    assert "# TYPE DCGM_EXP_CLOCK_EVENTS_COUNT gauge" in text
    assert "# TYPE DCGM_EXP_CLOCK_EVENTS_TOTAL counter" in text
    assert (
        'modelName="NVIDIA H200",hostname="node-1",namespace="",pod="",container="",clock_event="power_cap"} 1' in text
    )


@pytest.mark.parametrize("away", [{"down": ("GPU-a",)}, {"fails": True}])
def test_what_cannot_be_read_has_no_clock_events_and_goes_on_counting_when_it_is_back(away):
    flow, total = ComputedFlow(CLOCK_ROWS), "DCGM_EXP_CLOCK_EVENTS_TOTAL"
    assert flow.series(total, 0, values={112: (0x4, None)}) == {("GPU-a", "clock_event=power_cap"): 1}
    assert flow.series(total, 1, values={}, **away) == {}
    assert flow.series("gpugauge_clock_event") == {}
    flow.series(total, 2, values={112: (0x0, None)}, down=(), fails=False)
    assert flow.series(total, 3, values={112: (0x4, None)}) == {("GPU-a", "clock_event=power_cap"): 2}


def test_a_reload_of_the_counters_file_resets_no_count():
    flow = ComputedFlow()
    flow.series("x", 0, values={112: (0x4, None)})
    flow.use(CLOCK_ROWS)
    assert flow.series("DCGM_EXP_CLOCK_EVENTS_TOTAL", 1) == {("GPU-a", "clock_event=power_cap"): 1}


def test_counts_end_with_a_gpu_that_another_one_has_replaced():
    flow, total = ComputedFlow(CLOCK_ROWS), "DCGM_EXP_CLOCK_EVENTS_TOTAL"
    flow.series(total, 0, values={112: (0x4, 0x4)})
    swapped = msgspec.structs.replace(GPUS[0], uuid="GPU-c")
    assert {key[0] for key in flow.series(total, 1, gpus=(swapped, GPUS[1]))} == {"GPU-b", "GPU-c"}
    assert flow.series(total, 2, gpus=GPUS) == {
        ("GPU-a", "clock_event=power_cap"): 1,
        ("GPU-b", "clock_event=power_cap"): 1,
    }


def reports(*found):
    return {"xids": tuple(XidReport(uuid, code, EPOCH + at, *count) for uuid, code, at, *count in found)}


def test_every_xid_is_counted_also_one_of_the_same_code():
    flow = ComputedFlow()
    flow.series(XIDS, 0, values={230: (0, 0)})
    flow.series(XIDS, 10, more=reports(("GPU-a", 31, 2), ("GPU-a", 31, 5, 40), ("GPU-b", 79, 6)))
    found = flow.series(XIDS, 20, more=reports(("GPU-a", 31, 15)))
    assert {key: value for key, value in found.items() if value} == {
        ("GPU-a", "xid=31"): 42,
        ("GPU-b", "xid=79"): 1,
    }
    assert flow.series(LAST, 30, more={}) == {
        ("GPU-a", "xid=31"): EPOCH + 15,
        ("GPU-b", "xid=79"): EPOCH + 6,
    }


def test_critical_codes_begin_at_0_where_xids_can_be_received_and_others_with_the_first():
    found = ComputedFlow().series(XIDS, values={230: (0, None)})
    assert found == {("GPU-a", f"xid={code}"): 0 for code in CRITICAL}


def test_the_xid_of_a_gpu_that_is_lost_with_it_is_exposed_and_no_0_appears_on_a_gpu_that_was_never_readable():
    flow = ComputedFlow(XID_ROWS)
    flow.series(XIDS, 0, values={230: (0,)}, down=("GPU-b",))
    lost = {"values": {}, "down": ("GPU-a", "GPU-b"), "more": reports(("GPU-a", 79, 5))}
    found = flow.series(XIDS, 10, **lost)
    assert {key for key, value in found.items() if value} == {("GPU-a", "xid=79")}
    assert {key[0] for key in found} == {"GPU-a"}
    assert flow.series(COUNT, 20, more={}) == {("GPU-a", "window_size_in_ms=300000", "xid=79"): 1}


def test_the_window_of_xids_ends_to_the_second_and_a_gpu_without_one_has_0_and_no_label():
    flow = ComputedFlow(XID_ROWS, CountWindows(xids=20_000))
    zero = ("GPU-a", "window_size_in_ms=20000")
    assert flow.series(COUNT, 0, values={230: (0,)}) == {zero: 0}
    flow.series(COUNT, 10, more=reports(("GPU-a", 31, 4), ("GPU-a", 31, 8)))
    for t, count in ((23.9, 2), (24.1, 1), (27.9, 1)):
        assert flow.series(COUNT, t, more={}) == {("GPU-a", "window_size_in_ms=20000", "xid=31"): count}
    assert flow.series(COUNT, 28.1) == {zero: 0}
    assert flow.series(COUNT, 29, values={}, down=("GPU-a",)) == {}
    assert flow.series(TOTAL, 30) == {("GPU-a", "xid=31"): 2}


def test_what_is_reported_again_after_a_restart_of_the_reader_is_not_counted_again():
    flow = ComputedFlow()
    first = reports(("GPU-a", 31, 2), ("GPU-a", 31, 5))
    flow.series(XIDS, 10, values={230: (31,)}, more=first)
    flow.series(XIDS, 11, fails=True)
    again = reports(("GPU-a", 31, 2), ("GPU-a", 31, 5), ("GPU-a", 31, 12), ("GPU-a", 63, 3))
    found = flow.series(XIDS, 20, fails=False, more=again)
    assert {key: value for key, value in found.items() if value} == {("GPU-a", "xid=31"): 3, ("GPU-a", "xid=63"): 1}


def test_an_xid_from_before_the_start_has_a_time_and_is_not_counted():
    flow = ComputedFlow(XID_ROWS)
    before = {"values": {230: (None,)}, "more": reports(("GPU-a", 31, -50))}
    assert flow.series(XIDS, 1, **before)[("GPU-a", "xid=31")] == 0
    assert flow.series(LAST, 2, more={}) == {("GPU-a", "xid=31"): EPOCH - 50}
    assert flow.series(COUNT, 3) == {("GPU-a", "window_size_in_ms=300000"): 0}
    assert flow.series(TOTAL, 4) == {}


def test_a_reload_resets_no_xid_and_the_xids_of_a_replaced_gpu_end_with_it():
    flow = ComputedFlow()
    flow.series(XIDS, 1, values={230: (0, 0)}, more=reports(("GPU-a", 79, 0), ("GPU-b", 79, 0)))
    flow.use(XID_ROWS)
    assert flow.series(TOTAL, 2, more={}) == {("GPU-a", "xid=79"): 1, ("GPU-b", "xid=79"): 1}
    swapped = msgspec.structs.replace(GPUS[0], uuid="GPU-c")
    assert flow.series(TOTAL, 3, gpus=(swapped, GPUS[1])) == {("GPU-b", "xid=79"): 1}
    assert {key[0] for key in flow.series(XIDS)} == {"GPU-b", "GPU-c"}


def test_a_gpu_that_is_missing_keeps_its_xids():
    flow = ComputedFlow()
    flow.series(XIDS, 1, values={230: (0, 0)}, more=reports(("GPU-a", 79, 0)))
    found = flow.series(XIDS, 2, gpus=GPUS[1:], values={}, more={})
    assert {key: value for key, value in found.items() if value} == {("GPU-a", "xid=79"): 1}


def test_counters_never_fall_whatever_order_and_number_the_reports_have():
    flow = ComputedFlow(XID_ROWS)
    before = {}
    for t in range(1, 60):
        noise = [("GPU-a", 31 + n % 3, (t * 7 + n * 5) % 60, 1 + n) for n in range(t % 4)]
        found = flow.series(XIDS, t, values={230: (0,)}, more=reports(*noise))
        assert all(found[key] >= value for key, value in before.items())
        before = found
    assert sum(before.values()) > 0


def p2p(*found):
    return {"p2p": tuple(P2pStatus(*pair) for pair in found)}


def test_the_status_of_each_pair_is_a_number_and_a_name_and_the_peer_its_index():
    flow = ComputedFlow(P2P_ROW)
    found = flow.series(P2P, values={150: (1, 1)}, more=p2p(("GPU-a", "GPU-b", 0), ("GPU-b", "GPU-a", 3)))
    assert found == {
        ("GPU-a", "link_status=OK", "peer_gpu=1"): 0,
        ("GPU-b", "link_status=TopologyNotSupported", "peer_gpu=0"): 3,
    }


@pytest.mark.parametrize(
    ("more", "down"),
    [
        (p2p(("GPU-a", "GPU-b", 7)), ()),
        (p2p(("GPU-a", "GPU-b", -1)), ()),
        (p2p(("GPU-a", "GPU-b", 0)), ("GPU-a",)),
        (p2p(("GPU-a", "GPU-b", 0)), ("GPU-b",)),
        (p2p(("GPU-a", "GPU-x", 0)), ()),
        ({}, ()),
    ],
    ids=["unknown status", "negative", "gpu lost", "peer lost", "unknown peer", "not read"],
)
def test_a_pair_that_cannot_be_told_has_no_series(more, down):
    assert ComputedFlow(P2P_ROW).series(P2P, values={150: (1, 1)}, more=more, down=down) == {}


def test_the_xids_of_a_scenario_are_counted_through_the_simulated_source():
    flow = SimulatedFlow("xid")
    found = {}
    for t in (1, 5.5, 10, 11, 20):
        found = {
            (dict(pairs)["gpu"], dict(pairs)["xid"]): value
            for (name, pairs), value in series_of(flow.exposition(t).text).items()
            if name == XIDS and value
        }
    assert found == {("0", "31"): 2, ("0", "79"): 1, ("1", "94"): 1}
