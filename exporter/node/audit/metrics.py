"""The metric families of the audit log."""

from exporter.metric import Family, Kind, metric

LAST_WRITE = metric(
    "gpugauge_audit_last_write_timestamp_seconds",
    Kind.GAUGE,
    "When a line was written to the audit log last: at the latest every two minutes. Absent before the first one.",
    "node",
    optional=("node",),
)
WRITE_FAILURES = metric(
    "gpugauge_audit_write_failures_total",
    Kind.COUNTER,
    "Attempts to write the audit log that failed.",
    "node",
    optional=("node",),
)
METRICS = (LAST_WRITE, WRITE_FAILURES)


def audit_families(wrote_at: float | None, failures: int, node: str) -> tuple[Family, ...]:
    """Make the families; `wrote_at` is in Unix seconds, None before the first line. `node` is the node's name."""
    last = [] if wrote_at is None else [LAST_WRITE.sample(wrote_at, node=node)]
    return Family(LAST_WRITE, last), Family(WRITE_FAILURES, [WRITE_FAILURES.sample(failures, node=node)])
