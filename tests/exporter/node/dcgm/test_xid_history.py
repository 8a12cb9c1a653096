"""Every XID is reported once: a repeated code, several in one interval, of any entity, whatever happens meanwhile."""

import pytest

from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import document, gpu_spec, instance_spec, uuid_of

SINCE = "dcgmGetValuesSince_v2"


def xid(at, code, where="", number=0):
    return {"event": "xid", "device": uuid_of(number) + where, "at": at, "xid": code}


def fault(at, status, until=None):
    return {"event": "call", "function": SINCE, "at": at, "status": status, "for": (until or 1e6) - at}


class Reports:
    """Reads a source, and gives its reports with the time of the scenario."""

    def __init__(self, engine, *fields):
        self.engine, self.source = engine, engine.source(*(fields or (150, 230)))

    def at(self, t):
        self.engine.at(t)
        begin = self.engine.now - t
        self.readings = self.source.read()
        return [(report.uuid, report.code, round(report.at - begin, 3)) for report in self.readings.xids]


def test_a_repeated_code_and_several_in_one_interval_are_each_reported_once(engine_of):
    events = [xid(5.0, 31), xid(6.0, 31), xid(6.5, 63), xid(8.0, 94, number=1), xid(12.0, 31)]
    reports = Reports(engine_of(document(gpu_spec(), gpu_spec(1), events=events)))
    first, second = uuid_of(0), uuid_of(1)
    assert reports.at(1.0) == []
    assert reports.at(10.0) == [(first, 31, 5.0), (first, 31, 6.0), (first, 63, 6.5), (second, 94, 8.0)]
    assert reports.at(11.0) == []
    assert reports.at(13.0) == [(first, 31, 12.0)]
    assert reports.at(14.0) == []


def test_the_xids_of_a_mig_device_are_reported_for_its_gpu(engine_of):
    gpu = gpu_spec(mig=True, instances=[instance_spec(1), instance_spec(2)])
    events = [xid(5.0, 94, "/1/0"), xid(5.5, 94, "/2"), xid(6.0, 63), xid(7.0, 94, "/1/0")]
    reports = Reports(engine_of(document(gpu, events=events)))
    assert reports.at(1.0) == []
    assert [found[1:] for found in reports.at(6.5)] == [(94, 5.0), (94, 5.5), (63, 6.0)]
    assert [found[1:] for found in reports.at(8.0)] == [(94, 7.0)]
    assert {report.uuid for report in reports.readings.xids} == {uuid_of(0)}


@pytest.mark.parametrize("seen", ["status", "blank", "absent"])
def test_the_xid_of_a_gpu_that_is_lost_with_it_is_reported(engine_of, seen):
    lost = {"event": "lost", "device": uuid_of(0), "at": 5.0, "as": seen}
    events = [xid(4.0, 31, number=1), xid(5.0, 79), lost, xid(12.0, 31, number=1)]
    reports = Reports(engine_of(document(gpu_spec(), gpu_spec(1), events=events)))
    reports.at(1.0)
    found = reports.at(10.0)
    assert reports.readings.down == (uuid_of(0),)
    assert (uuid_of(1), 31, 4.0) in found
    assert ((uuid_of(0), 79, 5.0) in found) is (seen != "absent"), "an engine has forgotten a GPU that it does not list"
    assert len(found) == (1 if seen == "absent" else 2)
    assert reports.at(13.0) == [(uuid_of(1), 31, 12.0)]


def test_the_xids_before_a_mig_reconfiguration_are_reported(engine_of):
    gpu = gpu_spec(mig=True, instances=[instance_spec(1), instance_spec(2)])
    change = {"event": "mig", "device": uuid_of(0), "at": 6.0, "instances": [instance_spec(5)]}
    reports = Reports(engine_of(document(gpu, events=[xid(5.0, 63), change, xid(8.0, 63), xid(9.0, 94, "/5/0")])))
    reports.at(1.0)
    assert [found[1:] for found in reports.at(7.0)] == [(63, 5.0)]
    assert [found[1:] for found in reports.at(10.0)] == [(63, 8.0), (94, 9.0)]


def test_a_storm_is_reported_completely_by_one_request(engine_of):
    events = [xid(5.0 + n / 1000, 31) for n in range(2000)]
    reports = Reports(engine_of(document(gpu_spec(), events=events)))
    reports.at(1.0)
    assert len(reports.at(10.0)) == 2000


def test_the_engine_is_asked_for_stored_values_only_when_there_is_a_new_one(engine_of):
    """The fault would show: of every read that asks, none but the connection's end survives."""
    engine = engine_of(document(gpu_spec(), events=[xid(5.0, 31), fault(6.0, -21)]))
    reports = Reports(engine)
    assert len(reports.at(5.5)) == 1
    for t in (7.0, 8.0, 9.0):
        assert reports.at(t) == []


def test_a_connection_that_is_lost_while_the_engine_is_asked_costs_no_xid(engine_of):
    engine = engine_of(document(gpu_spec(), events=[xid(5.0, 31), xid(5.5, 31), fault(4.0, -21, until=7.0)]))
    reports = Reports(engine)
    reports.at(1.0)
    engine.at(6.0)
    with pytest.raises(SourceError):
        reports.source.read()
    assert [found[1:] for found in reports.at(20.0)] == [(31, 5.0), (31, 5.5)]


@pytest.mark.parametrize("status", [-3, -6, -20])
def test_where_the_engine_does_not_answer_the_last_xid_is_reported_and_the_problem_said(engine_of, status):
    engine = engine_of(document(gpu_spec(), events=[xid(5.0, 31), xid(6.0, 63), fault(4.0, status, until=8.0)]))
    reports = Reports(engine)
    reports.at(1.0)
    assert reports.readings.problems == ()
    assert [found[1:] for found in reports.at(7.0)] == [(63, 6.0)]
    assert [reason for reason, _ in reports.readings.problems] == ["xids_incomplete"]
    assert reports.at(9.0) == []


def test_a_new_session_reports_what_the_engine_has_stored_with_the_same_times(engine_of):
    engine = engine_of(document(gpu_spec(), events=[xid(5.0, 31), xid(6.0, 31)]))
    first, second = Reports(engine), Reports(engine)
    assert first.at(7.0) == second.at(8.0) != []


def test_xids_are_reported_also_where_other_event_fields_are_watched(engine_of):
    reports = Reports(engine_of(document(gpu_spec(), events=[xid(5.0, 31)])), 6, 230, 150)
    assert [found[1:] for found in reports.at(6.0)] == [(31, 5.0)]


def test_without_the_field_nothing_is_reported(engine_of):
    reports = Reports(engine_of(document(gpu_spec(), events=[xid(5.0, 31)])), 150)
    assert reports.at(6.0) == []


def test_a_blank_is_no_xid(engine_of):
    blank = {"event": "samples", "at": 4.0, "fields": ["230"], "sentinel": "blank"}
    reports = Reports(engine_of(document(gpu_spec(), events=[blank])))
    assert reports.at(6.0) == []
