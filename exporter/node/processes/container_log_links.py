"""Reads which container has which id from the links that the kubelet makes for the logs of containers.

For each container that it starts, the kubelet makes a link in /var/log/containers: `<pod>_<namespace>_<container>-<id>
.log`, which leads to `<folder>/<namespace>_<pod>_<uid>/<container>/<n>.log`. The names in the link itself can be cut
off, those in its target never. Only names are read: no log is opened, and none has to be mounted.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from exporter.node.attribution.matching.attribute import PodContainer
from exporter.node.devices.readings.processes import ProcessReason
from exporter.node.processes.known_containers import KnownContainers
from exporter.source import SourceError

MAX_LINKS = 16_384
"""More than any node has: a kubelet runs at most some hundred pods, and keeps a few links of each container."""
SETTLED_NS = 1_000_000_000
"""A folder that changed within this time may change again without another time of change."""
_ID = re.compile(r"-([0-9a-f]{64})\.log")
_TARGET = re.compile(
    r".*/([a-z0-9][-a-z0-9]{0,62})_([a-z0-9][-a-z0-9.]{0,252})_([0-9a-f][-0-9a-f]{30,62})/([a-z0-9][-a-z0-9]{0,62})/[0-9]+\.log"
)


class ContainerLogLinks:
    """Reads the folder again when it has changed. For use by one thread."""

    def __init__(self, folder: Path, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self._folder, self._wall_ns = folder, wall_ns
        self._changed_at = -1
        self._known: KnownContainers | None = None

    def read(self) -> KnownContainers:
        """Return the containers of the node. Raises SourceError."""
        try:
            changed_at = self._folder.stat().st_mtime_ns
            if self._known is None or changed_at != self._changed_at:
                self._known = KnownContainers.of_containers(dict(_containers(self._folder)))
                settled = self._wall_ns() - changed_at > SETTLED_NS
                self._changed_at = changed_at if settled else -1
        except OSError as error:
            self._known = None
            message = f"{self._folder}: {error.strerror}, and there is no pod metadata"
            raise SourceError(ProcessReason.PODS_UNKNOWN, message) from None
        return self._known


def _containers(folder: Path) -> Iterator[tuple[str, PodContainer]]:
    """Yield id and name of each container; what is no link of the kubelet's is left out."""
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number == MAX_LINKS:
                return
            found = _ID.search(entry.name)
            try:
                target = _TARGET.fullmatch(os.readlink(entry.path)) if found else None  # noqa: PTH115 - no Path for each
            except OSError:  # no link, or removed meanwhile
                continue
            if found and target:
                namespace, pod, uid, container = target.groups()
                yield found[1], PodContainer(namespace, pod, container, uid)
