"""Decodes the API server's JSON to records: pages of a list and lines of a watch.

An object that cannot be read is left out and the others are kept: a page is decoded as a whole, which is fast, and
object by object only when that fails. JSON that msgspec does not accept is then read by Python's parser, which is
slower and accepts what one string may have wrong in it: bytes that are not UTF-8, control characters, half a surrogate
pair.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from exporter.cluster.kubernetes import wire
from exporter.cluster.kubernetes.api import ApiError, api_error
from exporter.cluster.kubernetes.reasons import WatchReason
from exporter.cluster.kubernetes.records import ClusterObject

W = TypeVar("W", bound="HasMetadata")
P = TypeVar("P", wire.ParsedList, wire.ParsedEvent, wire.NamesOnly)

_MAX_ERROR_LENGTH = 120
_UNDECODABLE = (msgspec.DecodeError, RecursionError)
"""What msgspec raises for JSON that it cannot decode; RecursionError for JSON that is nested too deeply."""


class HasMetadata(Protocol):
    """What every decoded object has."""

    @property
    def metadata(self) -> wire.ObjectMeta: ...


class _WireList(msgspec.Struct, Generic[W], gc=False):
    metadata: wire.ListMeta
    items: list[W] | None = None


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list."""

    records: dict[str, ClusterObject]
    """The objects that have to do with GPUs, by `key_of`."""
    malformed: list[str]
    """One message per object that cannot be read."""
    resource_version: str
    continue_token: str
    """What to request the next page with; empty on the last one."""


@dataclass(frozen=True, slots=True)
class WatchChange:
    """One event of a watch."""

    type: Literal["object", "bookmark", "malformed"]
    resource_version: str
    key: str = ""
    record: ClusterObject | None = None
    """None when the object was deleted, has nothing to do with GPUs or cannot be read."""
    problem: str = ""
    """Why the object cannot be read."""


@dataclass(slots=True)
class ObjectCodec(Generic[W]):
    """Decodes objects of one kind."""

    wire_type: type[W]
    convert: Callable[[W], ClusterObject | None]
    """Raises ValueError when a field that is needed cannot be read."""
    _page: msgspec.json.Decoder[Any] = field(init=False)
    _one: msgspec.json.Decoder[W] = field(init=False)

    def __post_init__(self) -> None:
        # The subscript is on a variable: a type checker cannot follow it.
        self._page = msgspec.json.Decoder(_WireList[self.wire_type])  # type: ignore[name-defined]
        self._one = msgspec.json.Decoder(self.wire_type)

    def page(self, body: bytes) -> ListPage:
        """Decode one page of a list. Raises ApiError when it is not a list at all."""
        malformed: list[str] = []
        decoded: _WireList[W]
        try:
            decoded = self._page.decode(body)
        except _UNDECODABLE:
            decoded = self._one_by_one(body, malformed)
        records: dict[str, ClusterObject] = {}
        for item in decoded.items or ():
            try:
                record = self.convert(item)
            except Exception as error:  # noqa: BLE001 - also a defect in the conversion costs one object only
                malformed.append(_problem(item.metadata, error))
                continue
            if record is not None:
                records[key_of(item.metadata)] = record
        return ListPage(records, malformed, decoded.metadata.resource_version, decoded.metadata.continue_ or "")

    def _one_by_one(self, body: bytes, malformed: list[str]) -> "_WireList[W]":
        """Decode the objects of a page each by itself; add a message to `malformed` for each that cannot be read."""
        raw = _separated(body)
        items: list[W] = []
        for text in raw.items or ():
            try:
                items.append(self._one.decode(text))
            except _UNDECODABLE as error:
                malformed.append(_problem(_metadata(text), error))
        return _WireList(raw.metadata, items)

    def change(self, line: bytes) -> WatchChange:
        """Decode one line of a watch. Raises ApiError for an ERROR event, and for a line that is not an event."""
        event = _event(line)
        if event.type == "ERROR":
            raise _error(event.object)
        if event.type == "BOOKMARK":
            return WatchChange("bookmark", _metadata(event.object).resource_version)
        return self._object(event)

    def _object(self, event: wire.WatchEvent) -> WatchChange:
        meta = _metadata(event.object)
        if event.type == "DELETED":
            return WatchChange("object", meta.resource_version, key_of(meta))
        try:
            item = self._one.decode(event.object)
            return WatchChange("object", meta.resource_version, key_of(meta), self.convert(item))
        except Exception as error:  # noqa: BLE001 - as in `page`
            return WatchChange("malformed", meta.resource_version, key_of(meta), problem=_problem(meta, error))


def _separated(body: bytes) -> wire.RawList:
    """Separate the objects of a page without decoding them. Raises ApiError when it is not a list at all."""
    try:
        return msgspec.json.decode(body, type=wire.RawList)
    except _UNDECODABLE:
        parsed = _parsed(body, wire.ParsedList, "a list")
        return wire.RawList(parsed.metadata, [_text(item) for item in parsed.items or ()])


def _event(line: bytes) -> wire.WatchEvent:
    """Decode a line of a watch, but not its object. Raises ApiError when it is not an event at all."""
    try:
        return msgspec.json.decode(line, type=wire.WatchEvent)
    except _UNDECODABLE:
        parsed = _parsed(line, wire.ParsedEvent, "a line of a watch")
        return wire.WatchEvent(parsed.type, _text(parsed.object))


def _parsed(text: bytes, type_: type[P], what: str) -> P:
    """Decode what msgspec does not accept, with Python's parser. Raises ApiError where that does not either."""
    try:
        return msgspec.convert(json.loads(text.decode("utf-8", "replace"), strict=False), type_)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise ApiError(WatchReason.BAD_RESPONSE, f"{what} cannot be read: {error}") from error


def _text(parsed: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(parsed).encode())


def key_of(meta: wire.ObjectMeta) -> str:
    """The key of an object in its store: namespace and name, which no two objects of a kind share at a time."""
    return f"{meta.namespace}/{meta.name}"


def _metadata(text: msgspec.Raw) -> wire.ObjectMeta:
    """Decode the metadata alone: its names where that fails, and nothing where these cannot be read either."""
    try:
        return msgspec.json.decode(text, type=wire.MetadataOnly).metadata
    except _UNDECODABLE:
        return _names(text)


def _names(text: msgspec.Raw) -> wire.ObjectMeta:
    try:
        names = _parsed(bytes(text), wire.NamesOnly, "metadata").metadata
    except ApiError:
        return wire.ObjectMeta()
    return wire.ObjectMeta(names.name, names.namespace, resource_version=names.resource_version)


def _problem(meta: wire.ObjectMeta, error: Exception) -> str:
    """Return the message for an object that cannot be read, without characters that no log can be written with."""
    name = key_of(meta).lstrip("/") or "an object without a name"
    cause = str(error) if isinstance(error, ValueError | msgspec.DecodeError) else repr(error)
    return f"{name}: {cause[:_MAX_ERROR_LENGTH]}".encode("utf-8", "backslashreplace").decode()


def _error(text: msgspec.Raw) -> ApiError:
    try:
        status = msgspec.json.decode(text, type=wire.ApiStatus)
    except _UNDECODABLE:
        status = wire.ApiStatus()
    return api_error(status.code, status.message or status.reason)
