"""What a flag and a command are; their rows are in the other files of this folder."""

from dataclasses import dataclass

from exporter.flags.values import FlagValue


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag and the environment variable that gives its value where the flag is not given."""

    name: str
    """Without dashes."""
    value: FlagValue
    help: str = ""
    """What it does; of a flag that is ignored for compatibility, what there is instead."""
    short: str = ""
    """A second name, without dashes."""
    variable: str = ""
    default: str = ""

    def names(self) -> tuple[str, ...]:
        """Every name, as documents write it: one dash before a single letter, two before a word."""
        return tuple(f"-{name}" if len(name) == 1 else f"--{name}" for name in (self.name, self.short) if name)


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its flags, by group."""

    name: str
    about: str
    groups: dict[str, tuple[Flag, ...]]
    ignored: tuple[Flag, ...] = ()
    """Flags that are ignored for compatibility."""
    operands: str = ""
    """A placeholder for the words that the command takes beside its flags; empty where it takes none."""

    def flags(self) -> tuple[Flag, ...]:
        """The flags that have a meaning."""
        return tuple(flag for group in self.groups.values() for flag in group)
