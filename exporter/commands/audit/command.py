"""`gpugauge audit FILE…`: who had which device when, GPU-hours and gaps; with `--verify`, whether the lines fit."""

from exporter.commands.audit import verify
from exporter.commands.audit.intervals import Interval
from exporter.commands.audit.reading import distinct, read_lines
from exporter.commands.audit.record import AuditRecord, audit_record
from exporter.commands.audit.usage import audit_usage
from exporter.commands.audit.writing import as_csv, as_json, as_text
from exporter.config import Arguments, ConfigError


def run(arguments: Arguments) -> tuple[str, bool]:
    """Read the files. Returns what to print, and whether nothing is wrong. Raises ConfigError."""
    if not arguments.operands:
        raise ConfigError("audit needs files of audit logs; see gpugauge audit --help")
    if arguments.json and arguments.csv:
        raise ConfigError("--json and --csv cannot both be written")
    lines = read_lines(arguments.operands)
    if not any(each.line is not None for each in lines):
        raise ConfigError(f"{', '.join(arguments.operands)}: there is no line of an audit log")
    if arguments.verify:
        found = verify.verify(lines)
        write_found = verify.as_json if arguments.json else verify.as_text
        return write_found(found), not found.findings
    record = audit_record(distinct(lines).values())
    if arguments.gpu and not any(span.key.device.uuid == arguments.gpu for span in record.spans):
        raise ConfigError(f"--gpu: no line has an allocation of a GPU {arguments.gpu!r}")
    usage = audit_usage(record, _period(arguments, record), arguments.by, arguments.gpu)
    write = as_json if arguments.json else as_csv if arguments.csv else as_text
    return write(usage, arguments.by), True


def _period(arguments: Arguments, record: AuditRecord) -> Interval:
    """The period that is asked for, or that of the files as far as none is."""
    first, last = record.whole
    since, until = getattr(arguments, "from"), arguments.to
    begin, end = first if since is None else since, last if until is None else until
    if begin > end:
        raise ConfigError("--from is later than --to, or than everything that the files have")
    return begin, end
