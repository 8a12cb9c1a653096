"""UUIDs of compute instances that the engine does not have at first, or never."""

from tests.exporter.node.dcgm.fixture import document, gpu_spec, instance_spec, uuid_of
from tests.exporter.node.dcgm.source_parts import DiscoveryTimes

UUID = "54"
INSTANCE, COMPUTE = f"{uuid_of(0)}/7", f"{uuid_of(0)}/7/0"


def node(engine_of, seconds, **blank):
    """Read a node with one MIG device each second; the inventories, and when the driver was asked."""
    event = {"event": "samples", "sentinel": "blank", "fields": [UUID], **blank}
    gpus = (gpu_spec(0, mig=True, instances=[instance_spec(7)]), gpu_spec(1))
    engine = engine_of(document(*gpus, events=[event]))
    libraries, found = [], []
    source = engine.source(252, load=lambda path: libraries.append(DiscoveryTimes(path, engine)) or libraries[-1])
    for second in range(seconds):
        engine.at(float(second))
        found.append(source.read().inventory)
    return [[device.mig_uuids for device in inventory] for inventory in found], libraries[0].times


def test_a_compute_instance_without_a_uuid_is_a_device_and_is_asked_for_it_again(engine_of):
    uuids, asked = node(engine_of, 20, devices=[COMPUTE], **{"for": 2.5})
    assert uuids[0] == [(), (), ()]
    assert uuids[-1] == [(), ("MIG-7-0",), ()]
    assert asked == [0, 5]


def test_a_uuid_that_never_comes_is_asked_for_ten_times_in_100_seconds_at_most(engine_of):
    uuids, asked = node(engine_of, 100, devices=[COMPUTE])
    assert uuids[-1] == [(), (), ()]
    assert asked == [0, 5, 15, 35, 75]


def test_only_a_compute_instance_has_a_uuid_to_ask_for(engine_of):
    _, asked = node(engine_of, 30, devices=[INSTANCE])
    assert asked == [0]
