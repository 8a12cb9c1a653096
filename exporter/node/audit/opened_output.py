"""Opens what the lines of the audit log are written to: a file with its rotated ones, or standard output."""

from exporter.node.audit.log_file import AuditFile
from exporter.node.audit.options import AuditOptions
from exporter.node.audit.output import AuditOutput, AuditStream, standard_output


def open_output(options: AuditOptions) -> AuditOutput:
    """Return the output that the options name."""
    if options.file is None:
        return AuditStream(standard_output())
    return AuditFile(options.file, options.max_bytes, options.rotated)
