"""Decodes the objects of one kind, each by itself: one that cannot be decoded is counted and costs itself alone."""

import logging
from typing import Generic, TypeVar

import msgspec

from exporter.api_objects.decode import key_of, metadata, problem
from exporter.log import OnceLog
from exporter.node.service_account.known_objects import KnownObjects
from exporter.node.service_account.watched_kind import WatchedKind

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


class CountedDecoding(Generic[T]):
    """Makes of an object's JSON what is kept of it. For use by one thread."""

    def __init__(self, kind: WatchedKind[T], known: KnownObjects[T]) -> None:
        """`known` counts the objects that cannot be decoded."""
        self._kind, self._known, self._log = kind, known, OnceLog(_LOG)

    def __call__(self, text: msgspec.Raw) -> tuple[str, T | None]:
        """Return the object's key, and what is kept of it, if anything is."""
        meta = metadata(text)
        try:
            return key_of(meta), self._kind.decode(text)
        except Exception as error:  # noqa: BLE001 - also a defect in decoding costs one object only
            self._known.count_malformed()
            message = problem(meta, error)
            self._log.warning(f"one of the {self._kind.name} cannot be read and is left out: {message}")
            return key_of(meta), None
