"""The lines of a watch: what changed, as the API server writes it for one watch. No I/O, no state."""

import json
from dataclasses import dataclass

from simulators.field_selector import matches
from simulators.objects import KubernetesObject


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One change of an object: what it was before and is after; None where it did not or does not exist."""

    version: int
    kind: str
    before: KubernetesObject | None
    after: KubernetesObject | None
    raw: bytes = b""
    """A line that watches send as it is, instead of an event."""


def event(change: ObjectChange, selector: str) -> bytes:
    """Make the event for a watch with this selector: an object that no longer matches it is deleted."""
    if change.raw:
        return change.raw
    before = change.before is not None and matches(change.before, selector)
    after = change.after is not None and matches(change.after, selector)
    if not before and not after:
        return b""
    event_type = "DELETED" if not after else "MODIFIED" if before else "ADDED"
    item = (change.after if change.after is not None else change.before) or {}
    meta = {**item["metadata"], "resourceVersion": str(change.version)}
    return json.dumps({"type": event_type, "object": {**item, "metadata": meta}}).encode()


def singular(kind: str) -> str:
    """The kind as objects name it, as far as clients look at it: capitalized and without its plural."""
    return kind.removesuffix("s").capitalize()


def bookmark(kind: str, version: int) -> bytes:
    item = {"kind": singular(kind), "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}}
    return json.dumps({"type": "BOOKMARK", "object": item}).encode()
