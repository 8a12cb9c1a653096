"""What the labels and resources of a node say of its GPUs' MIG devices. No I/O."""

import re
from dataclasses import dataclass
from typing import Any

from exporter.commands.explain.sources import RawObject
from exporter.commands.mig.placement import Geometry
from exporter.gpu_names import canonical_model

_PRODUCT, _COUNT = "nvidia.com/gpu.product", "nvidia.com/gpu.count"
_CONFIG, _STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
_RESOURCE = re.compile(r"nvidia\.com/mig-(\d+g\.\d+gb)(?:\.(me))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class MigNode:
    """A node with GPUs."""

    name: str
    product: str
    config: str
    """The configuration that the MIG manager is to apply; empty where none is named."""
    state: str
    """How far the MIG manager is, in its words; empty where it is not there."""
    geometry: Geometry
    """The MIG devices that the node offers of each GPU; empty where it offers none, or where its GPUs differ."""
    uneven: bool
    """Whether its GPUs have different MIG devices, so that what each has is not known."""


def mig_node(name: str, given: RawObject) -> MigNode:
    """Read a node as the API server writes it."""
    labels = _part(_part(given, "metadata"), "labels")
    offered = _offered(_part(_part(given, "status"), "capacity"))
    gpus = int(labels[_COUNT]) if str(labels.get(_COUNT, "")).isdecimal() else 0
    uneven = bool(offered) and (gpus == 0 or any(count % gpus for count in offered.values()))
    return MigNode(
        name,
        canonical_model(str(labels.get(_PRODUCT, ""))),
        str(labels.get(_CONFIG, "")),
        str(labels.get(_STATE, "")),
        {} if uneven else {profile: count // gpus for profile, count in offered.items()},
        uneven,
    )


def _offered(capacity: dict[str, Any]) -> dict[str, int]:
    found = {}
    for resource, amount in capacity.items():
        match = _RESOURCE.fullmatch(resource)
        if match and str(amount).isdecimal() and int(amount):
            found[f"{match[1]}{'+me' if match[2] else ''}"] = int(amount)
    return found


def _part(given: dict[str, Any], name: str) -> dict[str, Any]:
    part = given.get(name)
    return part if isinstance(part, dict) else {}
