"""The dcgm source over the fake library: which values are exposed, and when none are."""

import msgspec
import pytest

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.library import DcgmLibrary
from exporter.node.devices.fields import field_ids
from tests.exporter.node.dcgm.fixture import (
    document,
    gpu_spec,
    instance_spec,
    rejected,
    samples,
    samples_of_gpu,
    uuid_of,
    wanted,
)
from tests.exporter.node.dcgm.source_parts import mig_gpu_spec
from tests.exporter.node.read_fields import READ

ALL = (1, 54, 100, 140, 150, 155, 156, 202, 203, 230, 252, 254, 393, 1001, 1004, 1005, 1009)


def without_numa(inventory):
    return [msgspec.structs.replace(device, numa_node=-1) for device in inventory]


@pytest.mark.parametrize("scenario", ["whole", "mig", "time_sliced"])
def test_readings_of_a_scenario_equal_those_of_the_simulated_source(engine_of, scenario):
    engine = engine_of(scenario)
    source = engine.source(*ALL)
    source.read()
    for t in (1.0, 2.0, 30.0, 31.0, 400.0):
        engine.at(t)
        real, simulated = source.read(), engine.simulated(engine.config(*ALL))
        assert without_numa(real.inventory) == without_numa(simulated.inventory)
        assert samples(real) == samples(simulated)
        assert samples(real)
        assert rejected(real) == rejected(simulated)
        assert (real.down, real.versions) == (simulated.down, simulated.versions)
        assert real.problems == ()


def test_every_known_field_can_be_read_at_once(engine_of):
    engine = engine_of(document(gpu_spec(0), gpu_spec(1)))
    readings = engine.source(*READ).read()
    assert samples_of_gpu(readings)[155] == 100.5
    assert {field for batch in readings.batches for field in batch.fields} | {
        entry.field for entry in readings.rejections
    } >= {field.id for field in READ.values() if field.watch == "basic"}


class RecordingLibrary(DcgmLibrary):
    """libdcgm that records the fields of every live read."""

    def __init__(self, path):
        self.read_live = set()
        super().__init__(path)

    def status(self, function, *arguments):
        if function == "dcgmEntitiesGetLatestValues" and arguments[5] == layout.LIVE_DATA:
            self.read_live |= set(arguments[3])
        return super().status(function, *arguments)


def test_no_profiling_field_is_ever_read_live(engine_of):
    """A live read of one crashes engine 4.6.0 (measured)."""
    lost = {"event": "lost", "device": uuid_of(1), "at": 1.0}
    engine = engine_of(document(mig_gpu_spec(instance_spec(1, 0, 1)), gpu_spec(1), events=[lost]))
    libraries = []
    source = engine.source(*READ, load=lambda path: libraries.append(RecordingLibrary(path)) or libraries[-1])
    source.read()
    engine.at(2.0)
    source.read()
    read_live = libraries[0].read_live
    assert {field_ids.UUID, field_ids.DRIVER_VERSION} <= read_live
    assert {number for number in read_live if READ[number].watch == "profiling"} == set()


def test_integers_stay_exact(engine_of):
    engine = engine_of(document(gpu_spec(0, fields={"156": 2**53 + 1})))
    assert samples_of_gpu(engine.source(156).read())[156] == 2**53 + 1


@pytest.mark.parametrize("sentinel", ["blank", "not_found", "not_supported", "no_permission"])
def test_a_blank_value_of_any_type_is_counted_and_never_exposed(engine_of, sentinel):
    fault = {
        "event": "samples",
        "at": 5.0,
        "for": 5.0,
        "sentinel": sentinel,
        "fields": ["53", "150", "155", "254", "1004"],
    }
    engine = engine_of(document(gpu_spec(0, serial="1650"), events=[fault]))
    source = engine.source(53, 150, 155, 254, 1004)
    assert set(samples_of_gpu(engine.settled(source))) == {53, 150, 155, 254, 1004}
    engine.at(5.0)
    readings = source.read()
    assert samples_of_gpu(readings) == {}
    assert rejected(readings) == {(field, sentinel): 1 for field in (53, 150, 155, 254, 1004)}
    engine.at(10.0)
    assert set(samples_of_gpu(source.read())) == {53, 150, 155, 254, 1004}


