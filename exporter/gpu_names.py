"""Which extended resources are GPUs, and how their names are written in a label."""

import re
from dataclasses import dataclass
from functools import lru_cache

_WHOLE = frozenset({"nvidia.com/gpu", "nvidia.com/gpu.shared"})
_SLICE = "nvidia.com/mig-"
_OTHER = re.compile(r"[^a-zA-Z0-9]")


@dataclass(frozen=True, slots=True)
class GpuResources:
    """`nvidia.com/gpu`, its shared form, every MIG profile, and what the operator names besides."""

    names: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in _WHOLE or name.startswith((_SLICE, *self.prefixes)) or name in self.names


def gpu_resources(extra: tuple[str, ...] = ()) -> GpuResources:
    """The rule with further names; one that ends in `*` stands for every name that begins so."""
    prefixes = tuple(name[:-1] for name in extra if name.endswith("*") and len(name) > 1)
    return GpuResources(frozenset(name for name in extra if not name.endswith("*")), prefixes)


@lru_cache(maxsize=1024)
def spelled(name: str) -> str:
    """A resource name as kube-state-metrics writes it in labels: `nvidia.com/gpu` is `nvidia_com_gpu`."""
    return _OTHER.sub("_", name)
