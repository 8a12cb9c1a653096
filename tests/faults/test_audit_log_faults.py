"""Faults of the audit log: none of them costs anything else, and what was observed meanwhile is written afterwards."""

import resource

import pytest

from exporter.backoff import LONGEST_PAUSE
from exporter.node.audit.lines import AllocationStarted, ObservationGap
from tests.exporter.node.audit.checked import allocated, chained, gap_reasons
from tests.exporter.node.audit.days import of_event
from tests.exporter.node.exporter_process import INTERVAL_MS
from tests.faults.fault import fault
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.slow]

INTERVAL = INTERVAL_MS / 1000
GOES_ON = ('gpugauge_source_up{source="dcgm"} 1', "DCGM_FI_DEV_GPU_TEMP > 0")
UNWRITABLE = (
    'gpugauge_source_problem{source="audit_log",reason="unwritable"} 1',
    "gpugauge_audit_write_failures_total > 0",
    *GOES_ON,
)


def is_written(exposed):
    has_problem = exposed.value("gpugauge_source_problem", source="audit_log") is not None
    return not has_problem and exposed.value("gpugauge_audit_last_write_timestamp_seconds") is not None


@fault(
    name="The audit log cannot be written, because its folder is not there or is read-only",
    shows=UNWRITABLE,
    absent=("gpugauge_audit_last_write_timestamp_seconds",),
    pause=LONGEST_PAUSE,
    collections=2,
)
def test_an_audit_log_without_its_folder_is_written_once_that_is_there(exporter, tmp_path, row):
    file = tmp_path / "folder" / "audit.jsonl"
    node = exporter("dcgm", "--audit-log", str(file))
    row.wait_until_shown(node.scraper.get)
    file.parent.mkdir()
    row.wait_until_recovered(node.scraper.get, is_written, INTERVAL)
    lines = chained(file.read_bytes())
    assert of_event(lines, AllocationStarted)
    assert gap_reasons(lines) <= {"devices"}


@fault(name="The disk of the audit log is full", shows=UNWRITABLE, pause=LONGEST_PAUSE, collections=2)
def test_a_full_disk_costs_the_exposition_nothing_and_no_allocation(exporter, tmp_path, row):
    file = tmp_path / "audit.jsonl"
    node = exporter("dcgm", "--audit-log", str(file))
    before = until(lambda: allocated(file))
    room = file.stat().st_size + 100
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    node.kubelet.stop()  # a gap is written
    row.wait_until_shown(node.scraper.get)
    assert file.stat().st_size <= room
    node.kubelet.start()
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    row.wait_until_recovered(node.scraper.get, is_written, INTERVAL)
    until(lambda: any(gap.until for gap in of_event(chained(file.read_bytes()), ObservationGap)[-1:]))
    assert allocated(file) == before
    assert gap_reasons(chained(file.read_bytes())) <= {"devices", "kubelet"}


@fault(
    name="What `--audit-log` names is no audit log",
    shows=('gpugauge_source_problem{source="audit_log",reason="unreadable"} 1', *GOES_ON),
    absent=("gpugauge_audit_last_write_timestamp_seconds",),
    pause=LONGEST_PAUSE,
    collections=2,
)
def test_a_file_of_others_is_left_as_it_is_until_it_is_moved_away(exporter, tmp_path, row):
    file = tmp_path / "audit.jsonl"
    file.write_text("somebody's notes\n")
    node = exporter("dcgm", "--audit-log", str(file))
    row.wait_until_shown(node.scraper.get)
    file.rename(tmp_path / "notes")
    row.wait_until_recovered(node.scraper.get, is_written, INTERVAL)
    assert (tmp_path / "notes").read_text() == "somebody's notes\n"
