"""The cluster watcher's configuration: checks the command line and makes one frozen record of it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from exporter.config import (
    DEFAULT_INTERVAL_SECONDS,
    Arguments,
    ConfigError,
    LogOptions,
    WebOptions,
    log_options,
    web_options,
    web_warnings,
)

STALE_AFTER_SECONDS = 120.0
NAMESPACE_NAMES = ("team", "cost_center", "environment")
"""Labels of `gpugauge_namespace_info`: who pays for a namespace."""
NODE_NAMES = ("zone", "rack")
"""Labels of `gpugauge_node_info`: where a node stands."""
Keys = Mapping[str, str]
"""The key of the Kubernetes label, by our label name; a name without a key has an empty value."""
SERVICE_HOST = "KUBERNETES_SERVICE_HOST"
"""The variable by which every container of a cluster knows the API server."""
USUAL_KUBECONFIG = "~/.kube/config"
"""Where kubectl and the Kubernetes client look for a kubeconfig that is not named."""


class LeaseName(NamedTuple):
    """Which lease decides the replica that leads."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class SeriesLimits:
    """How many series one metric may have, by what its labels name: more than clusters have, and not without end."""

    pods: int = 200_000
    nodes: int = 20_000
    of_namespaces: int = 5_000
    """Of metrics that name a namespace, and a workload, a queue or a reason of it."""
    waits: int = 1_000
    """Histograms; each is nine series."""


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """Where the API server is, what counts as a GPU, and how much is exposed.

    The API server is found by the first of these that is given: `api_server` (a plain http URL without
    authentication, for demonstrations and tests), `kubeconfig` or `context`, the pod's own service account, the
    user's default kubeconfig.
    """

    api_server: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    resources: tuple[str, ...] = ()
    """Further resource names that count as GPUs, such as `amd.com/gpu`; a trailing `*` matches any ending."""
    interval: float = DEFAULT_INTERVAL_SECONDS
    """Seconds between collections."""
    tracked_workloads: int = 500
    """Of how many workloads pending pods get series of their own, at most; those that are pending longest."""
    tracked_pods: int = 3
    """How many pending pods of one workload get series of their own, at most; the oldest ones."""
    tracked_after: float = 60.0
    """Seconds that a pod must be pending before it gets series of its own."""
    stale_after: float = STALE_AFTER_SECONDS
    """Seconds without a confirmation by the API server after which the objects of a kind are no longer exposed.

    A healthy watch confirms its objects at least every `watch_seconds`, because it ends by itself and is resumed. The
    default is enough for one restart of the API server.
    """
    watch_seconds: float = 90.0
    """Longest time one watch request lasts, in seconds; each lasts between two thirds of it and all of it."""
    page_size: int = 500
    """How many objects one page of a list has, at most."""
    namespace_labels: Keys = field(default_factory=dict)
    """The labels of namespaces that say who pays for them."""
    node_labels: Keys = field(default_factory=dict)
    """The labels of nodes that say where they stand."""
    lease: LeaseName | None = None
    """The lease of which one replica exposes what is known of the cluster; None where there is only one replica."""
    prices: Path | None = None
    """The file with the prices of GPUs."""
    limits: SeriesLimits = SeriesLimits()


@dataclass(frozen=True, slots=True)
class WatcherConfig:
    """The whole program's configuration: serving, logging, and the cluster."""

    web: WebOptions
    log: LogOptions
    cluster: ClusterConfig
    warnings: tuple[str, ...] = ()
    """Messages for the log, about what was given and is not used."""


def watcher_config(arguments: Arguments, environment: Mapping[str, str]) -> WatcherConfig:
    """Make the configuration. Raises ConfigError when it leads to no API server."""
    cluster = ClusterConfig(
        api_server=arguments.api_server or None,
        kubeconfig=arguments.kubeconfig or None,
        context=arguments.context or None,
        resources=arguments.nvidia_resource_names,
        interval=arguments.interval,
        namespace_labels=arguments.namespace_labels,
        node_labels=arguments.node_labels,
        lease=LeaseName(*arguments.lease) if arguments.lease else None,
        prices=Path(arguments.prices) if arguments.prices else None,
    )
    _check_api_server(cluster, environment)
    return WatcherConfig(
        web_options(arguments), log_options(arguments), cluster, (*arguments.warnings, *web_warnings(arguments))
    )


def _check_api_server(config: ClusterConfig, environment: Mapping[str, str]) -> None:
    """Raise ConfigError when nothing names an API server, which no later attempt could mend.

    Whether what names it can be used is found when the watcher connects, and tried again.
    """
    if config.api_server is not None:
        return
    if config.kubeconfig is not None:
        if not any(map(_exists, config.kubeconfig.split(os.pathsep))):
            raise ConfigError(f"the kubeconfig {config.kubeconfig!r} cannot be found")
        return
    in_cluster = SERVICE_HOST in environment and config.context is None
    if not in_cluster and not _exists(USUAL_KUBECONFIG):
        raise ConfigError("no API server is known: run in a cluster or give --kubeconfig (variable KUBECONFIG)")


def _exists(name: str) -> bool:
    # Path.exists raises where a folder may not be read, and Path.expanduser where there is no home.
    return os.path.exists(os.path.expanduser(name))  # noqa: PTH110, PTH111
