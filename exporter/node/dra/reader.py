"""Reads what the API server knows of this node's devices of ResourceClaims: its ResourceSlices, and single claims."""

import time
from collections.abc import Callable, Mapping

from exporter.api_objects.device_claims import DRA_GROUP, DRA_VERSIONS
from exporter.gpu_names import GPU_DRIVER
from exporter.node.dra.claim_reader import ClaimReader
from exporter.node.dra.device import DraDevice
from exporter.node.dra.knowledge import DraKnowledge
from exporter.node.dra.resource_claims import WantedClaims
from exporter.node.dra.resource_slices import ClaimableKey, SliceFacts, offered_devices, resource_slice
from exporter.node.service_account.account import ServiceAccount
from exporter.node.service_account.reasons import KEEP_SECONDS, ApiReason
from exporter.node.service_account.reflector import NodeReflector
from exporter.node.service_account.watched_kind import WatchedKind

SLICES, CLAIMS = "resourceslices", "resourceclaims"


def slices_of(node: str) -> WatchedKind[SliceFacts]:
    """The ResourceSlices of NVIDIA's DRA driver on one node."""
    selector = f"spec.nodeName={node},spec.driver={GPU_DRIVER}"
    paths = tuple(f"/apis/{DRA_GROUP}/{version}/{SLICES}" for version in DRA_VERSIONS)
    return WatchedKind(SLICES, paths, resource_slice, {"fieldSelector": selector})


class DraReader:
    """Keeps what is known current in threads of its own. Its methods are for one thread, and return within a moment."""

    def __init__(self, account: ServiceAccount, node: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` is in seconds and never jumps."""
        self._slices = NodeReflector(slices_of(node), account, clock)
        self._claims = ClaimReader(account, clock)
        self._listed: tuple[SliceFacts, ...] = ()
        self._devices: Mapping[ClaimableKey, DraDevice] = {}
        self._knowledge = DraKnowledge()

    def start(self) -> None:
        """Start to read."""
        self._slices.start()

    @property
    def problems(self) -> Mapping[str, tuple[ApiReason, str] | None]:
        """By kind of object that is read: (reason, message) while it cannot be."""
        return {SLICES: self._slices.view(KEEP_SECONDS).problem, CLAIMS: self._claims.problem}

    def knowledge(self, wanted: WantedClaims) -> DraKnowledge:
        """What is known now; the same object until something changes. `wanted` is what the kubelet lists."""
        listed, claims = self._slices.view(KEEP_SECONDS).objects or (), self._claims.view(wanted)
        if listed is not self._listed:
            self._listed, self._devices = listed, offered_devices(listed)
        if self._knowledge.devices is not self._devices or self._knowledge.claims is not claims:
            self._knowledge = DraKnowledge(self._devices, claims)
        return self._knowledge

    def close(self) -> None:
        """End the threads; bounded in time."""
        self._claims.close()
        self._slices.close()
