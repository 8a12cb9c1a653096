"""The status page of the node exporter says what its families say, and says what is missing."""

from dataclasses import replace
from pathlib import Path

import pytest

from exporter.collection_loop import Collected
from exporter.exposition.exporter_metrics import ConfigState
from exporter.exposition.render import render
from exporter.metric import Family, Labels
from exporter.node.attribution.kubelet.reason import KubeletReason
from exporter.node.attribution.series.metrics import INFO, UNMATCHED
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.devices.series.labels import LabelStyle
from exporter.node.nvml.native.reasons import NvmlReason
from exporter.node.reader.reasons import ReaderReason
from exporter.node.service_account.reasons import ApiReason
from exporter.node.simulation.source import SimulationReason
from exporter.node.source_reasons import reason_of
from exporter.node.state_file.reasons import StateFileReason
from exporter.node.status import node_page
from exporter.snapshot import SourceHealth
from tests.exporter.node.scenario_flow import EPOCH, HOSTNAME, SimulatedFlow, series_of
from tests.exporter.status_page.pages import HOSTILE, check_harmless, recorded, rows_of, written

GOLDEN = Path(__file__).parents[2] / "golden" / "status"
CONFIG = ConfigState("0" * 64, successful=True, at=EPOCH)
DASH = "\N{EN DASH}"


def snapshot_of(name, t=61.0, **more):
    return SimulatedFlow(name, t=t, **more).flow.pipeline.collect()


def page_of(snapshot, config=CONFIG, number=1):
    return node_page(Collected(number, None, snapshot, config), HOSTNAME)


def devices_of(snapshot):
    return [row for row in rows_of(page_of(snapshot)) if "Temperature" in row]


def broken():
    """A node on which the engine does not answer, the kubelet's socket is missing and the counters file is wrong."""
    flow = SimulatedFlow("whole", t=61)
    flow.devices.reason = flow.kubelet.reason = "timeout"
    health = (
        SourceHealth("dcgm", False, 5.0, str(DcgmReason.CONNECTION_LOST), "/run/engine.sock: refused"),
        SourceHealth("kubelet", False, 0.0, KubeletReason.SOCKET_MISSING, "/var/lib/kubelet: not found"),
    )
    return replace(flow.flow.pipeline.collect(), health=health, build={"source": "dcgm"})


def shared_mig():
    """MIG devices of which one is given to two pods."""
    snapshot = snapshot_of("mig")
    families = []
    for family in snapshot.families:
        samples = list(family.samples)
        if family.metric is INFO:
            labels = samples[0][0]
            other = dict(labels.pairs) | {"pod": "second-0", "gpu_pod": "second-0", "sharing": "mps"}
            first = dict(labels.pairs) | {"sharing": "mps"}
            samples[0:1] = [INFO.sample(1, **first), INFO.sample(1, **other)]
        families.append(Family(family.metric, samples))
    return replace(snapshot, families=tuple(families))


