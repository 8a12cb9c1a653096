"""From the API server's bytes to records: pages of a list and lines of a watch.

One object that cannot be read costs only itself: a page is decoded as a whole, and object by object only when that
fails.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import msgspec

from exporter.cluster.kubernetes import conversion, wire
from exporter.cluster.kubernetes.api import ApiError, refused
from exporter.cluster.kubernetes.records import Record
from exporter.gpu_names import GpuResources

W = TypeVar("W", wire.Pod, wire.Node, wire.Namespace)

_SHORTEST = 120


class _Page(msgspec.Struct, Generic[W], gc=False):
    metadata: wire.ListMeta
    items: list[W] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """One page: what is kept of it by key, what could not be read, and how to go on."""

    records: dict[str, Record]
    bad: list[str]
    resource_version: str
    token: str


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a watch. `record` is None when the object is gone or has nothing to do with GPUs."""

    what: Literal["object", "bookmark", "bad"]
    resource_version: str
    key: str = ""
    record: Record | None = None
    problem: str = ""


@dataclass(slots=True)
class Codec(Generic[W]):
    """Reads objects of one kind."""

    wire_type: type[W]
    convert: Callable[[W], Record | None]
    _page: msgspec.json.Decoder[Any] = field(init=False)
    _one: msgspec.json.Decoder[W] = field(init=False)

    def __post_init__(self) -> None:
        # The subscript is on a variable: a type checker cannot follow it.
        self._page = msgspec.json.Decoder(_Page[self.wire_type])  # type: ignore[name-defined]
        self._one = msgspec.json.Decoder(self.wire_type)

    def page(self, body: bytes) -> Page:
        """One page of a list. Raises ApiError when it is not a list at all."""
        bad: list[str] = []
        found: _Page[W]
        try:
            found = self._page.decode(body)
        except msgspec.ValidationError:
            found = self._one_by_one(body, bad)
        except msgspec.DecodeError as error:
            raise ApiError("bad_response", f"a list is not JSON: {error}") from error
        records: dict[str, Record] = {}
        for item in found.items or ():
            try:
                record = self.convert(item)
            except ValueError as error:
                bad.append(_problem(item.metadata, error))
                continue
            if record is not None:
                records[key_of(item.metadata)] = record
        return Page(records, bad, found.metadata.resource_version, found.metadata.continue_ or "")

    def _one_by_one(self, body: bytes, bad: list[str]) -> "_Page[W]":
        try:
            raw = msgspec.json.decode(body, type=wire.RawPage)
        except msgspec.DecodeError as error:
            raise ApiError("bad_response", f"a list cannot be read: {error}") from error
        items: list[W] = []
        for text in raw.items or ():
            try:
                items.append(self._one.decode(text))
            except msgspec.DecodeError as error:
                meta = _just_meta(text)
                bad.append(_problem(meta, error))
        return _Page(raw.metadata, items)

    def change(self, line: bytes) -> Change:
        """One line of a watch. Raises ApiError for an ERROR event and for what is no event."""
        try:
            event = msgspec.json.decode(line, type=wire.Event)
        except msgspec.DecodeError as error:
            raise ApiError("bad_response", f"a line of a watch cannot be read: {error}") from error
        if event.type == "ERROR":
            raise _error(event.object)
        if event.type == "BOOKMARK":
            return Change("bookmark", _just_meta(event.object).resource_version)
        return self._object(event)

    def _object(self, event: wire.Event) -> Change:
        meta = _just_meta(event.object)
        if event.type == "DELETED":
            return Change("object", meta.resource_version, key_of(meta))
        try:
            item = self._one.decode(event.object)
            return Change("object", meta.resource_version, key_of(meta), self.convert(item))
        except (msgspec.DecodeError, ValueError) as error:
            return Change("bad", meta.resource_version, key_of(meta), problem=_problem(meta, error))


def key_of(meta: wire.Meta) -> str:
    """What an object is stored under: its namespace and name, which one object has at a time."""
    return f"{meta.namespace}/{meta.name}"


def _just_meta(text: msgspec.Raw) -> wire.Meta:
    try:
        return msgspec.json.decode(text, type=wire.JustMeta).metadata
    except msgspec.DecodeError:
        return wire.Meta()


def _problem(meta: wire.Meta, error: Exception) -> str:
    return f"{key_of(meta).lstrip('/') or 'an object without a name'}: {str(error)[:_SHORTEST]}"


def _error(text: msgspec.Raw) -> ApiError:
    try:
        status = msgspec.json.decode(text, type=wire.Status)
    except msgspec.DecodeError:
        status = wire.Status()
    return refused(status.code, status.message or status.reason)


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """A kind of object as the API server offers it."""

    name: Literal["pods", "nodes", "namespaces"]
    path: str
    query: dict[str, str]
    codec: Codec[Any]


def object_kinds(gpus: GpuResources) -> tuple[ObjectKind, ...]:
    """The three kinds that are watched. Finished pods, most of the list on batch clusters, are never sent."""
    unfinished = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
    return (
        ObjectKind("pods", "/api/v1/pods", unfinished, Codec(wire.Pod, lambda pod: conversion.pod(pod, gpus))),
        ObjectKind("nodes", "/api/v1/nodes", {}, Codec(wire.Node, lambda node: conversion.node(node, gpus))),
        ObjectKind("namespaces", "/api/v1/namespaces", {}, Codec(wire.Namespace, conversion.namespace)),
    )
