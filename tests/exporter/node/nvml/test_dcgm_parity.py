"""One scenario through both stand-in libraries: the two sources agree wherever both can know."""

import msgspec
import pytest

from exporter.node.nvml.source import NvmlSource
from tests.exporter.node.dcgm.fixture import Stage
from tests.exporter.node.nvml.fixture import Clock, cells, config
from tests.exporter.node.nvml.test_source import MORE_FROM_NVML, UNKNOWN_TO_NVML, gpm_can, near
from tests.exporter.node.nvml.test_source import fields as known_fields

NEWER_THAN_THE_ENGINE = {175, 1080, 1084, 1091, 1092, 1220, 1501, 1507, 1523}
"""Fields that the scenarios' engine (4.2) does not know; some of them its driver does."""
ASKED = tuple(sorted(known_fields().keys() - {6, 4}))


@pytest.fixture
def both(library, tmp_path):
    """A scenario and a moment through both sources: (dcgm's, nvml's) readings."""
    opened = []

    def read(name, moment):
        stage = Stage(tmp_path, name)
        clock = Clock()
        nvml = NvmlSource(config(ASKED), clock=clock, patience=0.0)
        opened.extend((nvml, stage))
        dcgm = stage.source(*ASKED)
        nvml.read()
        dcgm.read()
        stage.at(moment)
        clock.now += 1
        return dcgm.read(), nvml.read()

    yield read
    for one in opened:
        one.close()


@pytest.mark.parametrize("name", ["whole", "mig", "time_sliced"])
def test_names_labels_and_values_are_the_same(both, name):
    dcgm, nvml = both(name, 5)
    # DCGM does not tell the NUMA node.
    assert dcgm.inventory == tuple(msgspec.structs.replace(device, numa_node=-1) for device in nvml.inventory)
    devices = {(d.uuid, d.gi, d.ci): d for d in nvml.inventory}
    theirs, ours = cells(dcgm), cells(nvml)
    assert {key[3] for key in ours.keys() - theirs.keys()} == NEWER_THAN_THE_ENGINE
    comparable = {
        key: value
        for key, value in theirs.items()
        if key[3] not in UNKNOWN_TO_NVML | MORE_FROM_NVML and gpm_can(devices[key[:3]], key[3])
    }
    for key, value in comparable.items():
        assert near(ours[key], value), (key, ours[key], value)
    shown = {key[:3] for key, value in comparable.items() if value is not None}
    assert shown == devices.keys() - {key for key in devices if key[2] >= 0}
