"""Every call of libdcgm with every status that was seen: what is lost, what is reported, and that it comes back.

A call about one device or field costs that device or field. A call about the whole session costs the source, with a
reason, until it succeeds again.
"""

from itertools import product

import pytest

from exporter.node.dcgm.native.library import SIGNATURES
from exporter.node.dcgm.native.reasons import BY_STATUS, DcgmReason
from exporter.node.dcgm.native.status_scope import OF_A_FIELD, OF_A_GPU, OF_THE_ENGINE
from exporter.node.devices.counters.computed_metrics import P2P_STATUS, READ_BY_CALLS
from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import EngineFixture, document, gpu_spec, instance_spec, samples, uuid_of, wanted

pytestmark = pytest.mark.slow  # there are more than a thousand of them

STATUSES = (
    -1, -3, -6, -7, -8, -10, -11, -12, -13, -14, -15, -16, -17, -18, -19, -20, -21, -22, -24, -25, -26, -29, -31, -32,
    -33, -34, -35, -36, -37, -38, -45, -46, -54, -56, -57, -67,
)  # fmt: skip
"""Of dcgm_structs.h those that an engine can answer with."""
PROFILING_ONLY = frozenset({-38})
"""The later half of the fields is left out: these cannot be measured at the same time."""
FINAL = frozenset({-6, -13, -22, -32, -36})
"""Not tried again before the engine restarts."""
FINAL_OF_FIELD_GROUPS = FINAL | {-1}
"""Likewise: the engine does not know the field."""
OF_ONE_DEVICE = ("dcgmGroupAddEntity", "dcgmWatchFields", "dcgmEntitiesGetLatestValues")
COSTS_NOTHING = (
    "dcgmShutdown",
    "dcgmDisconnect",
    "dcgmHostengineVersionInfo",
    "dcgmGetGpuChipArchitecture",
    "dcgmGroupDestroy",
    "dcgmFieldGroupDestroy",
    "dcgmUnwatchFields",
    "dcgmStopEmbedded",
)
"""Their failure takes no value away: they describe, or they clean up."""
COSTS_MIG = "dcgmGetGpuInstanceHierarchy"
COSTS_LINKS = "dcgmGetNvLinkLinkStatus"
COSTS_COMPONENTS = ("dcgmGetEntityGroupEntities", "dcgmGetCpuHierarchy", "dcgmGetCpuHierarchy_v2")
"""See test_component_statuses.py."""
COSTS_XIDS, COSTS_P2P = "dcgmGetValuesSince_v2", "dcgmGetNvLinkP2PStatus"
OTHER_CONNECTIONS = ("dcgmStartEmbedded", "dcgmConnect_v3")
COSTS_ONE_THING = (*COSTS_NOTHING, COSTS_MIG, COSTS_LINKS, COSTS_XIDS, COSTS_P2P, *OTHER_CONNECTIONS, *COSTS_COMPONENTS)
COSTS_ALL = tuple(name for name in SIGNATURES if name not in COSTS_ONE_THING)
FIELDS = (150, 155, 252, 1004)
FAULT_AT, LATER, RESTARTED = 10.0, 2000.0, 4000.0
MIG = uuid_of(2)
INSTANCE = f"{MIG}/1"


@pytest.fixture
def engine_with(tmp_path):
    """Makes an engine of two GPUs and a MIG-enabled one in which a call fails for a minute, and restarts in the end."""
    engines = []

    def make(function, status, at=FAULT_AT, **about):
        fault = {"event": "call", "function": function, "status": status, "at": at, "for": 60.0, **about}
        restart = {"event": "restart", "at": RESTARTED}
        gpus = (gpu_spec(0), gpu_spec(1), gpu_spec(2, mig=True, instances=[instance_spec(1), instance_spec(2)]))
        engines.append(EngineFixture(tmp_path, document(*gpus, events=[fault, restart])))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def read_at(engine, source, t):
    engine.at(t)
    return source.read()


def all_values(engine, source, t):
    """Every value at that time, read twice: profiling fields are blank at first."""
    read_at(engine, source, t)
    return samples(read_at(engine, source, t + 2.0))


def of_device(values, address):
    uuid, _, gi = address.partition("/")
    return {key for key in values if key[0] == uuid and (not gi or key[1] == int(gi))}


def assert_comes_back(engine, source, before, *, again):
    """Assert that every value is back: after the fault if the call is made `again`, and after the engine's restart."""
    engine.at(LATER)
    if again:
        assert all_values(engine, source, LATER) == before
    assert all_values(engine, source, RESTARTED + 1.0) == before


def reason_of(source):
    with pytest.raises(SourceError) as caught:
        source.read()
    return caught.value.reason


def not_of_the_engine(statuses):
    return [status for status in statuses if status not in OF_THE_ENGINE]


