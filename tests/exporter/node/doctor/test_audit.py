"""The check of the audit log says whether it could be written, and writes nothing."""

import pytest

from exporter.node.audit.reasons import AuditReason
from exporter.node.doctor import audit
from tests.exporter.node.doctor.nodes import examination, finding, findings

FILE = "/var/log/gpugauge/audit.jsonl"
LOG = ("--kubernetes", "--audit-log", FILE)


def checked(node, *words):
    return finding(audit, "file", examination(node, *(words or LOG)))


def test_without_an_audit_log_there_is_no_finding(node):
    assert findings(audit, "file", examination(node)) == []


def test_standard_output_needs_nothing(node):
    assert checked(node, "--kubernetes", "--audit-log=-") == ("ok", None, "standard output")


def test_a_folder_that_is_not_there_is_named(node):
    status, reason, detail = checked(node)
    assert (status, reason) == ("failed", AuditReason.UNWRITABLE)
    assert FILE in detail


def test_a_file_that_can_be_made_or_goes_on_is_fine_and_stays_as_it_is(node):
    node.file("/var/log/gpugauge/other")
    assert checked(node) == ("ok", None, f"{FILE} can be made")
    node.file(FILE, '{"event":"begin"}\n')
    assert checked(node) == ("ok", None, f"{FILE} can be written")
    assert (node.folder / FILE.lstrip("/")).read_text() == '{"event":"begin"}\n'


@pytest.mark.parametrize("path", [FILE, f"{FILE}/x"])
def test_what_is_no_audit_log_is_a_failure(node, path):
    node.file(path, "port: 9400\n")
    assert checked(node)[:2] == ("failed", AuditReason.UNREADABLE)
