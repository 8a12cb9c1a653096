"""A reader process that has let go of the GPUs: the reason is its own, and no GPU is opened for ten seconds."""

import msgspec
import pytest

from exporter.node.devices.fields.device_source import SourceChoice
from exporter.node.devices.readings.readings import XidReport
from exporter.node.reader.supervisor import STEADY_SECONDS, Reader
from exporter.node.reader.unbound import MAX_REPORTS, UNBOUND_STATUS
from exporter.source import SourceError
from tests.clock import Clock
from tests.exporter.node.reader.fake_readers import (
    FAKE_PROCESS,
    PATIENT,
    eventually,
    failure,
    gone,
    process_that,
    simulated,
)

pytestmark = pytest.mark.process

PAUSE = 10.0
UNTIL_TOLD = f"""
import sys, threading, time
from pathlib import Path
from exporter.node.devices.readings.readings import XidReport
from exporter.node.reader import unbound
from exporter.node.reader.protocol import ReplyPipe
def wait():
    while not (Path(sys.argv[1]) / "unbind").exists():
        time.sleep(0.01)
    xids = [XidReport("GPU-a", 700 + n, 5.0 + n) for n in range(int((Path(sys.argv[1]) / "unbind").read_text() or 0))]
    unbound.end_process(ReplyPipe(1), xids)
threading.Thread(target=wait, daemon=True).start()
{FAKE_PROCESS}"""
"""The fake reader process, which ends as on an unbind once the file `unbind` is in its folder, with so many XIDs as
that says."""


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def reader(clock, tmp_path):
    reader = Reader(simulated(tmp_path), PATIENT, process_that(UNTIL_TOLD, tmp_path), clock)
    yield reader
    reader.close()


def unbind(reader, folder, xids=0):
    """Let the process end with so many XIDs, and return the failure of the first read after it."""
    (folder / "draft").write_text(str(xids))
    (folder / "draft").rename(folder / "unbind")
    while True:
        try:
            reader.read()
        except SourceError as error:
            (folder / "unbind").unlink()
            return error


def test_after_an_unbind_no_process_is_started_for_ten_seconds(reader, clock, tmp_path):
    eventually(reader.read)
    assert unbind(reader, tmp_path).reason == "driver_unbound"
    assert reader.pid is None
    clock.now += PAUSE - 0.5
    assert failure(reader.read).reason == "driver_unbound"
    assert (reader.pid, reader.restarts) == (None, 0)
    clock.now += 0.5
    assert eventually(reader.read).source == "simulated"


def test_gpus_that_are_unbound_one_after_the_other_each_cost_the_same_pause(reader, clock, tmp_path):
    for _ in range(4):
        eventually(reader.read)
        assert unbind(reader, tmp_path).reason == "driver_unbound"
        clock.now += PAUSE
    assert eventually(reader.read).source == "simulated"
    assert clock.now < 1000 + STEADY_SECONDS


def test_an_unbind_while_a_call_hangs_ends_the_process_too(reader, clock, tmp_path):
    eventually(reader.read)
    (tmp_path / "hang").touch()
    assert unbind(reader, tmp_path).reason == "driver_unbound"
    (tmp_path / "hang").unlink()
    clock.now += PAUSE
    assert eventually(reader.read).source == "simulated"


@pytest.mark.parametrize("hangs", [False, True])
def test_the_xids_since_the_last_reply_are_in_the_first_readings_after_it(reader, clock, tmp_path, hangs):
    eventually(reader.read)
    if hangs:
        (tmp_path / "hang").touch()
    assert unbind(reader, tmp_path, xids=2).reason == "driver_unbound"
    (tmp_path / "hang").unlink(missing_ok=True)
    clock.now += PAUSE
    assert eventually(reader.read).xids[:2] == (XidReport("GPU-a", 700, 5.0), XidReport("GPU-a", 701, 6.0))
    assert 700 not in {report.code for report in eventually(reader.read).xids}


def test_the_xids_arrive_when_the_process_ended_while_nothing_was_read(reader, clock, tmp_path):
    eventually(reader.read)
    pid = reader.pid
    (tmp_path / "draft").write_text("1")
    (tmp_path / "draft").rename(tmp_path / "unbind")
    assert gone(pid)
    assert failure(reader.read).reason == "driver_unbound"
    (tmp_path / "unbind").unlink()
    clock.now += PAUSE
    assert eventually(reader.read).xids[0] == XidReport("GPU-a", 700, 5.0)


def test_of_a_storm_the_last_xids_are_handed_over(reader, clock, tmp_path):
    eventually(reader.read)
    assert unbind(reader, tmp_path, xids=MAX_REPORTS + 100).reason == "driver_unbound"
    clock.now += PAUSE
    codes = [report.code for report in eventually(reader.read).xids if report.code >= 700]
    assert codes == list(range(800, 800 + MAX_REPORTS))


def test_an_unbind_says_nothing_against_the_source_that_auto_has_chosen(clock, tmp_path):
    told = process_that("import sys; sys.exit(91)")
    reader = Reader(msgspec.structs.replace(simulated(tmp_path), choice=SourceChoice("nvml")), PATIENT, told, clock)
    assert failure(reader.read).reason == "driver_unbound"
    assert reader._config.choice == SourceChoice("nvml")
    reader.close()


def test_the_status_is_that_of_no_other_end():
    assert UNBOUND_STATUS not in {0, 1, 2}
    assert 0 < UNBOUND_STATUS < 126, "from 126 on a shell has meanings of its own"
