"""The type `AllocatedPods`: which pods and containers each device was given to, as far as that is certain. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from exporter.gpu_names import VOLCANO, resource_label
from exporter.node.attribution.matching.attribute import Attribution, PodContainer

_VOLCANO = resource_label(VOLCANO)


@dataclass(frozen=True, slots=True)
class AllocatedPods:
    """An attribution by device; devices are positions in its inventory."""

    containers: Mapping[int, tuple[PodContainer, ...]]
    """By device, the containers that it was given to, in their order."""
    _parts: Mapping[int, tuple[int, ...]]
    """By GPU instance that several compute instances share, these."""
    _unknown: frozenset[int]
    _certain: bool

    @classmethod
    def of(cls, attribution: Attribution) -> Self:
        """Take them from an attribution.

        An id that matches no device may mean any, and a scheduler that gives out fractions puts containers on other
        GPUs than the kubelet recorded: then every device may be allocated to more pods than are listed.
        """
        containers: dict[int, set[PodContainer]] = {}
        for each in attribution.allocations:
            containers.setdefault(each.device, set()).add(each.container)
        moved = any(each.sharing == "fraction" or each.resource == _VOLCANO for each in attribution.allocations)
        return cls(
            {position: tuple(sorted(found)) for position, found in containers.items()},
            _parts_of(attribution),
            frozenset(n for n, state in enumerate(attribution.states) if state.pods is None),
            not (moved or attribution.unmatched),
        )

    def pods(self, device: int) -> frozenset[tuple[str, str]] | None:
        """Return namespace and name of the pods that have the device or a part of it; None where that is not known."""
        parts = self._parts.get(device, ())
        if not self._certain or not self._unknown.isdisjoint(parts or (device,)):
            return None
        return frozenset(each[:2] for position in (device, *parts) for each in self.containers.get(position, ()))


def _parts_of(attribution: Attribution) -> Mapping[int, tuple[int, ...]]:
    wholes = {(each.uuid, each.gi): n for n, each in enumerate(attribution.inventory) if each.ci < 0}
    parts: dict[int, tuple[int, ...]] = {}
    for position, each in enumerate(attribution.inventory):
        whole = wholes.get((each.uuid, each.gi))
        if each.ci >= 0 and whole is not None:
            parts[whole] = (*parts.get(whole, ()), position)
    return parts
