"""Begins the audit log that the options name. What writes it is loaded only then: most nodes have none."""

from exporter.node.audit.audit_log import NO_AUDIT_LOG, AuditLog
from exporter.node.audit.options import AuditOptions
from exporter.node.devices.fields.validity import readings_age_limit


def start_audit_log(options: AuditOptions | None, node: str, interval: float) -> AuditLog:
    """Begin the thread that writes; `interval` is between collections, in seconds. Without options there is none."""
    if options is None:
        return NO_AUDIT_LOG
    from exporter.node.audit.opened_output import open_output  # noqa: PLC0415 - see above
    from exporter.node.audit.writer import AuditWriter  # noqa: PLC0415 - see above

    writer = AuditWriter(open_output(options), node, readings_age_limit(interval), options.annotations)
    writer.start()
    return AuditLog(writer, node)