PAGES = {
    "node_healthy": lambda: page_of(snapshot_of("whole")),
    "node_time_sliced": lambda: page_of(snapshot_of("time_sliced")),
    "node_shared_mig": lambda: page_of(shared_mig()),
    "node_lost": lambda: page_of(snapshot_of("lost", 20)),
    "node_broken": lambda: page_of(broken(), ConfigState(None, successful=False)),
    "node_first": lambda: page_of(None, number=0),
    "node_defect": lambda: page_of(None, number=5),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_as_recorded(golden, name):
    golden(recorded(PAGES[name]()), GOLDEN / f"{name}.html")


def test_devices_have_pods_and_values():
    gpu, gi, *_, last = devices_of(snapshot_of("mig"))
    assert gpu["Device"].startswith("GPU 0\nNVIDIA-H100-80GB-HBM3\nGPU-")
    assert gpu["Pods"] == f"{DASH}\npartitioned: see its MIG devices"
    assert (gi["Device"], gi["Utilization"]) == ("GPU 0, MIG 3g.40gb\nGPU instance 1", "68 %")
    assert gi["Pods"] == "inference/embedder-6f7d9c5b7d-9kx2c (server)"
    assert gi["Temperature"] == f"{DASH}\nmeasured for the GPU"
    assert (last["Memory"], last["Tensor activity"], last["Temperature"]) == ("68.5 of 79.0 GiB", "50 %", "66 °C")


def test_the_page_has_the_values_of_the_exposition_of_the_same_collection():
    flow = SimulatedFlow("whole", t=61)
    snapshot = flow.flow.pipeline.collect()
    exposed = series_of(render(snapshot.families, flow.flow.registry).text)
    temperatures = {
        dict(labels)["UUID"]: value for (name, labels), value in exposed.items() if name == "DCGM_FI_DEV_GPU_TEMP"
    }
    rows = devices_of(snapshot)
    assert len(rows) == len(temperatures) == 8
    for row in rows:
        uuid = row["Device"].splitlines()[-1]
        assert row["Temperature"] == f"{temperatures[uuid]:.0f} °C"


def test_values_are_found_under_the_names_of_dcgm_exporter_1():
    styles = LabelStyle(HOSTNAME), LabelStyle(HOSTNAME, old_namespace=True)
    now, before = (SimulatedFlow("whole", t=61, style=style).flow.pipeline.collect() for style in styles)
    assert devices_of(before) == devices_of(now)


def test_a_shared_device_names_its_pods_and_how_it_is_shared():
    first, second = devices_of(snapshot_of("time_sliced"))
    assert first["Pods"].splitlines() == [
        "dev/notebook-lena-0 (notebook)",
        "dev/notebook-timo-0 (notebook)",
        "inference/ocr-small-5b8f6d7c9-qv7rn (server)",
        "sharing: time-slicing",
    ]
    assert second["Pods"].startswith("dev/batch-thumbnails-29x7k")


def test_of_very_many_pods_some_are_named():
    snapshot = snapshot_of("time_sliced")
    family = next(each for each in snapshot.families if each.metric is INFO)
    labels = dict(family.samples[0][0].pairs)
    many = [INFO.sample(1, **labels | {"pod": f"p-{number}"}) for number in range(48)]
    found = devices_of(replace(snapshot, families=(*snapshot.families, Family(INFO, many))))[0]["Pods"]
    assert "and 40 more" in found


def test_a_lost_gpu_is_not_readable_and_has_no_value():
    lost = [row for row in devices_of(snapshot_of("lost", 20)) if row["State"] == "not readable"]
    assert len(lost) == 2
    for row in lost:
        assert {row[name] for name in ("Utilization", "Memory", "Temperature")} == {f"{DASH}\nnot readable"}


def test_without_attribution_the_page_says_so_and_names_no_pod():
    for row in devices_of(snapshot_of("whole", attributed=False)):
        assert row["Pods"] == f"{DASH}\ndevices are not attributed to pods"


def test_a_field_that_is_not_configured_is_told_from_one_without_a_value():
    snapshot = snapshot_of("whole")
    kept = tuple(each for each in snapshot.families if each.metric.name != "DCGM_FI_DEV_GPU_TEMP")
    assert devices_of(replace(snapshot, families=kept))[0]["Temperature"] == f"{DASH}\nnot in the counters file"
    empty = tuple(
        Family(each.metric, []) if each.metric.name == "DCGM_FI_DEV_GPU_TEMP" else each for each in snapshot.families
    )
    assert devices_of(replace(snapshot, families=empty))[0]["Temperature"] == f"{DASH}\nno value"


def state_of(snapshot, config=CONFIG):
    return dict(page_of(snapshot, config).facts)["State"].lines[0]


def test_the_first_line_says_what_is_wrong_first_of_all():
    assert state_of(broken()) == f"dcgm is down: {DcgmReason.CONNECTION_LOST.meaning}"
    unusable = ConfigState(None, successful=False)
    assert state_of(broken(), unusable).startswith("see the configuration errors: the counters file cannot be used")


def test_problems_come_with_their_remedies_and_no_path():
    body = written(page_of(broken(), ConfigState(None, successful=False))).decode()
    for reason in (DcgmReason.CONNECTION_LOST, KubeletReason.SOCKET_MISSING):
        assert f"<div>{reason}</div>" in body.replace("<wbr>", "")
    rows = {row["Source"]: row for row in rows_of(page_of(broken())) if "Source" in row}
    assert rows["dcgm"]["Remedy"] == DcgmReason.CONNECTION_LOST.remedy
    assert rows["kubelet"]["Meaning"] == KubeletReason.SOCKET_MISSING.meaning
    assert "/run/engine.sock" not in body
    assert "the counters file cannot be used" in body


@pytest.mark.parametrize(
    ("config", "kind", "number"),
    [
        (ConfigState(None, successful=False), "the counters file cannot be used, so no field is read", "1"),
        (replace(CONFIG, successful=False), "the counters file was changed and cannot be used; the former one is", "1"),
        (replace(CONFIG, rejected_rows=3), "rows of the counters file that are left out", "3"),
    ],
)
def test_configuration_errors_are_counted_by_kind(config, kind, number):
    rows = [row for row in rows_of(page_of(snapshot_of("whole"), config)) if "Kind" in row]
    assert rows == [{"Kind": kind, "Number": number}]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        *(
            ("dcgm", reason)
            for reason in (*DcgmReason, *ReaderReason)
            if reason not in set(DcgmReason) & set(ReaderReason)
        ),
        *(("nvml", reason) for reason in NvmlReason),
        *(("simulated", reason) for reason in SimulationReason),
        *(("state_file", reason) for reason in StateFileReason),
        *(("kubelet", reason) for reason in KubeletReason),
    ],
)
def test_every_reason_of_a_source_is_found_by_its_label_value(source, reason):
    value = reason if source == "kubelet" else str(reason)
    assert reason_of(source, value) is reason


