"""Runs `gpugauge compare`: reads both responses, or a response and what uses its metrics."""

from exporter.commands.compare.comparing import ResponseComparison
from exporter.commands.compare.response import read
from exporter.commands.compare.writing import as_json, as_text
from exporter.config import Arguments, ConfigError

_RESPONSES = 2


def run(arguments: Arguments) -> tuple[str, bool]:
    """Return what to print, and whether nothing needs a change. Raises ConfigError."""
    if len(arguments.operands) != _RESPONSES:
        raise ConfigError("compare needs OLD and NEW, each an address or a file; see gpugauge compare --help")
    old, new = map(read, arguments.operands)
    findings = ResponseComparison(old, new).findings()
    write = as_json if arguments.json else as_text
    return write(old, new, findings), all(each.harmless for each in findings)
