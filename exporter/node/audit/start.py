"""Begins the audit log that the options name."""

from exporter.node.audit.audit_log import NO_AUDIT_LOG, AuditLog
from exporter.node.audit.log_file import AuditFile
from exporter.node.audit.options import AuditOptions
from exporter.node.audit.output import AuditOutput, AuditStream, standard_output
from exporter.node.audit.writer import AuditWriter
from exporter.node.devices.fields.validity import readings_age_limit


def start_audit_log(options: AuditOptions | None, node: str, interval: float) -> AuditLog:
    """Begin the thread that writes; `interval` is between collections, in seconds. Without options there is none."""
    if options is None:
        return NO_AUDIT_LOG
    writer = AuditWriter(_output(options), node, readings_age_limit(interval), options.annotations)
    writer.start()
    return AuditLog(writer, node)


def _output(options: AuditOptions) -> AuditOutput:
    if options.file is None:
        return AuditStream(standard_output())
    return AuditFile(options.file, options.max_bytes, options.rotated)