def test_hostile_names_stay_texts():
    """Whatever is set by whoever makes a pod or names a resource, and the label values of every other family."""

    def hostile(labels):
        keep = {"UUID", "gpu", "GPU_I_ID", "GPU_CI_ID", "reason"}
        values = tuple(v if n in keep else HOSTILE for n, v in zip(labels.names, labels.values, strict=True))
        return Labels(labels.schema, labels.names, values)

    snapshot = shared_mig()
    families = [
        Family(each.metric, [(hostile(labels), value) for labels, value in each.samples]) for each in snapshot.families
    ]
    families.append(Family(UNMATCHED, [UNMATCHED.sample(1, resource=HOSTILE, reason=HOSTILE, node=HOSTILE)]))
    changed = replace(snapshot, families=tuple(families), build=dict.fromkeys(snapshot.build, HOSTILE))
    page = node_page(Collected(1, None, changed, CONFIG), HOSTILE)
    found = check_harmless(written(page))
    assert sum("<script>alert(1)" in text for text in found.texts) > 10


def test_pods_that_are_known_are_no_devices_that_were_read():
    broken_devices = broken()
    pods = SourceHealth("kubernetes", up=True, seconds=0.0)
    page = page_of(replace(broken_devices, health=(*broken_devices.health, pods)))
    empty = {table.title: table.empty for table in page.tables if not table.rows}
    assert empty["Fields without a value"] == "Not known: nothing was read."


def test_a_problem_of_the_api_server_is_explained():
    away = SourceHealth("kubernetes", False, 0.0, ApiReason.FORBIDDEN, "pods cannot be read")
    page = page_of(replace(snapshot_of("whole"), health=(SourceHealth("simulated", up=True, seconds=0.0), away)))
    assert any(ApiReason.FORBIDDEN.meaning in str(row) for row in rows_of(page))
