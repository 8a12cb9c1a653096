"""The dcgm source in a reader process, over the fake library: hangs, crashes and a restart of the engine."""

import os
import signal
import time

import pytest

from exporter.node.devices.counters.counters_file import parse
from exporter.node.reader.supervisor import Reader, ReaderTimings
from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import document, gpu_spec, samples_of_gpu, uuid_of
from tests.exporter.node.scenario_flow import flow_over, series_of
from tests.waiting import until

pytestmark = pytest.mark.process

PATIENT = ReaderTimings(deadline=60.0, opening=60.0, first_pause=0.05, longest_pause=0.1)
SHORT_DEADLINE = ReaderTimings(deadline=1.0, opening=60.0, first_pause=0.05, longest_pause=0.1)
DURING, AFTER = 1500.0, 3000.0
"""Times of the scenario, in seconds. A test jumps between them, however long the reader process needs to start."""


@pytest.fixture
def engine_and_reader(engine_of):
    readers = []

    def make(*events, timings=PATIENT):
        events = [{"at": 1000.0, "for": 1000.0} | event for event in events]
        engine = engine_of(document(gpu_spec(0), events=events), clock=time.time)
        readers.append(Reader(engine.config(150, 155, interval=5.0), timings))
        return engine, readers[-1]

    yield make
    for reader in readers:
        reader.close()


def read_until(engine, reader, condition, seconds=60.0):
    """Read until `condition` is true of a result (readings, or the reason of an error), and return all results."""
    end, results = time.monotonic() + seconds, []
    while time.monotonic() < end:
        engine.tick()
        try:
            results.append(reader.read())
        except SourceError as error:
            results.append(error.reason)
        if condition(results[-1]):
            return results
        time.sleep(0.02)
    raise AssertionError([result for result in results if isinstance(result, str)][-20:])


def answered(result):
    return not isinstance(result, str)


def test_values_come_through_the_pipe(engine_and_reader):
    engine, reader = engine_and_reader()
    assert samples_of_gpu(read_until(engine, reader, answered)[-1]) == {150: 40, 155: 100.5}
    assert reader.name == "dcgm"


@pytest.mark.parametrize(("how", "reason"), [({"hang": True}, "hung"), ({"crash": True}, "crashed")])
def test_after_a_hang_or_an_abort_in_the_library_another_process_reads(engine_and_reader, how, reason):
    fault = {"event": "call", "function": "dcgmEntitiesGetLatestValues"} | how
    engine, reader = engine_and_reader(fault, timings=SHORT_DEADLINE)
    read_until(engine, reader, answered)
    first = reader.pid
    engine.jump(DURING)
    assert reason in read_until(engine, reader, lambda result: result == reason)
    engine.jump(AFTER)
    read_until(engine, reader, answered)
    assert reader.pid != first
    assert reader.restarts >= 1


def test_the_same_process_reads_before_and_after_a_restart_of_the_engine(engine_and_reader):
    engine, reader = engine_and_reader({"event": "restart"})
    read_until(engine, reader, answered)
    first = reader.pid
    engine.jump(DURING)
    read_until(engine, reader, lambda result: result == "connection_lost")
    engine.jump(AFTER)
    read_until(engine, reader, answered)
    assert reader.pid == first


def test_xids_that_another_reader_process_reports_again_are_not_counted_again(engine_of):
    xids = [{"event": "xid", "device": uuid_of(0), "at": at, "xid": 31} for at in (0.0, 0.001)]
    engine = engine_of(document(gpu_spec(0), events=xids), clock=time.time)
    reader = Reader(engine.config(150, 230, interval=5.0), PATIENT)
    flow = flow_over(reader, None, parse("DCGM_FI_DEV_GPU_TEMP, gauge, T.", "f"), lambda: 0.0)

    def series(name):
        engine.tick()
        found = series_of(flow.exposition().text)
        return {dict(pairs)["xid"]: value for (metric, pairs), value in found.items() if metric == name and value}

    try:
        until(lambda: series("gpugauge_xid_errors_total") == {"31": 2})
        times = series("gpugauge_xid_last_timestamp_seconds")
        os.kill(reader.pid, signal.SIGKILL)
        until(lambda: series("gpugauge_xid_errors_total") and reader.restarts == 1)
        assert series("gpugauge_xid_errors_total") == {"31": 2}
        assert series("gpugauge_xid_last_timestamp_seconds") == times
    finally:
        flow.pipeline.close()
