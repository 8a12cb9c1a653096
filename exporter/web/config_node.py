"""A YAML file as keys, values and their places, so that a message about a mistake names file, line and key."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from exporter.config import ConfigError

_NULL = "tag:yaml.org,2002:null"
"""YAML's tag of an empty value."""
_BOOLEANS = {"true": True, "false": False}


class WebConfigError(ConfigError):
    """The web configuration file cannot be used. The text is one message with file, line and key."""


@dataclass(frozen=True, slots=True)
class ConfigNode:
    """A key of the file with its value and its place, for error messages.

    A message quotes a value only where it comes from a known list: the file may contain secrets.
    """

    path: Path
    key: str
    node: yaml.Node

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.path}:{self.node.start_mark.line + 1}"

    def error(self, problem: str) -> WebConfigError:
        """Make the error that names this place."""
        return WebConfigError(f"{self.place}: {self.key}: {problem}")

    def text(self) -> str:
        """The value as a text. Raises WebConfigError when it is a mapping, a list or empty."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag == _NULL:
            raise self.error("must be a text")
        return str(self.node.value)

    def boolean(self) -> bool:
        """The value as true or false. Raises WebConfigError for anything else."""
        try:
            return _BOOLEANS[self.text().lower()]
        except KeyError:
            raise self.error("must be true or false") from None

    def items(self) -> Iterator["ConfigNode"]:
        """The items of a list, each under the key of the list; an empty value is an empty list."""
        if self.node.tag == _NULL:
            return
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error("must be a list")
        for item in self.node.value:
            yield ConfigNode(self.path, self.key, item)

    def entries(self) -> Iterator["ConfigNode"]:
        """The entries of a mapping; an empty value is an empty mapping. Raises WebConfigError."""
        if self.node.tag == _NULL:
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


def read(path: Path) -> ConfigNode:
    """Read the file. Raises WebConfigError when it cannot be read or is not YAML."""
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise WebConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WebConfigError(f"{path}: is not UTF-8 text") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise WebConfigError(f"{path}{line}: {getattr(error, 'problem', None) or 'is not YAML'}") from error
    if root is None:
        return ConfigNode(path, "file", yaml.ScalarNode(_NULL, ""))
    return ConfigNode(path, "file", root)
