"""The status that the cluster autoscaler writes into a ConfigMap: which node groups grow, and which no longer can.

Its form is YAML since 1.30 and text for people before; both are those of the autoscaler's own package `clusterstate`.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
import yaml

from exporter.api_objects.wire import ObjectMeta

NAMESPACE, NAME = "kube-system", "cluster-autoscaler-status"
"""Where the autoscaler writes it, unless it was given another name."""
_KEY = "status"
_MAX_LENGTH = 4 << 20
_YAML = re.compile(r"^autoscalerStatus:", re.MULTILINE)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)", re.ASCII)
_GROUPS = re.compile(r"^\s*NodeGroups:", re.MULTILINE)
_NAME = re.compile(r"^\s*Name:\s+", re.MULTILINE)
_HEALTH = re.compile(r"^\s*Health:\s+(\w+).*?cloudProviderTarget=(\d+) \(minSize=\d+, maxSize=(\d+)", re.MULTILINE)
_SCALE_UP = re.compile(r"^\s*ScaleUp:\s+(\w+)", re.MULTILINE)
# The loader of libyaml is ten times as fast; a wheel without it has Python's own alone. Both leave every value text.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class AutoscaledGroup(msgspec.Struct, frozen=True, gc=False):
    """A node group that the cluster autoscaler can make larger."""

    name: str
    """As the provider names it: it contains the name of the node pool."""
    healthy: bool
    target: int
    """How many nodes it is to have now."""
    largest: int
    """How many nodes it may have."""
    scale_up: str
    """`NoActivity`, `InProgress` or `Backoff`: a scale-up has failed lately."""


class AutoscalerStatus(msgspec.Struct, frozen=True, gc=False):
    """What the cluster autoscaler says of its node groups."""

    at: float | None
    """When it was written, in seconds since the epoch; None where it has no time."""
    groups: tuple[AutoscaledGroup, ...]


class WireConfigMap(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    data: dict[str, str | None] | None = None


class _Health(msgspec.Struct, gc=False, rename="camel"):
    status: str = ""
    cloud_provider_target: int = 0
    max_size: int = 0


class _ScaleUp(msgspec.Struct, gc=False):
    status: str = ""


class _Group(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    health: _Health = msgspec.field(default_factory=_Health)
    scale_up: _ScaleUp = msgspec.field(default_factory=_ScaleUp)


class _WrittenStatus(msgspec.Struct, gc=False, rename="camel"):
    time: str = ""
    node_groups: list[_Group] | None = None


def autoscaler_status(decoded: WireConfigMap) -> AutoscalerStatus | None:
    """Convert the ConfigMap; return None for any other one. Raises ValueError when its status cannot be read."""
    if (decoded.metadata.namespace, decoded.metadata.name) != (NAMESPACE, NAME):
        return None
    text = (decoded.data or {}).get(_KEY) or ""
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"its status has more than {_MAX_LENGTH} characters")
    return _of_yaml(text) if _YAML.search(text) else _of_text(text)


def _of_yaml(text: str) -> AutoscalerStatus:
    try:
        parsed = yaml.load(text, _LOADER)  # noqa: S506 - the base loader makes no objects
        written = msgspec.convert(parsed, _WrittenStatus, strict=False)
    except (yaml.YAMLError, msgspec.ValidationError, RecursionError) as error:
        raise ValueError(f"its status cannot be read as YAML: {error}") from error
    groups = (
        AutoscaledGroup(
            each.name,
            each.health.status == "Healthy",
            each.health.cloud_provider_target,
            each.health.max_size,
            each.scale_up.status,
        )
        for each in written.node_groups or ()
    )
    return AutoscalerStatus(_time(written.time), tuple(groups))


def _of_text(text: str) -> AutoscalerStatus:
    head, *parts = _GROUPS.split(text, maxsplit=1)
    return AutoscalerStatus(_time(head), tuple(_groups_of_text(parts[0] if parts else "")))


def _groups_of_text(text: str) -> Iterable[AutoscaledGroup]:
    for part in _NAME.split(text)[1:]:
        name = part.split("\n", 1)[0].strip()
        health, scale_up = _HEALTH.search(part), _SCALE_UP.search(part)
        if health is None or scale_up is None:
            raise ValueError(f"its status has no health or scale-up of the node group {name[:80]!r}")
        status, target, largest = health.groups()
        yield AutoscaledGroup(name, status == "Healthy", int(target), int(largest), scale_up[1])


def _time(text: str) -> float | None:
    found = _TIME.search(text)
    if found is None:
        return None
    try:
        return datetime.fromisoformat("T".join(found.groups())).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
