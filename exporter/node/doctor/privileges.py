"""Checks of what the process may do: its user, and the capability that profiling can need."""

import re
from collections.abc import Iterable

from exporter.node.doctor.examination import Examination
from exporter.node.doctor.finding import Check, Finding, note, ok, skipped
from exporter.node.doctor.reasons import DoctorReason

STATUS = "/proc/self/status"
_SYS_ADMIN = 21
"""CAP_SYS_ADMIN (linux/capability.h)."""


def _user(examination: Examination) -> Iterable[Finding]:
    found = re.search(r"^Uid:\s+\d+\s+(\d+)", examination.root.text(STATUS), re.MULTILINE)
    if found is None:
        return [skipped(f"{STATUS} cannot be read")]
    detail = f"user {found[1]}"
    return [ok(detail) if found[1] == "0" else note(detail, DoctorReason.NOT_ROOT)]


def _sys_admin(examination: Examination) -> Iterable[Finding]:
    found = re.search(r"^CapEff:\s+([0-9a-f]+)", examination.root.text(STATUS), re.MULTILINE)
    if found is None:
        return [skipped(f"{STATUS} cannot be read")]
    if int(found[1], 16) >> _SYS_ADMIN & 1:
        return [ok("SYS_ADMIN is there")]
    chosen = examination.chosen
    if chosen is not None and chosen.candidate != "embedded engine":
        return [skipped(f"SYS_ADMIN is not there, and {chosen.candidate} does not need it")]
    return [note("SYS_ADMIN is not there", DoctorReason.SYS_ADMIN_MISSING)]


CHECKS = (
    Check("privileges", "user", _user),
    Check("privileges", "profiling", _sys_admin),
)
