"""Parses a scheduler's message in a pod's PodScheduled condition to causes. No I/O, no state.

A message counts causes over nodes (`3 Insufficient cpu, 2 node(s) had …`) or states one cause for the pod; then it
may report what preemption found. No part of its text leaves this module, except texts that no table has, for the log.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from exporter.cluster.scheduling.reasons.wordings import ANYWHERE, KAI_RESOURCES, PLUGINS, STARTS, Cause
from exporter.gpu_names import GpuResources, share_of

_HEAD = re.compile(r"(?:\d+/\d+|all) nodes are (?:un)?available: ?|nodes with enough resources were found: ?", re.ASCII)
_NEXT_ENTRY = re.compile(r", (?=\d+ )", re.ASCII)
_ALONE = re.compile(r"\b1 minAvailable", re.ASCII)
_ORIGIN = "Origin reason is "
_BEGINNINGS = tuple(sorted(STARTS, key=lambda wording: -len(wording.text)))
_PREEMPTION = "preemption: "
_FAILED_PREEMPTION = re.compile(r"preemption: (?:0/\d+ nodes|not eligible due to (?!a terminating pod))", re.ASCII)
_LONGEST_LOGGED = 160


@dataclass(frozen=True, slots=True)
class Message:
    """What a message states."""

    causes: frozenset[Cause]
    unknown: tuple[str, ...] = ()
    """The texts that no table has, shortened."""
    preemption_failed: bool = False
    """Whether preemption was tried in vain. It is never tried where nothing is written about it."""


@lru_cache(maxsize=4096)
def parse(message: str, gpus: GpuResources) -> Message:
    """Return what the message states; no cause for an empty message."""
    causes, unknown = set[Cause](), []
    for text in _texts(message):
        cause = _cause(text, gpus)
        causes.add(cause)
        if cause is Cause.UNKNOWN:
            unknown.append(text[:_LONGEST_LOGGED])
    return Message(frozenset(causes), tuple(unknown), _FAILED_PREEMPTION.search(message) is not None)


def _texts(message: str) -> Iterator[str]:
    """Yield the texts about nodes, or the one about the pod, without counts."""
    if _ORIGIN in message and _ALONE.search(message):
        # Volcano makes a gang of every pod: for one that waits for no other its own cause counts.
        message = message.split(_ORIGIN, 1)[1]
    head = _HEAD.search(message)
    about_pod = message[: head.start()] if head else message
    if any(wording.text in about_pod for wording in ANYWHERE):
        yield about_pod
    elif head is None:
        yield from filter(None, [message.strip()])
    else:
        yield from _entries(_before_preemption(message[head.end() :]))


def _before_preemption(text: str) -> str:
    """Return the part before that of preemption, without its full stop.

    Since 1.34 other plugins may write between the two (`no new claims to deallocate, preemption: …`), so the part ends
    at the first full stop followed by a blank: no name of a resource, taint or volume contains a blank.
    """
    return text.split(". ", 1)[0].strip().removesuffix(".")


def _entries(histogram: str) -> Iterator[str]:
    for entry in _NEXT_ENTRY.split(histogram):
        count, _, text = entry.partition(" ")
        text = text if count.isdigit() else entry
        yield from filter(None, [text.strip()])


def _cause(text: str, gpus: GpuResources) -> Cause:
    # An extender counts GPUs (`1/8 CardNotHealth`) or nodes (`3 nodes CardNotHealth(a,b,c)`) in a text of its own, and
    # Volcano writes the name of the plugin before its text.
    text = re.sub(r"^(?:\d+/\d+ |nodes )", "", text).rpartition("predicates failed ")[2]
    resource = text.removeprefix("Insufficient ")
    if resource != text:
        return _insufficient(resource.split(" ", 1)[0].rstrip("."), gpus)
    if "didn't satisfy plugin" in text:
        return _by_plugin(text)
    found = next((wording.cause for wording in _BEGINNINGS if text.startswith(wording.text)), None)
    if found is None and "didn't have enough resources: " in text:
        resource = text.rpartition("didn't have enough resources: ")[2].split(",", 1)[0].rstrip(".")
        return KAI_RESOURCES.get(resource) or _insufficient(resource, gpus)
    return found or next((wording.cause for wording in ANYWHERE if wording.text in text), Cause.UNKNOWN)


def _by_plugin(text: str) -> Cause:
    """The cause of the last plugin that is named: the earlier ones only left fewer nodes to choose from."""
    names = re.findall(r"\w+", text.rpartition("didn't satisfy plugin")[2])
    return next((PLUGINS[name] for name in reversed(names) if name in PLUGINS), Cause.NO_WORD)


def _insufficient(resource: str, gpus: GpuResources) -> Cause:
    if resource in gpus or share_of(resource) is not None:
        return Cause.GPU
    usual = resource in ("cpu", "memory") or resource.startswith("hugepages-")
    return Cause.CPU_OR_MEMORY if usual else Cause.OTHER_RESOURCE
