"""The examination as a whole: deadlines, defects, order, verdict and the processes that load libraries."""

import errno
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path, PosixPath

import msgspec
import pytest

import exporter.node.doctor
from exporter.node.doctor.deadline import within
from exporter.node.doctor.examination import NativeLibrary
from exporter.node.doctor.examine import CHECKS, judged
from exporter.node.doctor.finding import Check, failed, note, ok
from exporter.node.doctor.gather import PROBE, gather
from exporter.node.doctor.node_root import NodeRoot
from exporter.node.doctor.reasons import DoctorReason
from exporter.node.simulation.document import CallFault
from tests.exporter.node.doctor.nodes import config, examination, gpu, read

ONE_GPU = (read(gpu()),)
FIRST = Check("first", "one", lambda _: [ok("fine")])


def report(node, *checks, attempts=ONE_GPU):
    return judged(examination(node, attempts=attempts), 60.0, (FIRST, *checks))


def test_a_check_that_hangs_is_reported_and_not_waited_for(node):
    ended = threading.Event()
    hanging = Check("second", "two", lambda _: [ok(str(ended.wait(60)))])
    # It alone: on a busy machine any other check might need as long.
    found = judged(examination(node), 0.05, (hanging,))
    ended.set()
    assert [each.finding.reason for each in found.failures] == [DoctorReason.CHECK_TIMED_OUT]
    assert found.failures[0].finding.detail == "no answer within 0.05 s"


def test_a_check_with_a_defect_costs_its_own_findings_alone(node):
    def defect(_):
        raise ValueError("odd")

    found = report(node, Check("second", "two", defect), Check("third", "three", lambda _: [ok("fine")]))
    assert [str(each.finding.status) for each in found.results] == ["ok", "failed", "ok"]
    assert found.failures[0].finding == failed(DoctorReason.CHECK_FAILED, "ValueError: odd")


def test_what_a_function_returns_or_raises_comes_through_the_deadline():
    assert within(60, lambda: None) is None
    with pytest.raises(ValueError, match="odd"):
        within(60, lambda: int("odd"))


def test_the_verdict_and_the_next_step_are_those_of_the_first_failure(node):
    broken = [
        Check("second", "two", lambda _: [note("n"), failed(DoctorReason.NOUVEAU_BOUND, "a")]),
        Check("third", "three", lambda _: [failed(DoctorReason.PORT_IN_USE, "b")]),
    ]
    found = report(node, *broken)
    assert not found.works
    assert found.verdict == f"{DoctorReason.NOUVEAU_BOUND.meaning} (two: a)"
    more = "Then run this again: another check failed too, which may or may not follow from it."
    assert found.next_step == f"{DoctorReason.NOUVEAU_BOUND.remedy} {more}"
    assert report(node, broken[0]).next_step == DoctorReason.NOUVEAU_BOUND.remedy


def test_notes_are_no_failures(node):
    found = report(node, Check("second", "two", lambda _: [note("n", DoctorReason.NOT_ROOT)]))
    assert found.works
    assert (found.verdict, found.next_step) == (
        "Nothing is missing: gpugauge node works here with these flags.",
        "None.",
    )


def test_where_no_source_was_read_the_verdict_says_so(node):
    found = report(node, attempts=())
    assert found.works
    assert found.verdict == "Nothing is missing of what could be examined, but no source was read."


def test_checks_come_in_the_order_of_dependency():
    areas = list(dict.fromkeys(check.area for check in CHECKS))
    assert areas == [
        *("driver", "device files", "libraries", "privileges"),
        *("sources", "configuration", "kubernetes", "audit log", "serving"),
    ]
    assert len({(check.area, check.name) for check in CHECKS}) == len(CHECKS)


def test_every_reason_can_be_found():
    package = Path(exporter.node.doctor.__path__[0])
    text = "".join(path.read_text() for path in package.glob("*.py") if path.name != "reasons.py")
    assert {reason.name for reason in DoctorReason} == set(re.findall(r"DoctorReason\.([A-Z_]+)", text))


def test_a_node_without_files_is_examined_all_the_same(node, tmp_path):
    found = judged(replace(examination(node, "--kubernetes"), root=NodeRoot(tmp_path / "missing")), 60.0)
    assert not [each for each in found.results if each.finding.reason is DoctorReason.CHECK_FAILED]


