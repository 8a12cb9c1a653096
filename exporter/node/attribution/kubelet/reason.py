"""Why the kubelet could not be read, and the limits within which it is."""

import grpc

from exporter.node.attribution.allocation import KEEP_SECONDS
from exporter.reason import Reason
from exporter.source import SourceError

DEADLINE_SECONDS = 5.0
ANSWER_BYTES = 16 * 2**20
"""A thousand pods with 48 devices each make 3.4 MB; gRPC's own limit of 4 MiB has been too small in practice."""
MAX_ALLOCATIONS = 65_536
"""The most allocations of GPU devices that are used, because each takes memory: 16 MiB can have 400,000 of them.

16 GPUs with 7 MIG devices each, all given to containers through 500 replicas, make 56,000.
"""
OFFER_DEADLINE_SECONDS = 2.0
"""For the call that asks what the kubelet offers: it is made once a minute, and is not worth a longer collection."""
EMPTY_LIST_SECONDS = 60.0
"""How long an empty list is rejected after the last one with pods."""
START_SECONDS = 15.0
"""How long a list that lacks allocations is rejected after the first answer of a kubelet that has restarted."""


class KubeletReason(Reason):
    """Why the kubelet could not be read: label `reason` of `gpugauge_source_problem{source="kubelet"}`."""

    SOCKET_MISSING = (
        "socket_missing",
        "The kubelet's PodResources socket is not there, or is not a socket.",
        "Mount the kubelet's folder pod-resources, not the socket; check --kubelet-root, and that the kubelet runs.",
    )
    NO_PERMISSION = (
        "no_permission",
        "The kubelet's socket may not be opened by this user.",
        "Run as user 0, as the manifest does, or relax the security policy for this mount.",
    )
    UNAVAILABLE = (
        "unavailable",
        "The kubelet does not accept the connection, or closed it.",
        f"Check whether the kubelet runs; a restart takes seconds. The last allocations stay for {KEEP_SECONDS:.0f} s.",
    )
    STARTING = (
        "starting",
        "The kubelet lists no pod at all after it listed some, or fewer allocations than before right after its start.",
        (
            f"None needed: an empty list is accepted {EMPTY_LIST_SECONDS:.0f} s after the last one with pods, "
            f"a shorter one {START_SECONDS:.0f} s after the start."
        ),
    )
    TIMEOUT = (
        "timeout",
        f"The kubelet did not answer within {DEADLINE_SECONDS:.0f} s.",
        "Check the load of the node and the kubelet's log.",
    )
    RATE_LIMITED = (
        "rate_limited",
        "The kubelet rejected the call because its socket gets more than 100 calls a second.",
        "Find the other client of the PodResources socket that calls it in a loop.",
    )
    TOO_LARGE = (
        "too_large",
        f"The kubelet's answer is larger than {ANSWER_BYTES // 2**20} MiB.",
        "Report it with the number of pods and devices of the node.",
    )
    TOO_MANY_ALLOCATIONS = (
        "too_many_allocations",
        f"The kubelet lists more than {MAX_ALLOCATIONS} allocations of GPU devices; none is used.",
        "Check the number of replicas that the device plugin makes, and which names --nvidia-resource-names adds.",
    )
    UNIMPLEMENTED = (
        "unimplemented",
        "The kubelet offers the PodResources API neither as v1 nor as v1alpha1.",
        "Update to Kubernetes 1.20 or newer, or enable the KubeletPodResources feature gate.",
    )
    ALLOCATABLE_UNREADABLE = (
        "allocatable_unreadable",
        "The kubelet does not say which devices it offers (GetAllocatableResources): gpugauge_device_allocatable ends.",
        "See the log for the answer, and the kubelet's log. Allocations are listed by another call and are as before.",
    )
    INVALID_ANSWER = (
        "invalid_answer",
        "The kubelet's answer could not be decoded, or the kubelet reported an internal error.",
        "Check the kubelet's log.",
    )


_BY_CODE = {
    grpc.StatusCode.DEADLINE_EXCEEDED: KubeletReason.TIMEOUT,
    grpc.StatusCode.UNIMPLEMENTED: KubeletReason.UNIMPLEMENTED,
    grpc.StatusCode.PERMISSION_DENIED: KubeletReason.NO_PERMISSION,
    grpc.StatusCode.INTERNAL: KubeletReason.INVALID_ANSWER,
}


def kubelet_error(error: grpc.RpcError, call: str = "List") -> SourceError:
    code, details = error.code(), error.details() or ""
    return SourceError(_reason(code, details.lower()), f"the kubelet's {call} failed: {code.name}: {details}")


def _reason(code: grpc.StatusCode, details: str) -> KubeletReason:
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        # gRPC has one code for two causes: the kubelet's limit on calls (shared by all clients) and our limit on bytes.
        return KubeletReason.TOO_LARGE if "larger than max" in details else KubeletReason.RATE_LIMITED
    if code is grpc.StatusCode.UNAVAILABLE and "permission denied" in details:
        return KubeletReason.NO_PERMISSION
    return _BY_CODE.get(code, KubeletReason.UNAVAILABLE)
