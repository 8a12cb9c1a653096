"""What an explanation reads of one node beyond its record: its conditions with their messages."""

from typing import Any

import msgspec

from exporter.api_objects.wire import ObjectMeta
from exporter.cluster.kubernetes.objects.wire import PodCondition


class _NodeStatus(msgspec.Struct, gc=False):
    conditions: list[PodCondition] | None = None


class NodeDetail(msgspec.Struct, gc=False):
    """One node."""

    metadata: ObjectMeta
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


def node_detail(given: dict[str, Any]) -> NodeDetail | None:
    """Decode a node; return None for one that cannot be read."""
    try:
        return msgspec.convert(given, NodeDetail)
    except msgspec.ValidationError:
        return None
