"""Where the pods of this node are from, as attribution uses it. It loads no HTTP client: most nodes need none."""

from typing import Protocol

from exporter.node.pods.pod import NodePod, NodePods
from exporter.node.service_account.watched_kind import ReflectorView


class KnownPods(Protocol):
    """Where the pods of this node are from. Reads cost nothing: what is read is known already."""

    name: str

    def read(self) -> NodePods:
        """The pods. Raises SourceError while the last attempt to bring them up to date has failed."""
        ...

    @property
    def kept(self) -> NodePods | None:
        """The pods as they were known last, also after a failure; None when that is too long ago."""
        ...

    @property
    def state(self) -> ReflectorView[NodePod]:
        """What is known now."""
        ...

    def close(self) -> None: ...
