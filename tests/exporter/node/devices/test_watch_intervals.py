"""Each field is sampled at the interval of its watch group, and the others at the collection interval."""

from hypothesis import given
from hypothesis import strategies as st

from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.counters.watch_intervals import WatchInterval, mismatches, pace_of, wanted_at
from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields.read_plan import plan
from exporter.node.devices.fields.validity import age_limit

COUNTERS = parse(
    "DCGM_FI_DEV_GPU_TEMP, gauge, x\nDCGM_FI_DEV_POWER_USAGE, gauge, x\nDCGM_FI_DEV_ECC_SBE_VOL_TOTAL, counter, x\n"
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, x\nDCGM_FI_PROF_DRAM_ACTIVE, gauge, x\nDCGM_EXP_XID_ERRORS_COUNT, gauge, x",
    "f",
)
TEMPERATURE, POWER, ECC, ENGINE, DRAM, XID = 150, 155, 310, 1001, 1005, 230
FAST = WatchInterval("fast", 5.0, ("DCGM_FI_DEV_GPU_TEMP",), "f:1")
SLOW = WatchInterval("slow", 600.0, ("DCGM_FI_DEV_ECC_*", "DCGM_FI_DEV_GPU_?EMP"), "f:2")


def intervals(*groups, default=30.0):
    pace = pace_of(default, groups)
    return pace.collection, {field.id: field.interval or pace.collection for field in wanted_at(pace, COUNTERS)}


def test_without_watch_groups_every_field_is_sampled_once_per_collection():
    assert wanted_at(pace_of(30.0, ()), COUNTERS) == COUNTERS.wanted


def test_a_group_has_its_own_interval_and_the_first_group_of_a_field_counts():
    collection, seconds = intervals(FAST, SLOW)
    assert collection == 5.0
    assert (seconds[TEMPERATURE], seconds[POWER], seconds[ECC], seconds[XID]) == (5.0, 30.0, 600.0, 30.0)
    assert intervals(SLOW)[1][TEMPERATURE] == 600.0


def test_the_collection_interval_is_the_shortest_one():
    assert intervals(SLOW)[0] == 30.0
    assert intervals(SLOW, default=3600.0)[0] == 600.0


def test_profiling_fields_are_sampled_together_at_the_shortest_of_their_intervals():
    engine, dram = (WatchInterval(name, seconds, (name,)) for name, seconds in (("*ENGINE*", 10.0), ("*DRAM*", 60.0)))
    for groups in ([engine, dram], [dram, engine], [engine]):
        seconds = intervals(*groups)[1]
        assert (seconds[ENGINE], seconds[DRAM]) == (10.0, 10.0)
    seconds = intervals(dram)[1]
    assert (seconds[ENGINE], seconds[DRAM]) == (30.0, 30.0)


def test_a_value_may_be_as_old_as_three_of_its_own_intervals():
    pace = pace_of(30.0, (SLOW,))
    limits = {field.id: age_limit(field, pace.collection) for field in wanted_at(pace, COUNTERS)}
    assert (limits[TEMPERATURE], limits[POWER]) == (1800.0, 90.0)


def test_fields_of_different_intervals_are_watched_by_requests_of_their_own():
    gpu = Device("GPU-a", 0, "00000000:07:00.0", 0, "NVIDIA H100")
    requests = plan([gpu], wanted_at(pace_of(30.0, (FAST, SLOW)), COUNTERS))
    found = {(request.watch, request.interval): set(request.fields) for request in requests}
    assert len(found) == len(requests)
    assert found["basic", None] == {TEMPERATURE}
    assert found["basic", 600.0] == {ECC}
    assert POWER in found["basic", 30.0]


def test_a_pattern_without_a_field_and_a_field_of_two_groups_are_named():
    other = WatchInterval("other", 60.0, ("DCGM_FI_NO_*",), "f:9")
    assert list(mismatches(pace_of(30.0, (FAST, SLOW, other)), COUNTERS)) == [
        "f:9: no row of the counters file has a name like 'DCGM_FI_NO_*' of 'other'",
        "DCGM_FI_DEV_GPU_TEMP is in the watch groups 'fast', 'slow'; the first one counts",
    ]


names = st.sampled_from(["*", "DCGM_*", "DCGM_FI_DEV_*", "*TEMP", "DCGM_FI_PROF_*", "[", "none"])
any_group = st.builds(WatchInterval, st.just("g"), st.floats(0.1, 3600), st.tuples(names, names))


@given(st.lists(any_group, max_size=5), st.floats(0.1, 3600))
def test_no_field_is_lost_or_sampled_more_often_than_collections_are_made(groups, default):
    pace = pace_of(default, groups)
    wanted = wanted_at(pace, COUNTERS)
    assert [field.id for field in wanted] == [field.id for field in COUNTERS.wanted]
    assert all(field.interval is None or field.interval > pace.collection for field in wanted)
