"""The flags of the audit log: where the node exporter writes it, and what the command `audit` reads of it."""

from exporter.flags.flag import Flag
from exporter.flags.values import BOOLEAN, COUNT, NAMES, TIME, choice, text_value

AUDIT_LOG = (
    Flag(
        "audit-log",
        text_value("FILE|-"),
        "file to which a line is added for each allocation that begins or ends, or - for standard output; its folder "
        "must exist",
        variable="GPUGAUGE_AUDIT_LOG",
    ),
    Flag(
        "audit-log-maxsize",
        COUNT,
        "MiB after which the file is renamed and a new one begun, at least 1",
        variable="GPUGAUGE_AUDIT_LOG_MAXSIZE",
        default="16",
    ),
    Flag(
        "audit-log-maxbackup",
        COUNT,
        "how many renamed files are kept; 0 keeps all of them",
        variable="GPUGAUGE_AUDIT_LOG_MAXBACKUP",
        default="20",
    ),
    Flag(
        "audit-annotations",
        NAMES,
        "annotations of a pod that say who asked for it, written as requested_by; they need pod metadata",
        variable="GPUGAUGE_AUDIT_ANNOTATIONS",
    ),
)
PERIOD = (
    Flag("from", TIME, "begin of the period: 2026-11, 2026-11-30 or 2026-11-30T08:00:00Z; else that of the files"),
    Flag("to", TIME, "end of the period, which does not belong to it; else that of the files"),
    Flag("gpu", text_value("UUID"), "only this GPU and its MIG devices"),
    Flag(
        "by",
        choice("namespace", "workload", "allocation"),
        "what GPU-hours are added up for; allocation lists who had which device from when to when",
        default="workload",
    ),
)
VERIFY = Flag("verify", BOOLEAN, "say whether lines are missing, changed or in another order; exit code 1 if so")
CSV = Flag("csv", BOOLEAN, "write CSV")
