"""For any readings and allocations, the exposition parses and has every sample that was read, once, and no other."""

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.exposition.render import render
from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.matching.rules import AttributionRules
from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields.read_plan import plan
from exporter.node.devices.readings.readings import Batch, Readings, Rejection, XidReport
from exporter.node.devices.series.labels import LabelStyle
from exporter.node.pipeline import NodePipeline, NodeSources
from tests.exporter.node.scenario_flow import FixedSource

FILE = """\
DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.
DCGM_FI_DEV_PCIE_REPLAY_COUNTER, counter, Replays.
DCGM_FI_DEV_FB_USED, gauge, Memory.
DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Activity.
DCGM_FI_PROF_DRAM_ACTIVE, gauge, Memory activity.
DCGM_FI_DEV_XID_ERRORS, gauge, XID.
DCGM_EXP_XID_ERRORS_COUNT, gauge, XIDs.
DCGM_EXP_XID_ERRORS_TOTAL, counter, XIDs.
DCGM_EXP_CLOCK_EVENTS_COUNT, counter, Clock events.
DCGM_EXP_CLOCK_EVENTS_TOTAL, counter, Clock events.
DCGM_FI_DRIVER_VERSION, label, Driver.
DCGM_FI_DEV_SERIAL, label, Serial.
"""
COUNTERS = parse(FILE, "f")
WANTED = COUNTERS.wanted
STRINGS = {field.id for field in COUNTERS.fields if field.kind == "string"}

texts = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\r"), max_size=8)
numbers = st.one_of(st.none(), st.integers(0, 2**62), st.floats(0, 1e12), st.floats())


@st.composite
def inventories(draw):
    """GPUs, some with GPU instances, some of these with several compute instances; identities differ."""
    devices = []
    for index in range(draw(st.integers(0, 4))):
        gpu = Device(
            f"GPU-{index}", index, draw(texts), draw(st.integers(-1, 9)), draw(texts), mig_enabled=draw(st.booleans())
        )
        devices.append(gpu)
        for gi in range(draw(st.integers(0, 2))):
            count = draw(st.sampled_from([1, 1, 2]))
            mig = tuple(f"MIG-{index}-{gi}-{ci}" for ci in range(count))
            instance = Device(
                gpu.uuid, index, gpu.pci_bus_id, gpu.minor, gpu.model, gi=gi, profile="1g.10gb", mig_uuids=mig
            )
            devices.append(instance)
            if count > 1:
                devices += [
                    msgspec.structs.replace(instance, ci=ci, profile="1c.1g.10gb", mig_uuids=(mig[ci],))
                    for ci in range(count)
                ]
    return tuple(devices)


@st.composite
def readings(draw):
    inventory = draw(inventories())
    batches = []
    for request in plan(inventory, WANTED):
        columns = tuple(
            tuple(draw(st.one_of(st.none(), texts) if field in STRINGS else numbers) for _ in request.devices)
            for field in request.fields
        )
        batches.append(Batch(request.devices, request.fields, columns))
    rejected = draw(st.lists(st.builds(Rejection, st.sampled_from([150, 252, 9]), st.just("blank"), st.integers(1, 9))))
    down = tuple(d.uuid for d in inventory if d.gi < 0 and draw(st.booleans()))
    uuids = st.sampled_from(["GPU-0", "GPU-1", "GPU-9"])
    xids = draw(st.lists(st.builds(XidReport, uuids, st.integers(1, 200), st.floats(0, 2e9), st.integers(1, 9))))
    return Readings("simulated", 1.0, inventory, tuple(batches), tuple(rejected), down, tuple(xids))


ids = st.one_of(
    st.builds("GPU-{}".format, st.integers(0, 5)),
    st.builds("GPU-{}::{}".format, st.integers(0, 5), st.integers(0, 3)),
    st.builds("MIG-{}-{}-{}".format, st.integers(0, 5), st.integers(0, 2), st.integers(0, 1)),
    texts,
)
allocations = st.one_of(
    st.none(),
    st.lists(
        st.builds(Allocation, texts, texts, texts, st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"]), ids),
        max_size=6,
    ).map(lambda found: tuple(sorted(set(found)))),
)


def expositions(found, allocated):
    kubelet = None if allocated is None else FixedSource("kubelet", allocated)
    sources = NodeSources(FixedSource("simulated", found), kubelet)
    pipeline = NodePipeline(sources, COUNTERS, LabelStyle("n1"), AttributionRules(), monotonic=lambda: 0.0)
    return [render(pipeline.collect().families, CollectorRegistry()) for _ in range(2)]


def samples(parsed):
    return [(s.name, frozenset(s.labels.items()), s.value) for family in parsed for s in family.samples]


def read_lines(exposition):
    """The lines about what was read; what is counted over collections differs from one to the next."""
    return [line for line in exposition.openmetrics.splitlines() if not line.startswith(b"DCGM_EXP_")]


@given(readings(), allocations)
def test_any_readings_give_an_exposition_that_parses_and_repeats_nothing(found, allocated):
    first, second = expositions(found, allocated)
    assert read_lines(first) == read_lines(second), "an equal collection gives an equal exposition"
    for parsed in (parse_text(first.text.decode()), parse_openmetrics(first.openmetrics.decode())):
        identities = [(name, labels) for name, labels, _ in samples(parsed)]
        assert len(identities) == len(set(identities))


def can_be_exposed(value, *, counter):
    """Whether a sample may be in an exposition at all."""
    if value is None or isinstance(value, str) or not math.isfinite(value):
        return False
    return not (counter and value < 0)


@given(readings(), allocations)
def test_each_sample_that_was_read_is_exposed_once_and_nothing_else(found, allocated):
    exposed = samples(parse_openmetrics(expositions(found, allocated)[0].openmetrics.decode()))
    values = sorted(float(value) for name, _, value in exposed if name.startswith("DCGM_FI_"))
    counters = {row.field.id for row in COUNTERS.rows if row.type == "counter"}
    expected = sorted(
        float(value)
        for batch in found.batches
        for field, column in zip(batch.fields, batch.columns, strict=True)
        if field in {row.field.id for row in COUNTERS.rows}
        for value in column
        if can_be_exposed(value, counter=field in counters)
    )
    assert values == expected


@given(readings(), allocations)
def test_a_pod_on_a_device_series_is_the_only_one_that_the_device_is_allocated_to(found, allocated):
    exposed = samples(parse_text(expositions(found, allocated)[0].text.decode()))
    pods_of = {}
    for name, labels, _ in exposed:
        if name == "gpugauge_allocation_info":
            of = dict(labels)
            pods_of.setdefault(key(of), set()).add((of["gpu_namespace"], of["gpu_pod"]))
    for name, labels, _ in exposed:
        of = dict(labels)
        if name.startswith("DCGM_") and (of["pod"] or of["namespace"]):
            pods = set().union(*(pods for device, pods in pods_of.items() if inside(device, key(of))))
            assert pods == {(of["namespace"], of["pod"])}


def key(labels):
    return labels["UUID"], labels.get("GPU_I_ID", ""), labels.get("GPU_CI_ID", "")


def inside(inner, outer):
    """Whether a device is another one or lies inside that instance."""
    return inner == outer or (outer[1] != "" and outer[2] == "" and inner[:2] == outer[:2])


def test_the_strategies_make_mig_devices_and_compute_instances():
    seen = set()

    @given(inventories())
    def collect(inventory):
        seen.update((device.gi >= 0, device.ci >= 0) for device in inventory)

    collect()
    assert seen == {(False, False), (True, False), (True, True)}
