"""Decodes the API server's JSON to records: pages of a list and lines of a watch.

An object that cannot be read is left out and the others are kept: a page is decoded as a whole, which is fast, and
object by object only when that fails.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from exporter.api_objects.decode import (
    UNDECODABLE,
    UnreadableAnswerError,
    event,
    key_of,
    metadata,
    problem,
    separated,
    status_of,
)
from exporter.api_objects.wire import ListMeta, ObjectMeta, WatchEvent
from exporter.cluster.kubernetes.objects.records import ClusterObject
from exporter.cluster.kubernetes.watching.api import ApiError, api_error
from exporter.cluster.kubernetes.watching.reasons import WatchReason

W = TypeVar("W", bound="HasMetadata")
T = TypeVar("T")


class HasMetadata(Protocol):
    """What every decoded object has."""

    @property
    def metadata(self) -> ObjectMeta: ...


class _WireList(msgspec.Struct, Generic[W], gc=False):
    metadata: ListMeta
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
        except UNDECODABLE:
            decoded = self._one_by_one(body, malformed)
        records: dict[str, ClusterObject] = {}
        for item in decoded.items or ():
            try:
                record = self.convert(item)
            except Exception as error:  # noqa: BLE001 - also a defect in the conversion costs one object only
                malformed.append(problem(item.metadata, error))
                continue
            if record is not None:
                records[key_of(item.metadata)] = record
        return ListPage(records, malformed, decoded.metadata.resource_version, decoded.metadata.continue_ or "")

    def _one_by_one(self, body: bytes, malformed: list[str]) -> "_WireList[W]":
        """Decode the objects of a page each by itself; add a message to `malformed` for each that cannot be read."""
        raw = _readable(separated, body)
        items: list[W] = []
        for text in raw.items or ():
            try:
                items.append(self._one.decode(text))
            except UNDECODABLE as error:
                malformed.append(problem(metadata(text), error))
        return _WireList(raw.metadata, items)

    def change(self, line: bytes) -> WatchChange:
        """Decode one line of a watch. Raises ApiError for an ERROR event, and for a line that is not an event."""
        found = _readable(event, line)
        if found.type == "ERROR":
            raise _error(found.object)
        if found.type == "BOOKMARK":
            return WatchChange("bookmark", metadata(found.object).resource_version)
        return self._object(found)

    def _object(self, found: WatchEvent) -> WatchChange:
        meta = metadata(found.object)
        if found.type == "DELETED":
            return WatchChange("object", meta.resource_version, key_of(meta))
        try:
            item = self._one.decode(found.object)
            return WatchChange("object", meta.resource_version, key_of(meta), self.convert(item))
        except Exception as error:  # noqa: BLE001 - as in `page`
            return WatchChange("malformed", meta.resource_version, key_of(meta), problem=problem(meta, error))


def _readable(read: Callable[[bytes], T], text: bytes) -> T:
    """Decode a list or an event, but not its objects. Raises ApiError when it is none."""
    try:
        return read(text)
    except UnreadableAnswerError as error:
        raise ApiError(WatchReason.BAD_RESPONSE, str(error)) from error


def _error(text: msgspec.Raw) -> ApiError:
    status = status_of(text)
    return api_error(status.code, status.message or status.reason)
