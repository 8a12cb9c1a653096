"""Parses the scheduler's message in a pod's PodScheduled condition to causes; wordings of Kubernetes 1.20 to 1.36.

A message counts causes over nodes (`3 Insufficient cpu, 2 node(s) had …`) or states one cause for the pod; then it
may report what preemption found. No part of its text leaves this module, only causes of a closed set.
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
_TOO_MANY_PODS = ("Too many pods", "node(s) pod number exceeded")


class Cause(StrEnum):
    """Why one node, or the cluster as a whole, cannot run the pod."""

    GPU = "gpu"
    """Too few free GPUs."""
    CPU_OR_MEMORY = "cpu_or_memory"
    """Too little free CPU, memory or storage, or too many pods."""
    SELECTOR = "selector"
    """Node selector, node affinity or node name."""
    POD_AFFINITY = "pod_affinity"
    """Affinity or anti-affinity between pods."""
    TAINT = "taint"
    """A taint that the pod does not tolerate."""
    NODE_UNAVAILABLE = "node_unavailable"
    """The node is cordoned, or in a condition that the scheduler avoids."""
    OTHER = "other"


def causes(message: str, gpus: GpuResources) -> frozenset[Cause]:
    """Return every cause that the message names; none for an empty message."""
    head = _HEAD.search(message)
    if head is None:
        return frozenset({Cause.OTHER}) if message.strip() else frozenset()
    histogram = _histogram(message[head.end() :])
    entries = [text for _, text in _ENTRY.findall(histogram)] if histogram[:1].isdigit() else [histogram]
    return frozenset(_cause(text.strip(), gpus) for text in entries if text.strip())


def _histogram(text: str) -> str:
    """Return the part before that of preemption, without its full stop.

    Since 1.34 other plugins may write between the two (`no new claims to deallocate, preemption: …`), so the part ends
    at the first full stop followed by a blank: no name of a resource, taint or volume contains a blank.
    """
    return text.split(". ", 1)[0].strip().removesuffix(".")


def _cause(text: str, gpus: GpuResources) -> Cause:
    if found := _INSUFFICIENT.match(text):
        return _insufficient(found[1], gpus)
    if text in _TOO_MANY_PODS:
        return Cause.CPU_OR_MEMORY
    if text.startswith(("node(s) had taint", "node(s) had untolerated taint")):
        return Cause.TAINT
    if found := _PLACEMENT.match(text):
        return Cause.POD_AFFINITY if found["pods"] else Cause.SELECTOR
    if text.startswith(("node(s) were unschedulable", "node(s) had unknown conditions", "node(s) were not ready")):
        return Cause.NODE_UNAVAILABLE
    return Cause.OTHER


def _insufficient(resource: str, gpus: GpuResources) -> Cause:
    if resource in gpus:
        return Cause.GPU
    usual = resource in ("cpu", "memory", "ephemeral-storage") or resource.startswith("hugepages-")
    return Cause.CPU_OR_MEMORY if usual else Cause.OTHER
