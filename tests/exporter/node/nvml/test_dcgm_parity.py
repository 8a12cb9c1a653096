"""One scenario through both fake libraries: the `dcgm` and the `nvml` source give the same wherever both can."""

import msgspec
import pytest

from exporter.node.nvml.source import NvmlSource
from tests.clock import Clock
from tests.exporter.node.dcgm.fixture import EngineFixture
from tests.exporter.node.nvml.fixture import config, samples
from tests.exporter.node.nvml.test_source import MORE_FROM_NVML, has_value, near
from tests.exporter.node.read_fields import NOT_IN_NVML, READ
from tests.fakes.table_bytes import known_fields

OF_THE_NODE = {number for number, field in READ.items() if field.scope == "system"}
NEWER_THAN_THE_ENGINE = READ.keys() - {field.id for field in known_fields("4.2.3")} - OF_THE_NODE
"""Fields of GPUs that the engine of the scenarios does not have; some of them NVML has."""
FIELDS = tuple(sorted(READ.keys() - {6, 4}))


@pytest.fixture
def both(library, tmp_path):
    """Read a scenario at a time through both sources: returns the readings of `dcgm` and of `nvml`."""
    opened = []

    def read(name, t):
        engine = EngineFixture(tmp_path, name)
        clock = Clock()
        nvml = NvmlSource(config(FIELDS), clock=clock, patience=0.0)
        opened.extend((nvml, engine))
        dcgm = engine.source(*FIELDS)
        nvml.read()
        dcgm.read()
        engine.at(t)
        clock.now += 1
        return dcgm.read(), nvml.read()

    yield read
    for each in opened:
        each.close()


@pytest.mark.parametrize("name", ["whole", "mig", "time_sliced"])
def test_devices_and_values_are_the_same(both, name):
    dcgm, nvml = both(name, 5)
    # DCGM has no field of the NUMA node.
    assert dcgm.inventory == tuple(msgspec.structs.replace(device, numa_node=-1) for device in nvml.inventory)
    devices = {(d.uuid, d.gi, d.ci): d for d in nvml.inventory}
    from_dcgm, from_nvml = samples(dcgm), samples(nvml)
    assert {key[3] for key in from_nvml.keys() - from_dcgm.keys()} == NEWER_THAN_THE_ENGINE
    comparable = {
        key: value
        for key, value in from_dcgm.items()
        if key[3] not in {*NOT_IN_NVML, *MORE_FROM_NVML} and has_value(devices[key[:3]], key[3])
    }
    for key, value in comparable.items():
        assert near(from_nvml[key], value), (key, from_nvml[key], value)
    exposed = {key[:3] for key, value in comparable.items() if value is not None}
    assert exposed == devices.keys() - {key for key in devices if key[2] >= 0}
