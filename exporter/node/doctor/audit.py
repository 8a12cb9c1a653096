"""Checks of the audit log: whether it could be written. Nothing where none is configured."""

import os
from collections.abc import Iterable

from exporter.node.audit.log_file import BEGINNING
from exporter.node.audit.reasons import AuditReason
from exporter.node.doctor.examination import Examination
from exporter.node.doctor.finding import Check, Finding, failed, ok


def _audit_log(examination: Examination) -> Iterable[Finding]:
    audit = examination.config.audit
    if audit is None:
        return []
    if audit.file is None:
        return [ok("standard output")]
    name, path = str(audit.file), examination.root.path(str(audit.file))
    if not path.exists():
        if os.access(path.parent, os.W_OK | os.X_OK):
            return [ok(f"{name} can be made")]
        return [failed(AuditReason.UNWRITABLE, f"{name}: its folder is not there or may not be written to")]
    if not path.is_file():
        return [failed(AuditReason.UNREADABLE, f"{name} is no file")]
    if not os.access(path, os.R_OK | os.W_OK):
        return [failed(AuditReason.UNWRITABLE, f"{name} may not be read and written")]
    beginning = examination.root.content(name)[: len(BEGINNING)]
    if not BEGINNING.startswith(beginning):
        return [failed(AuditReason.UNREADABLE, f"{name} has other lines than those of an audit log")]
    return [ok(f"{name} can be written")]


CHECKS = (Check("audit log", "file", _audit_log),)