@pytest.mark.process
def test_a_library_that_hangs_is_reported_and_costs_itself_alone(node):
    node.libraries()
    node.scenario("whole", CallFault("nvmlInitWithFlags", hang=True), listens=True)
    access = replace(node.access(), library_seconds=2.0)
    found = gather(config("-r", node.engine.address, "--kubernetes"), access)
    assert found.nvml.reason == "check_timed_out"
    assert len(found.readings.inventory) == 8


@pytest.mark.process
def test_a_library_that_ends_its_process_is_reported(node):
    node.libraries()
    node.scenario("whole", CallFault("nvmlInitWithFlags", crash=True))
    found = gather(config("-r", node.engine.address), node.access())
    assert (found.nvml.reason, found.dcgm.reason) == ("check_failed", "")
    assert "ended with status -6" in found.nvml.message


@pytest.mark.process
def test_a_search_for_engines_that_hangs_finds_none_and_a_program_that_cannot_be_started_is_reported(node):
    ended = threading.Event()
    access = replace(node.access(), listening=lambda: str(ended.wait(60)), check_seconds=0.5, prefix=("/nowhere",))
    found = gather(config("--source", "dcgm"), access)
    ended.set()
    assert found.engine is None
    assert (found.dcgm.reason, found.nvml.reason) == ("check_failed", "check_failed")
    assert [(each.candidate, str(each.reason)) for each in found.attempts] == [("embedded engine", "crashed")]


STRUCTS = """
import ctypes
dcgmLib = None
class c_dcgmGroupEntityPair_t(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_uint32), ("id", ctypes.c_uint32))
class c_dcgmFieldValue_v2(ctypes.Structure):
    _fields_ = (("value", ctypes.c_char * 5000),)
"""


@pytest.mark.process
def test_record_sizes_are_compared_with_the_bindings_that_are_there(node):
    for name, text in {"dcgm_structs": STRUCTS, "dcgm_agent": "", "dcgm_errors": ""}.items():
        node.file(f"/bindings/{name}.py", text)
    node.libraries()
    node.scenario("whole")
    words = (
        *node.access().prefix,
        *PROBE,
        "dcgm",
        str(node.folder / "lib/libdcgm.so.4"),
        str(node.folder / "bindings"),
    )
    done = subprocess.run(words, capture_output=True, check=True)
    found = msgspec.json.decode(done.stdout, type=NativeLibrary)
    assert (found.records, found.compared) == ("c_dcgmFieldValue_v2 has 5000 bytes, not 4128", 2)


def test_the_examination_loads_no_rich_and_no_http_server():
    code = "import sys, exporter.node.doctor.examine; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"rich", "uvicorn", "kubernetes"} & set(loaded)


class HangingPath(PosixPath):
    """A path on a file system that does not answer until the test is over."""

    ended = threading.Event()

    def stat(self, **_):
        self.ended.wait(60)
        raise OSError(errno.EIO, "it hung")


def test_a_counters_file_and_a_kubelets_socket_that_hang_are_reported(node):
    access = replace(node.access(), root=NodeRoot(HangingPath(node.folder)), check_seconds=0.2, prefix=("/nowhere",))
    asked = replace(config("--source", "simulated", "--kubernetes"), counters_file=HangingPath("/counters.csv"))
    found = gather(asked, access)
    HangingPath.ended.set()
    assert str(found.counters) == "counters file /counters.csv cannot be read: no answer within 0.2 s"
    assert found.kubelet.reason == "timeout"


@pytest.mark.process
def test_the_counters_that_are_examined_are_those_that_the_exporter_would_use(node, tmp_path):
    field = "{name: DCGM_FI_DEV_GPU_TEMP, prometheusType: gauge}"
    (tmp_path / "config.yaml").write_text(f"version: 1\nmetrics: {{fields: [{field}]}}\n")
    access = replace(node.access(), prefix=("/nowhere",))
    found = gather(config("--source", "simulated", "--config-file", str(tmp_path / "config.yaml")), access)
    assert [row.name for row in found.counters.counters.rows] == ["DCGM_FI_DEV_GPU_TEMP"]
    found = gather(config("--source", "simulated", "-m", "gpu:counters"), access)
    assert "ConfigMap gpu/counters cannot be read: no API server is known" in str(found.counters)