@pytest.mark.parametrize(
    ("status", "expected"),
    [(-6, "not_supported"), (-17, "no_permission"), (-15, "stale"), (-45, "not_found"), (-54, "blank"), (-14, "blank")],
)
def test_a_value_with_a_status_is_counted_by_its_reason(engine_of, status, expected):
    engine = engine_of(document(gpu_spec(0), events=[{"event": "samples", "status": status, "fields": ["150"]}]))
    readings = engine.source(150, 155).read()
    assert samples_of_gpu(readings) == {155: 100.5}
    assert rejected(readings) == {(150, expected): 1}


def test_a_value_whose_timestamp_stops_is_stale_after_three_intervals_or_five_seconds(engine_of):
    engine = engine_of(
        document(gpu_spec(0), events=[{"event": "samples", "at": 1.0, "stale": True, "fields": ["150"]}])
    )
    source = engine.source(150, 155, interval=2.0)
    engine.at(1.0)
    source.read()
    engine.at(7.0)
    assert set(samples_of_gpu(source.read())) == {150, 155}
    engine.at(7.5)
    readings = source.read()
    assert samples_of_gpu(readings) == {155: 100.5}
    assert rejected(readings) == {(150, "stale"): 1}


def test_a_value_above_the_limit_of_its_field_is_not_exposed(engine_of):
    engine = engine_of(document(gpu_spec(0, fields={"1004": 1.5, "150": 40})))
    readings = engine.settled(engine.source(150, 1004))
    assert samples_of_gpu(readings) == {150: 40}
    assert rejected(readings) == {(1004, "out_of_range"): 1}


def test_seventy_instances_are_read_in_as_many_calls_as_the_limits_require(engine_of):
    numbers = (250, 251, 252, 253, 254, *range(1001, 1009), *range(1013, 1017))
    values = {str(number): 0.5 if number > 1000 or number == 254 else 10 for number in numbers}
    instances = [instance_spec(gi) | {"fields": values} for gi in range(7)]
    engine = engine_of(document(*(mig_gpu_spec(*instances, number=number) for number in range(10))))
    exposed = samples(engine.settled(engine.source(*numbers, 150, 155, 230)))
    assert len({key[:3] for key in exposed if key[1] >= 0}) == 70
    assert len(exposed) == 70 * len(numbers) + 10 * 3


def test_the_fields_of_the_node_are_on_every_gpu_once(engine_of):
    engine = engine_of(document(gpu_spec(0), mig_gpu_spec(instance_spec(1), number=1)))
    exposed = samples(engine.source(1, 5, 150).read())
    assert {key[:3] for key in exposed if key[3] == 1} == {(uuid_of(0), -1, -1), (uuid_of(1), -1, -1)}
    assert exposed[uuid_of(0), -1, -1, 1] == "570.133.20"


def test_a_field_that_is_wanted_twice_is_read_once(engine_of):
    engine = engine_of(document(gpu_spec(0)))
    assert wanted(150) == wanted(150, 150)[:1]
    assert samples_of_gpu(engine.source(150, 150).read()) == {150: 40}


def test_other_fields_are_read_from_the_next_read_on_and_what_is_watched_stays_so(engine_of):
    xid = {"event": "xid", "device": uuid_of(0), "at": 5.0, "xid": 31}
    engine = engine_of(document(gpu_spec(), events=[xid]))
    source = engine.source(150, 230, 1004)
    source.read()
    engine.at(6.0)
    assert samples_of_gpu(source.read()) == {150: 40, 230: 31, 1004: 0.25}
    connection = source._session._connection
    source.want(wanted(155, 230, 1004))
    engine.at(7.0)
    # A profiling field that is watched anew would have no value now.
    assert samples_of_gpu(source.read()) == {155: 100.5, 230: 31, 1004: 0.25}
    source.want(wanted(1, 150, 155))
    engine.at(8.0)
    assert samples_of_gpu(source.read()).keys() == {1, 150, 155}
    assert source._session._connection is connection