@pytest.mark.parametrize(
    ("function", "address"),
    [("dcgmGetGpuStatus", uuid_of(1)), *product(OF_ONE_DEVICE, (uuid_of(1), INSTANCE))],
)
@pytest.mark.parametrize("status", not_of_the_engine(STATUSES))
def test_a_call_about_one_device_costs_that_device(engine_with, function, status, address):
    engine = engine_with(function, status, device=address)
    source = engine.source(*FIELDS)
    before = all_values(engine, source, 0.0)
    lost = of_device(before, address)
    if function in ("dcgmGroupAddEntity", "dcgmWatchFields"):  # they are called when the source opens
        source = engine.source(*FIELDS)
    read_at(engine, source, FAULT_AT)
    readings = read_at(engine, source, FAULT_AT + 2.0)
    assert samples(readings) == {key: value for key, value in before.items() if key not in lost}
    is_down = address == uuid_of(1) and (status not in OF_A_FIELD or function == "dcgmGetGpuStatus")
    assert readings.down == ((address,) if is_down else ())
    assert readings.problems != ()
    assert {device.uuid for device in readings.inventory} == {uuid_of(number) for number in range(3)}
    assert_comes_back(engine, source, before, again=status not in FINAL)


@pytest.mark.parametrize("number", [155, 1004], ids=["basic", "profiling"])
@pytest.mark.parametrize("function", ["dcgmFieldGroupCreate", "dcgmWatchFields", "dcgmEntitiesGetLatestValues"])
@pytest.mark.parametrize("status", [s for s in not_of_the_engine(STATUSES) if s not in OF_A_GPU | PROFILING_ONLY])
def test_a_call_about_one_field_costs_that_field(engine_with, function, status, number):
    engine = engine_with(function, status, field=str(number))
    before = all_values(engine, engine.source(*FIELDS), 0.0)
    source = engine.source(*FIELDS)
    read_at(engine, source, FAULT_AT)
    readings = read_at(engine, source, FAULT_AT + 2.0)
    assert samples(readings) == {key: value for key, value in before.items() if key[3] != number}
    assert readings.down == ()
    assert readings.problems != ()
    assert {entry.field for entry in readings.rejections} == {number}
    assert all_values(engine, source, RESTARTED + 1.0) == before


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_of_one_value_costs_that_value(engine_of, status):
    fault = {"event": "samples", "at": FAULT_AT, "for": 60.0, "status": status, "fields": ["155"]}
    gpus = (gpu_spec(0), gpu_spec(1))
    engine = engine_of(document(*gpus, events=[{**fault, "devices": [uuid_of(1)]}]))
    source = engine.source(*FIELDS)
    before = all_values(engine, source, 0.0)
    expected = {key: value for key, value in before.items() if key[::3] != (uuid_of(1), 155)}
    for second in range(40):
        readings = read_at(engine, source, FAULT_AT + second)
        assert samples(readings) == expected
        assert readings.down == ()
    assert all_values(engine, source, LATER) == before


@pytest.mark.parametrize("function", COSTS_ALL)
@pytest.mark.parametrize("status", STATUSES)
def test_a_call_of_the_whole_session_costs_the_source_until_it_succeeds(engine_with, function, status):
    engine = engine_with(function, status)
    before = all_values(engine, engine.source(*FIELDS), 0.0)
    source = engine.source(*FIELDS)
    engine.at(FAULT_AT)
    if costs_the_source(function, status):
        assert reason_of(source) == BY_STATUS.get(status, DcgmReason.ENGINE_ERROR)
    else:
        readings = source.read()
        assert samples(readings) == {}
        assert readings.problems != ()
    final = FINAL_OF_FIELD_GROUPS if function == "dcgmFieldGroupCreate" else FINAL
    assert_comes_back(engine, source, before, again=costs_the_source(function, status) or status not in final)


def costs_the_source(function, status):
    """Whether a call that fails for every device and field fails for the engine."""
    if function in ("dcgmWatchFields", "dcgmEntitiesGetLatestValues", "dcgmGetGpuStatus", "dcgmGroupAddEntity"):
        return status not in OF_A_GPU | OF_A_FIELD
    return function != "dcgmFieldGroupCreate" or status not in OF_A_GPU | OF_A_FIELD


@pytest.mark.parametrize("function", COSTS_NOTHING)
@pytest.mark.parametrize("status", STATUSES)
def test_a_call_that_only_describes_or_cleans_up_costs_no_value(engine_with, function, status):
    engine = engine_with(function, status, at=0.0)
    source = engine.source(*FIELDS)
    values = all_values(engine, source, 0.0)
    source.close()
    assert len(of_device(values, uuid_of(0))) == len(FIELDS)
    assert all_values(engine, source, RESTARTED + 1.0) == values


