"""Decodes what does not depend on the kind of object: lists and watch events, whose objects stay undecoded.

JSON that msgspec does not accept is read by Python's parser, which is slower and accepts what one string may have wrong
in it: bytes that are not UTF-8, control characters, half a surrogate pair.
"""

import json
from typing import Any, TypeVar

import msgspec

from exporter.api_objects import wire

P = TypeVar("P", wire.ParsedList, wire.ParsedEvent, wire.NamesOnly)

_MAX_ERROR_LENGTH = 120
_LONGEST_RETRY_AFTER = 300.0
UNDECODABLE = (msgspec.DecodeError, RecursionError)
"""What msgspec raises for JSON that it cannot decode; RecursionError for JSON that is nested too deeply."""


class UnreadableAnswerError(ValueError):
    """An answer is neither a list nor an event of a watch."""


def separated(body: bytes) -> wire.RawList:
    """Separate the objects of a page without decoding them. Raises UnreadableAnswerError when it is not a list."""
    try:
        return msgspec.json.decode(body, type=wire.RawList)
    except UNDECODABLE:
        parsed = _parsed(body, wire.ParsedList, "a list")
        return wire.RawList(parsed.metadata, [_text(item) for item in parsed.items or ()])


def event(line: bytes) -> wire.WatchEvent:
    """Decode a line of a watch, but not its object. Raises UnreadableAnswerError when it is not an event."""
    try:
        return msgspec.json.decode(line, type=wire.WatchEvent)
    except UNDECODABLE:
        parsed = _parsed(line, wire.ParsedEvent, "a line of a watch")
        return wire.WatchEvent(parsed.type, _text(parsed.object))


def _parsed(text: bytes, type_: type[P], what: str) -> P:
    """Decode what msgspec does not accept, with Python's parser. Raises UnreadableAnswerError."""
    try:
        return msgspec.convert(json.loads(text.decode("utf-8", "replace"), strict=False), type_)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise UnreadableAnswerError(f"{what} cannot be read: {error}") from error


def _text(parsed: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(parsed).encode())


def key_of(meta: wire.ObjectMeta) -> str:
    """The key of an object: namespace and name, which no two objects of a kind share at a time."""
    return f"{meta.namespace}/{meta.name}"


def metadata(text: msgspec.Raw) -> wire.ObjectMeta:
    """Decode the metadata alone: its names where that fails, and nothing where these cannot be read either."""
    try:
        return msgspec.json.decode(text, type=wire.MetadataOnly).metadata
    except UNDECODABLE:
        return _names(text)


def _names(text: msgspec.Raw) -> wire.ObjectMeta:
    try:
        names = _parsed(bytes(text), wire.NamesOnly, "metadata").metadata
    except UnreadableAnswerError:
        return wire.ObjectMeta()
    return wire.ObjectMeta(names.name, names.namespace, resource_version=names.resource_version)


def problem(meta: wire.ObjectMeta, error: Exception) -> str:
    """Return the message for an object that cannot be read, without characters that no log can be written with."""
    name = key_of(meta).lstrip("/") or "an object without a name"
    cause = str(error) if isinstance(error, ValueError | msgspec.DecodeError) else repr(error)
    return f"{name}: {cause[:_MAX_ERROR_LENGTH]}".encode("utf-8", "backslashreplace").decode()


def status_of(text: msgspec.Raw) -> wire.ApiStatus:
    """Decode the object of an ERROR event; code 0 where it cannot be read."""
    try:
        return msgspec.json.decode(text, type=wire.ApiStatus)
    except UNDECODABLE:
        return wire.ApiStatus()


def parse_retry_after(text: str | None) -> float | None:
    """Parse a Retry-After header in seconds, as the API server writes it; None for a date, as proxies may send."""
    return min(float(text), _LONGEST_RETRY_AFTER) if text and text.isascii() and text.isdigit() else None
