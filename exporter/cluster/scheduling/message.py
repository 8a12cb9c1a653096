"""The grammar of the scheduler's PodScheduled message, in the wordings of Kubernetes 1.20 to 1.36.

A message is a histogram of causes over nodes, or one sentence about the pod, followed by what preemption found.
Its text never leaves this module: only causes of a closed set do.
"""

import re
from enum import StrEnum

from exporter.gpu_names import GpuResources

_HEAD = re.compile(r"\d+/\d+ nodes are (?:un)?available: ?|all nodes are unavailable: ?")
_ENTRY = re.compile(r"(\d+) (.+?)(?=, \d+ |$)", re.DOTALL)
_INSUFFICIENT = re.compile(r"Insufficient (\S+)")
_PLACEMENT = re.compile(
    r"(?P<pods>node\(s\) didn't match pod (?:anti-)?affinity|node\(s\) didn't satisfy existing pods)"
    r"|node\(s\) didn't match (?:Pod's node affinity|scheduler-enforced node affinity|node selector)"
    r"|node\(s\) didn't match the requested node name|pod affinity terms conflict"
)
_ROOM = ("Too many pods", "node(s) pod number exceeded")


class Cause(StrEnum):
    """Why one node, or the cluster, does not take the pod."""

    GPU = "gpu"
    ROOM = "room"
    """Too little CPU, memory, storage or pod places."""
    SELECTOR = "selector"
    """Node selector, node affinity or node name."""
    NEIGHBOURS = "neighbours"
    """Affinity between pods."""
    TAINT = "taint"
    UNAVAILABLE = "unavailable"
    """Cordoned, or in a condition that the scheduler avoids."""
    OTHER = "other"


def causes(message: str, gpus: GpuResources) -> frozenset[Cause]:
    """Every cause that the message names; empty when it names none."""
    head = _HEAD.search(message)
    if head is None:
        return frozenset({Cause.OTHER}) if message.strip() else frozenset()
    histogram = _histogram(message[head.end() :])
    entries = [text for _, text in _ENTRY.findall(histogram)] if histogram[:1].isdigit() else [histogram]
    return frozenset(_cause(text.strip(), gpus) for text in entries if text.strip())


def _histogram(text: str) -> str:
    """The part before preemption's, without its full stop.

    Other plugins may speak between the two (`no new claims to deallocate, preemption: …` since 1.34), so the first
    full stop followed by a blank is the border: no resource, taint or volume name holds a blank.
    """
    return text.split(". ", 1)[0].strip().removesuffix(".")


def _cause(text: str, gpus: GpuResources) -> Cause:
    if found := _INSUFFICIENT.match(text):
        return _short_of(found[1], gpus)
    if text in _ROOM:
        return Cause.ROOM
    if text.startswith(("node(s) had taint", "node(s) had untolerated taint")):
        return Cause.TAINT
    if found := _PLACEMENT.match(text):
        return Cause.NEIGHBOURS if found["pods"] else Cause.SELECTOR
    if text.startswith(("node(s) were unschedulable", "node(s) had unknown conditions", "node(s) were not ready")):
        return Cause.UNAVAILABLE
    return Cause.OTHER


def _short_of(resource: str, gpus: GpuResources) -> Cause:
    if resource in gpus:
        return Cause.GPU
    usual = resource in ("cpu", "memory", "ephemeral-storage") or resource.startswith("hugepages-")
    return Cause.ROOM if usual else Cause.OTHER
