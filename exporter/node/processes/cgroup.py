"""Finds the pod and the container of a process in the text of its `/proc/<pid>/cgroup`. No I/O, no state.

The kubelet names a control group after the uid of each pod, and the container runtime one inside it after the id of
each container: by systemd's names or plain ones, below whatever root, with control groups of version 1 or 2. A process
in a container can only make control groups below that of its container, so the first pod in a path is the true one.
"""

import re
from typing import NamedTuple

_UID = "[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32}"
_POD = re.compile(rf"(?:^|[/:-])pod({_UID})(?:\.slice)?(?=[/:]|$)")
"""The group of a pod. Systemd's names have `_` for `-`; the uid of a static pod in a path is a hash without any."""
_CONTAINER = re.compile(r"[/:](?:cri-containerd[-:]|crio-|docker-|libpod-)?([0-9a-f]{64})(?:\.scope)?(?=/|$)")
"""The group of a container, right behind that of its pod. `crio-conmon-…` is the monitor beside a container."""


class ContainerPlace(NamedTuple):
    """The container that a process runs in."""

    pod_uid: str
    """As `plain_uid` gives it."""
    container_id: str = ""
    """64 hexadecimal digits; empty where the path names none, as for a monitor process."""


class UnclearCgroupError(ValueError):
    """The control groups of a process name several pods."""


def plain_uid(uid: str) -> str:
    """Return the uid of a pod without separators, which differ between the places that have it."""
    return uid.replace("-", "").replace("_", "").lower()


def container_of(text: str) -> ContainerPlace | None:
    """Return the container of a process; None where it is in no pod. Raises UnclearCgroupError.

    With version 1 there is a line for each controller, of which any can name the pod and others `/`.
    """
    found = {place for line in text.splitlines() if (place := _in_path(line.split(":", 2)[-1])) is not None}
    uids = {place.pod_uid for place in found}
    ids = {place.container_id for place in found if place.container_id}
    if len(uids) > 1:
        raise UnclearCgroupError(f"{len(uids)} pods")
    if not uids:
        return None
    return ContainerPlace(uids.pop(), ids.pop() if len(ids) == 1 else "")


def _in_path(path: str) -> ContainerPlace | None:
    pod = _POD.search(path)
    if pod is None:
        return None
    container = _CONTAINER.match(path, pod.end())
    return ContainerPlace(plain_uid(pod[1]), container[1] if container else "")
