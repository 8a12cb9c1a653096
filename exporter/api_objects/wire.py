"""The parts of the API server's JSON that do not depend on the kind of object: metadata, lists, watch events, errors.

Types are as lax as possible, because an unexpected null or number would make the whole object unreadable.
"""

from typing import Any

import msgspec

StringMap = dict[str, str | None] | None
Quantities = dict[str, str | int | float] | None


class OwnerReference(msgspec.Struct, gc=False):
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class ObjectMeta(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    generation: int | None = None
    labels: StringMap = None
    annotations: StringMap = None
    owner_references: list[OwnerReference] | None = None


class ResourceRequirements(msgspec.Struct, gc=False):
    requests: Quantities = None
    limits: Quantities = None


class ListMeta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")


class RawList(msgspec.Struct, gc=False):
    """One page of a list whose items are not decoded yet."""

    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class WatchEvent(msgspec.Struct, gc=False):
    """One event of a watch; the API server writes one per line."""

    type: str
    object: msgspec.Raw


class ParsedList(msgspec.Struct, gc=False):
    """One page of a list, read by Python's JSON parser."""

    metadata: ListMeta
    items: list[Any] | None = None


class ParsedEvent(msgspec.Struct, gc=False):
    """One event of a watch, read by Python's JSON parser."""

    type: str
    object: Any


class ApiStatus(msgspec.Struct, gc=False):
    """The body of an API server's error, and the object of an ERROR event."""

    code: int = 0
    reason: str = ""
    message: str = ""


class MetadataOnly(msgspec.Struct, gc=False):
    """The metadata of an object whose other fields cannot be decoded or are not needed."""

    metadata: ObjectMeta


class ObjectNames(msgspec.Struct, gc=False, rename="camel"):
    """The part of an object's metadata that is needed to drop its record."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class NamesOnly(msgspec.Struct, gc=False):
    """The names of an object whose other metadata cannot be decoded."""

    metadata: ObjectNames
