"""The command line: reads the words and the environment by the rows of `exporter/flags/`, and writes the help.

Flags are spelled as dcgm-exporter's parser, Go's `flag` package, takes them: `-name` and `--name` are the same, a value
follows after `=` or as the next word, and the first word that is no flag ends the flags.
"""

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from exporter import VERSION
from exporter.config import Arguments, ConfigError
from exporter.flags.flag import Command, Flag
from exporter.flags.table import COMMANDS

OTHER_PROGRAM = "dcgm-exporter"
"""Containers that started dcgm-exporter may have this name as their first argument."""
HELP_COLUMNS = 100


class _Given(NamedTuple):
    """A flag on the command line: its row, how it was spelled, and the text of its value."""

    flag: Flag
    spelling: str
    text: str


def parse(argv: Sequence[str], environment: Mapping[str, str]) -> Arguments:
    """Parse the arguments of the chosen command; without a command, `node` is meant.

    A variable is read where its flag is not given. Raises ConfigError with one message, which names the flag or
    variable and the value.
    """
    command, words = _command(argv)
    given, rest = _split(command, words)
    output = _output(command, given)
    values = {} if output else _values(command, given, environment)
    operands, stray = (tuple(rest), []) if command.operands else ((), rest)
    warnings = (*_ignored(command, given, environment), *_ignored_words(stray))
    found = frozenset(_given_names(command, given, environment))
    return Arguments(command=command.name, output=output, operands=operands, warnings=warnings, given=found, **values)


def _command(argv: Sequence[str]) -> tuple[Command, list[str]]:
    words = list(argv)
    if words and words[0].rpartition("/")[2] == OTHER_PROGRAM:
        words = words[1:]
    if not words or words[0].startswith("-"):
        return COMMANDS["node"], words
    if words[0] not in COMMANDS:
        raise ConfigError(f"unknown command {words[0]!r}; there are {', '.join(COMMANDS)}")
    return COMMANDS[words[0]], words[1:]


def _split(command: Command, words: list[str]) -> tuple[list[_Given], list[str]]:
    """Take the flags from the words; the second result are the others. Raises ConfigError.

    Flags come first, except where the command takes operands: there they may follow those, too.
    """
    rows = {name.lstrip("-"): flag for flag in (*command.flags(), *command.ignored) for name in flag.names()}
    given, rest, operands = [], list(words), []
    while rest and (command.operands or _is_flag(rest[0])):
        word = rest.pop(0)
        if word == "--":
            break
        if not _is_flag(word):
            operands.append(word)
            continue
        spelling, has_value, text = word.partition("=")
        flag = rows.get(spelling.removeprefix("-").removeprefix("-"))
        if flag is None:
            raise ConfigError(f"unknown flag {spelling!r}; see gpugauge {command.name} --help")
        if not has_value:
            if not flag.value.boolean and not rest:
                raise ConfigError(f"{spelling} needs a value; see gpugauge {command.name} --help")
            text = "true" if flag.value.boolean else rest.pop(0)
        given.append(_Given(flag, spelling, text))
    return given, [*operands, *rest]


def _is_flag(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _values(command: Command, given: Sequence[_Given], environment: Mapping[str, str]) -> dict[str, Any]:
    values = {}
    for flag in command.flags():
        texts = [(each.spelling, each.text) for each in given if each.flag == flag]
        if not texts and environment.get(flag.variable):
            texts = [(flag.variable, environment[flag.variable])]
        read = [_read(flag, *text) for text in texts or [("default", flag.default)]]
        values[flag.name.replace("-", "_")] = sum(read, ()) if flag.value.adds_up else read[-1]
    return values


def _given_names(command: Command, given: Sequence[_Given], environment: Mapping[str, str]) -> Iterator[str]:
    """The names of the flags that have a value from the command line or the environment."""
    spelled = {each.flag for each in given}
    yield from (flag.name for flag in command.flags() if flag in spelled or environment.get(flag.variable))


def _read(flag: Flag, origin: str, text: str) -> Any:
    """Read a value; `origin` is the flag or variable that has it. Raises ConfigError."""
    try:
        return flag.value.read(text)
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from None


def _ignored(command: Command, given: Sequence[_Given], environment: Mapping[str, str]) -> list[str]:
    flags = [each.spelling for each in given if each.flag in command.ignored]
    variables = [flag.variable for flag in command.ignored if environment.get(flag.variable)]
    found = dict.fromkeys([*flags, *variables])
    return [f"ignored for compatibility: {', '.join(found)}"] if found else []


def _ignored_words(rest: Sequence[str]) -> list[str]:
    return [f"words after the flags are ignored: {shlex.join(rest)}"] if rest else []


def _output(command: Command, given: Sequence[_Given]) -> str:
    """What is to be printed instead of running the command; empty where it is to run."""
    asked = {each.flag.name for each in given if each.flag.value.boolean and each.text == "true"}
    if "help" in asked:
        return usage(command)
    return f"gpugauge {VERSION}\n" if "version" in asked else ""


def usage(command: Command) -> str:
    """Write the help of a command: the commands, then its flags by group."""
    lines = ["Commands (without one, node is meant):"]
    lines += [f"  gpugauge {each.name:12} {each.about}" for each in COMMANDS.values()]
    usual = " ".join(filter(None, ("gpugauge", command.name, command.operands)))
    lines += ["", f"Flags of {usual}:"]
    for group, flags in command.groups.items():
        lines += ["", f"{group}:"]
        for flag in flags:
            lines += [f"  {' '.join([', '.join(flag.names()), flag.value.placeholder]).rstrip()}", *_explained(flag)]
    return "\n".join(lines) + "\n"


def _explained(flag: Flag) -> list[str]:
    facts = [f"default {flag.default}"] if flag.default else []
    facts += [f"variable {flag.variable}"] if flag.variable else []
    text = f"{flag.help} ({'; '.join(facts)})" if facts else flag.help
    indent = " " * 6
    return textwrap.wrap(
        text,
        HELP_COLUMNS,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
