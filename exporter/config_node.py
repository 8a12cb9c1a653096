"""A YAML file as keys, values and their places, so that a message about a mistake names file, line and key."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from exporter.config import ConfigFileError

_NULL = "tag:yaml.org,2002:null"
"""YAML's tag of an empty value."""
_BOOLEANS = {"true": True, "false": False}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where PyYAML was built with it: some ten times as fast, which a file of 1 MiB needs."""


@dataclass(frozen=True, slots=True)
class ConfigNode:
    """A key of the file with its value and its place, for error messages.

    A message quotes a value only where it comes from a known list: the file may contain secrets.
    """

    path: Path
    key: str
    node: yaml.Node

    @property
    def line(self) -> int:
        """The line on which the value begins."""
        return int(self.node.start_mark.line) + 1

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.path}:{self.line}"

    @property
    def empty(self) -> bool:
        """Whether there is no value."""
        return bool(self.node.tag == _NULL)

    def error(self, problem: str) -> ConfigFileError:
        """Make the error that names this place."""
        return ConfigFileError(self.path, self.line, f"{self.key}: {problem}")

    def text(self) -> str:
        """The value as a text. Raises ConfigFileError when it is a mapping, a list or empty."""
        if not isinstance(self.node, yaml.ScalarNode) or self.empty:
            raise self.error("must be a text")
        return str(self.node.value)

    def boolean(self) -> bool:
        """The value as true or false. Raises ConfigFileError for anything else."""
        try:
            return _BOOLEANS[self.text().lower()]
        except KeyError:
            raise self.error("must be true or false") from None

    def is_list(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    def items(self) -> Iterator["ConfigNode"]:
        """The items of a list, each under the key of the list; an empty value is an empty list."""
        if self.empty:
            return
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error("must be a list")
        for item in self.node.value:
            yield ConfigNode(self.path, self.key, item)

    def entries(self) -> Iterator["ConfigNode"]:
        """The entries of a mapping; an empty value is an empty mapping. Raises ConfigFileError."""
        if self.empty:
            return
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error("must have keys and values")
        seen: set[str] = set()
        for key, value in self.node.value:
            # The error names the key's line, also when the value begins a line below.
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            if name in seen:
                raise ConfigNode(self.path, name, key).error("is given twice")
            seen.add(name)
            yield ConfigNode(self.path, name, value)

    def sections(self, *known: str) -> dict[str, "ConfigNode"]:
        """The entries of a mapping by key, which must be among `known`. Raises ConfigFileError."""
        found = {}
        for entry in self.entries():
            if entry.key not in known:
                raise entry.error(f"unknown key; known: {', '.join(known)}")
            found[entry.key] = entry
        return found


def read(path: Path) -> ConfigNode:
    """Read the file. Raises ConfigFileError when it cannot be read or is not YAML."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigFileError(path, None, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigFileError(path, None, "is not UTF-8 text") from error
    return parse(text, path)


def parse(text: str, path: Path) -> ConfigNode:
    """Parse the text of the file. Raises ConfigFileError when it is not YAML, or is nested too deeply."""
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except UnicodeEncodeError as error:  # libyaml's reader gets bytes
        raise ConfigFileError(path, None, "is not UTF-8 text") from error
    except RecursionError as error:
        raise ConfigFileError(path, None, "is nested too deeply") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "is not YAML"
        raise ConfigFileError(path, mark.line + 1 if mark else None, problem) from error
    if root is None:
        return ConfigNode(path, "file", yaml.ScalarNode(_NULL, "", yaml.Mark("", 0, 0, 0, None, 0)))
    return ConfigNode(path, "file", root)
