"""What the cluster watcher is told once, at start."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """Where the API server is, what counts as a GPU, and how much is shown.

    The API server is found by the first of these that is given: `api_server` (a plain http URL without
    authentication, for demonstrations and tests), `kubeconfig` or `context`, the pod's own service account, the
    user's default kubeconfig.
    """

    api_server: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    resources: tuple[str, ...] = ()
    """Further resource names that count as GPUs, such as `amd.com/gpu`; a trailing `*` stands for any ending."""
    interval: float = 30.0
    """Seconds between passes."""
    tracked_pods: int = 500
    """At most so many waiting pods get series of their own, the oldest first."""
    tracked_after: float = 60.0
    """Seconds a pod must have waited before it gets series of its own."""
    stale_after: float = 120.0
    """Seconds without contact after which the objects of a kind are no longer shown.

    A healthy watch is in touch at least every `watch_seconds`: it ends by itself and is resumed. Two minutes leave
    room for one restart of the API server and no more.
    """
    watch_seconds: float = 90.0
    """Longest time one watch request lasts, in seconds; each lasts between two thirds of it and all of it."""
    page: int = 500
    """Objects asked for at once while listing."""
