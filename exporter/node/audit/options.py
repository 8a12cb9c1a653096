"""The options of the audit log: where it is written, and what of pods is written with it. No I/O."""

from dataclasses import dataclass
from pathlib import Path

from exporter.config import Arguments, ConfigError

STANDARD_OUTPUT = "-"
"""What names standard output in place of a file."""
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Where the audit log is written."""

    file: Path | None
    """None for standard output."""
    max_bytes: int
    """The size of a file that is rotated."""
    rotated: int
    """How many rotated files are kept, 0 for all."""
    annotations: tuple[str, ...] = ()
    """The annotations of pods that are written with their allocations."""


def audit_options(arguments: Arguments) -> AuditOptions | None:
    """Make the options of values that were checked when they were read; None without a log. Raises ConfigError."""
    if not arguments.audit_log:
        return None
    if not arguments.kubernetes and arguments.source != "simulated":
        raise ConfigError("--audit-log needs --kubernetes: without it no allocations are known")
    file = None if arguments.audit_log == STANDARD_OUTPUT else Path(arguments.audit_log)
    size = max(arguments.audit_log_maxsize, 1) * _MIB
    return AuditOptions(file, size, arguments.audit_log_maxbackup, arguments.audit_annotations)
