"""Runs `gpugauge compare`: reads both responses, or a response and what uses its metrics."""

from exporter.commands.compare.comparing import ResponseComparison
from exporter.commands.compare.response import read
from exporter.commands.compare.uses import writing as uses_writing
from exporter.commands.compare.uses.judging import UsesJudge
from exporter.commands.compare.uses.passages import passages
from exporter.commands.compare.writing import as_json, as_text
from exporter.config import Arguments, ConfigError

_RESPONSES = 2


def run(arguments: Arguments) -> tuple[str, bool]:
    """Return what to print, and whether nothing needs a change. Raises ConfigError."""
    if arguments.uses:
        return _uses(arguments)
    if len(arguments.operands) != _RESPONSES:
        raise ConfigError("compare needs OLD and NEW, each an address or a file; see gpugauge compare --help")
    old, new = map(read, arguments.operands)
    findings = ResponseComparison(old, new).findings()
    write = as_json if arguments.json else as_text
    return write(old, new, findings), all(each.harmless for each in findings)


def _uses(arguments: Arguments) -> tuple[str, bool]:
    """Judge files. All words but the last are files, too, so that a pattern of the shell can name several."""
    if not arguments.operands:
        raise ConfigError(
            "compare --uses needs NEW, an address or a file, after the files; see gpugauge compare --help"
        )
    files, new = (*arguments.uses, *arguments.operands[:-1]), read(arguments.operands[-1])
    texts = [each for file in files for each in passages(file)]
    uses = UsesJudge(new).judge(texts)
    write = uses_writing.as_json if arguments.json else uses_writing.as_text
    return write(texts, new, uses), not any(each.loses_data for each in uses)
