"""The kinds of value that flags and variables can have, and how each is read from its text.

In: the text after a flag or in a variable. Out: the value, or ConfigError with a message that states what is wrong with
the text; the caller knows the name of the flag or variable and adds it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from exporter.config import MAX_INTERVAL_SECONDS, ConfigError
from exporter.node.dcgm.host_engine.address import AddressError, parse_address
from exporter.node.devices.entities.selection import Selection, SelectionError, parse_selection
from exporter.node.service_account.account import ConfigMapName
from exporter.web import listener

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OBJECT_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class FlagValue:
    """What the value of a flag is."""

    read: Callable[[str], Any]
    """Returns the value of a text. Raises ConfigError, without the name of the flag."""
    placeholder: str
    """Stands for the value in help texts and documents."""
    boolean: bool = False
    """A Boolean flag takes no value from the next word, only as `--flag=false`."""
    adds_up: bool = False
    """Whether the values of a repeated flag are joined; otherwise the last one counts."""
    choices: tuple[str, ...] = ()
    """The only values it can have; empty where there are others."""


def parse_bool(text: str) -> bool:
    """Read a Boolean as Go's `strconv.ParseBool` does; an empty text is false. Raises ConfigError."""
    if text in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if text in {"0", "f", "F", "false", "FALSE", "False", ""}:
        return False
    raise ConfigError(f"{text!r} is neither true nor false")


def _names(text: str) -> tuple[str, ...]:
    """Split a comma-separated list; blanks around names are removed and empty names left out."""
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _resource_names(text: str) -> tuple[str, ...]:
    names = _names(text)
    for name in names:
        if not name.strip("*/"):
            raise ConfigError(f"{name!r} would mean every resource: write a vendor before it, as in example.com/*")
    return names


def _whole_number(text: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(text):
        raise ConfigError(f"{text!r} is not a whole number")
    return int(text)


def _count(text: str) -> int:
    number = _whole_number(text)
    if number < 0:
        raise ConfigError(f"{number} is less than 0")
    return number


def _milliseconds(text: str) -> int:
    number = _whole_number(text)
    if number > MAX_INTERVAL_SECONDS * 1000:
        raise ConfigError(f"{number} is more than {MAX_INTERVAL_SECONDS * 1000} milliseconds")
    return number


def _window(text: str) -> int:
    number = _milliseconds(text)
    if number < 1:
        raise ConfigError(f"{number} is less than 1 millisecond")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a number") from None
    if not 1 <= number <= MAX_INTERVAL_SECONDS:
        raise ConfigError(f"{text} is outside 1..{MAX_INTERVAL_SECONDS} seconds")
    return number


def _address(text: str) -> str:
    try:
        listener.parse(text)
    except listener.ListenError:
        message = f"{text!r} is not an address to listen on: use host:port, [IPv6]:port or :port"
        raise ConfigError(message) from None
    return text


def _host_engine(text: str) -> str:
    """The address of a host engine as it was given; an empty text is read as itself: none is named."""
    try:
        if text:
            parse_address(text)
    except AddressError as error:
        raise ConfigError(str(error)) from None
    return text


def _selection(text: str) -> Selection:
    try:
        return parse_selection(text)
    except SelectionError as error:
        raise ConfigError(str(error)) from None


def _config_map(text: str) -> ConfigMapName | None:
    if text in ("", "none"):
        return None
    namespace, colon, name = text.partition(":")
    if not (colon and _NAMESPACE.fullmatch(namespace) and _OBJECT_NAME.fullmatch(name)):
        raise ConfigError(f"{text!r} is not NAMESPACE:NAME")
    return ConfigMapName(namespace, name)


def _namespaced_name(text: str) -> tuple[str, str] | None:
    """Namespace and name of an object; an empty text means none."""
    if not text:
        return None
    namespace, _, name = text.partition("/")
    if not (_NAMESPACE.fullmatch(namespace) and _OBJECT_NAME.fullmatch(name)):
        raise ConfigError(f"{text!r} is not a namespace and a name of an object, as in `gpugauge/gpugauge-cluster`")
    return namespace, name


def _time(text: str) -> float | None:
    """Unix seconds of a month, a day or a time; an empty text means none. Without an offset it is in UTC."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(f"{text}-01" if _MONTH.fullmatch(text) else text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a time such as 2026-11, 2026-11-30 or 2026-11-30T08:00:00Z") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def text_value(placeholder: str) -> FlagValue:
    """Any text."""
    return FlagValue(str, placeholder)


def choice(*names: str, any_case: bool = False, optional: bool = False) -> FlagValue:
    """One of these names; with `any_case` also in capitals, for which the names must be in small letters.

    With `optional` an empty text is read as itself: no choice was made.
    """

    def read(text: str) -> str:
        name = text.lower() if any_case else text
        if name not in names and not (optional and not name):
            raise ConfigError(f"{text!r} is none of {', '.join(names)}")
        return name

    return FlagValue(read, "|".join(names), choices=names)


def mapping(*names: str) -> FlagValue:
    """Texts for some of these names, as `name=text,name=text`; an empty text names none."""

    def read(text: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in _names(text):
            name, equals, value = part.partition("=")
            if name not in names or not equals or not value:
                raise ConfigError(f"{part!r} is not one of {', '.join(f'{name}=KEY' for name in names)}")
            found[name] = value
        return found

    return FlagValue(read, ",".join(f"{name}=KEY" for name in names))


BOOLEAN = FlagValue(parse_bool, "", boolean=True)
NAMES = FlagValue(_names, "NAMES", adds_up=True)
RESOURCE_PATTERNS = FlagValue(_resource_names, "NAMES", adds_up=True)
"""Names of resources, in each of which `*` stands for any text."""
COUNT = FlagValue(_count, "N")
TIME = FlagValue(_time, "TIME")
MILLISECONDS = FlagValue(_milliseconds, "MS")
WINDOW = FlagValue(_window, "MS")
SECONDS = FlagValue(_seconds, "SECONDS")
ADDRESS = FlagValue(_address, "ADDRESS")
OPTIONAL_ADDRESS = FlagValue(lambda text: _address(text) if text else "", "ADDRESS")
"""An empty text means none."""
CONFIG_MAP = FlagValue(_config_map, "NAMESPACE:NAME")
"""`none` means none, as in dcgm-exporter."""
HOST_ENGINE = FlagValue(_host_engine, "ADDRESS")
SELECTION = FlagValue(_selection, "SELECTION")
DURATION = text_value("DURATION")
"""Any text: one that is no duration is not a mistake in dcgm-exporter."""
NAMESPACED_NAME = FlagValue(_namespaced_name, "NAMESPACE/NAME")
FILE = text_value("FILE")
FILES = FlagValue(lambda text: (text,) if text else (), "FILE", adds_up=True)