@pytest.mark.parametrize("status", STATUSES)
def test_without_the_hierarchy_gpus_are_read_without_their_mig_devices(engine_with, status):
    engine = engine_with(COSTS_MIG, status)
    before = all_values(engine, engine.source(*FIELDS), 0.0)
    source = engine.source(*FIELDS)
    engine.at(FAULT_AT)
    if status in OF_THE_ENGINE:
        assert reason_of(source) == BY_STATUS[status]
    else:
        readings = source.read()
        assert {key[1] for key in samples(readings)} == {-1}
        assert [reason for reason, _ in readings.problems] == ["hierarchy_unreadable"]
    assert_comes_back(engine, source, before, again=True)


NO_LINK_STATES = frozenset({-6, -12, -20})
"""The library or the engine does not list links in the way that was asked for: so there are none, without a problem."""


@pytest.mark.parametrize("status", STATUSES)
def test_without_a_list_of_links_everything_else_is_read(tmp_path, status):
    fault = {"event": "call", "function": COSTS_LINKS, "status": status, "at": FAULT_AT, "for": 60.0}
    link = {"number": 0, "state": "up", "fields": {"1525": 7}}
    gpu = gpu_spec(0, nvlinks=[link])
    restart = {"event": "restart", "at": RESTARTED}
    engine = EngineFixture(tmp_path, document(gpu, events=[fault, restart], versions={"dcgm": "4.6.0"}))
    source = engine.source(150, 1525)
    engine.at(FAULT_AT)
    if status in OF_THE_ENGINE - NO_LINK_STATES:
        assert reason_of(source) == BY_STATUS[status]
    else:
        readings = source.read()
        assert (len(samples(readings)), readings.links) == (1, ())
        reasons = [reason for reason, _ in readings.problems]
        assert reasons == ([] if status in NO_LINK_STATES else ["links_unreadable"])
    if status not in NO_LINK_STATES:
        assert len(read_at(engine, source, LATER).links) == 1
    read_at(engine, source, RESTARTED + 1.0)
    assert len(read_at(engine, source, RESTARTED + 3.0).links) == 1
    engine.close()


NO_SUCH_CALL = frozenset({-12, -20})


@pytest.mark.parametrize("status", STATUSES)
def test_without_what_the_engine_has_stored_only_the_last_xid_is_reported(tmp_path, status):
    xids = [{"event": "xid", "device": uuid_of(0), "at": at, "xid": 31} for at in (11.0, 12.0)]
    fault = {"event": "call", "function": COSTS_XIDS, "status": status, "at": FAULT_AT, "for": 60.0}
    engine = EngineFixture(tmp_path, document(gpu_spec(0), events=[*xids, fault]))
    source = engine.source(150, 230)
    source.read()
    engine.at(FAULT_AT + 5.0)
    if status in OF_THE_ENGINE - NO_SUCH_CALL:
        assert reason_of(source) == BY_STATUS[status]
        assert len(read_at(engine, source, LATER).xids) == 2
    else:
        readings = source.read()
        assert len(samples(readings)) == 2
        assert len(readings.xids) == 1
        assert [reason for reason, _ in readings.problems] == ["xids_incomplete"]
    engine.close()


@pytest.mark.parametrize("status", STATUSES)
def test_without_peer_to_peer_statuses_everything_else_is_read(tmp_path, status):
    fault = {"event": "call", "function": COSTS_P2P, "status": status, "at": FAULT_AT, "for": 60.0}
    engine = EngineFixture(tmp_path, document(gpu_spec(0), gpu_spec(1), events=[fault]))
    source = engine.source(150)
    source.want((*wanted(150), READ_BY_CALLS[P2P_STATUS]))
    assert len(source.read().p2p) == 2
    engine.at(FAULT_AT)
    if status in OF_THE_ENGINE - NO_SUCH_CALL:
        assert reason_of(source) == BY_STATUS[status]
    else:
        readings = source.read()
        assert (len(samples(readings)), readings.p2p) == (2, ())
        assert [reason for reason, _ in readings.problems] == ["p2p_unreadable"]
    assert len(read_at(engine, source, LATER).p2p) == 2
    engine.close()


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize(("function", "remote"), list(zip(OTHER_CONNECTIONS, (None, "vsock://2"), strict=True)))
def test_an_engine_in_this_process_or_another_virtual_machine_is_tried_again(engine_with, function, remote, status):
    engine = engine_with(function, status)
    source = engine.source(*FIELDS, remote=remote)
    engine.at(FAULT_AT)
    assert reason_of(source) == BY_STATUS.get(status, DcgmReason.ENGINE_ERROR)
    assert len(of_device(all_values(engine, source, LATER), uuid_of(0))) == len(FIELDS)


def test_every_call_is_in_one_of_these_tests():
    assert {*COSTS_ALL, *COSTS_ONE_THING} == set(SIGNATURES)
