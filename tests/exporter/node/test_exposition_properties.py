"""Whatever the readings and allocations are, the page parses, repeats nothing and claims nothing that was not read."""

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.exposition.render import render
from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.attribute import AttributionRules
from exporter.node.devices.counters_file import parse
from exporter.node.devices.labels import LabelStyle
from exporter.node.devices.read_plan import plan
from exporter.node.devices.readings import Block, Device, Readings, Rejection
from exporter.node.pipeline import NodePipeline, NodeSources

FILE = """\
DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.
DCGM_FI_DEV_PCIE_REPLAY_COUNTER, counter, Replays.
DCGM_FI_DEV_FB_USED, gauge, Memory.
DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Activity.
DCGM_FI_PROF_DRAM_ACTIVE, gauge, Memory activity.
DCGM_FI_DEV_XID_ERRORS, gauge, XID.
DCGM_FI_DRIVER_VERSION, label, Driver.
DCGM_FI_DEV_SERIAL, label, Serial.
"""
COUNTERS = parse(FILE, "f")
WANTED = tuple(field.wanted() for field in COUNTERS.fields)
STRINGS = {field.id for field in COUNTERS.fields if field.kind == "string"}

texts = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\r"), max_size=8)
numbers = st.one_of(st.none(), st.integers(0, 2**62), st.floats(0, 1e12), st.floats())


@st.composite
def inventories(draw):
    """Boards, some divided into instances, some of those into compute instances; identities differ."""
    devices = []
    for index in range(draw(st.integers(0, 4))):
        board = Device(
            f"GPU-{index}", index, draw(texts), draw(st.integers(-1, 9)), draw(texts), mig_enabled=draw(st.booleans())
        )
        devices.append(board)
        for gi in range(draw(st.integers(0, 2))):
            parts = draw(st.sampled_from([1, 1, 2]))
            mig = tuple(f"MIG-{index}-{gi}-{ci}" for ci in range(parts))
            instance = Device(
                board.uuid, index, board.pci_bus_id, board.minor, board.model, gi=gi, profile="1g.10gb", mig_uuids=mig
            )
            devices.append(instance)
            if parts > 1:
                devices += [
                    msgspec.structs.replace(instance, ci=ci, profile="1c.1g.10gb", mig_uuids=(mig[ci],))
                    for ci in range(parts)
                ]
    return tuple(devices)


@st.composite
def readings(draw):
    inventory = draw(inventories())
    blocks = []
    for request in plan(inventory, WANTED):
        columns = tuple(
            tuple(draw(st.one_of(st.none(), texts) if field in STRINGS else numbers) for _ in request.devices)
            for field in request.fields
        )
        blocks.append(Block(request.devices, request.fields, columns))
    rejected = draw(st.lists(st.builds(Rejection, st.sampled_from([150, 252, 9]), st.just("blank"), st.integers(1, 9))))
    down = tuple(d.uuid for d in inventory if d.gi < 0 and draw(st.booleans()))
    return Readings("simulated", 1.0, inventory, tuple(blocks), tuple(rejected), down)


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


class Fixed:
    """A source that always gives the same."""

    def __init__(self, name, answer):
        self.name, self.answer = name, answer

    def read(self):
        return self.answer

    def close(self): ...


def pages(found, held):
    kubelet = None if held is None else Fixed("kubelet", held)
    sources = NodeSources(Fixed("simulated", found), kubelet)
    pipeline = NodePipeline(sources, COUNTERS, LabelStyle("n1"), AttributionRules())
    return [render(pipeline.take().families, CollectorRegistry()) for _ in range(2)]


def samples(parsed):
    return [(s.name, frozenset(s.labels.items()), s.value) for family in parsed for s in family.samples]


@given(readings(), allocations)
def test_any_readings_give_a_page_that_parses_and_repeats_nothing(found, held):
    first, second = pages(found, held)
    assert first.openmetrics == second.openmetrics, "an equal pass gives an equal page"
    for parsed in (parse_text(first.text.decode()), parse_openmetrics(first.openmetrics.decode())):
        identities = [(name, labels) for name, labels, _ in samples(parsed)]
        assert len(identities) == len(set(identities))


def showable(value, *, counter):
    """Whether a cell may stand on a page at all."""
    if value is None or isinstance(value, str) or not math.isfinite(value):
        return False
    return not (counter and value < 0)


@given(readings(), allocations)
def test_each_cell_that_was_read_is_there_once_and_nothing_else(found, held):
    page = samples(parse_openmetrics(pages(found, held)[0].openmetrics.decode()))
    shown = sorted(float(value) for name, _, value in page if name.startswith("DCGM_"))
    counters = {row.field.id for row in COUNTERS.rows if row.type == "counter"}
    cells = sorted(
        float(value)
        for block in found.blocks
        for field, column in zip(block.fields, block.columns, strict=True)
        for value in column
        if showable(value, counter=field in counters)
    )
    assert shown == cells


@given(readings(), allocations)
def test_a_pod_on_a_device_series_is_the_only_one_that_holds_the_device(found, held):
    page = samples(parse_text(pages(found, held)[0].text.decode()))
    pairs = {}
    for name, labels, _ in page:
        if name == "gpugauge_allocation_info":
            of = dict(labels)
            pairs.setdefault(key(of), set()).add((of["gpu_namespace"], of["gpu_pod"]))
    for name, labels, _ in page:
        of = dict(labels)
        if name.startswith("DCGM_") and (of["pod"] or of["namespace"]):
            holders = set().union(*(pods for device, pods in pairs.items() if inside(device, key(of))))
            assert holders == {(of["namespace"], of["pod"])}


def key(labels):
    return labels["UUID"], labels.get("GPU_I_ID", ""), labels.get("GPU_CI_ID", "")


def inside(inner, outer):
    """Whether a device is another one or lies inside that instance."""
    return inner == outer or (outer[1] != "" and outer[2] == "" and inner[:2] == outer[:2])


def test_the_strategies_reach_divided_and_shared_devices():
    seen = set()

    @given(inventories())
    def collect(inventory):
        seen.update((device.gi >= 0, device.ci >= 0) for device in inventory)

    collect()
    assert seen == {(False, False), (True, False), (True, True)}
