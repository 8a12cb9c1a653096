"""What the programs are told: flags, each with an environment default, checked into frozen records.

The only reader of the environment. Flags and variables that dcgm-exporter users have in their manifests keep
their names and meaning; those without effect here are accepted and named once in the log.
"""

import argparse
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from exporter.cluster.config import ClusterConfig
from exporter.node.devices.labels import LabelStyle

DEFAULT_SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
DEFAULT_COUNTERS = "/etc/dcgm-exporter/default-counters.csv"
MIN_INTERVAL_MS = 100
MAX_INTERVAL_MS = 3_600_000


class ConfigError(Exception):
    """One sentence for the operator; the program does not start with it."""


@dataclass(frozen=True, slots=True)
class WebConfig:
    """Where and how pages are served."""

    address: str
    config_file: Path | None
    systemd_socket: bool


@dataclass(frozen=True, slots=True)
class LogConfig:
    """How the program speaks to its operator."""

    format: str
    debug: bool


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The node exporter's configuration. `interval` is in seconds."""

    web: WebConfig
    log: LogConfig
    source: Literal["auto", "dcgm", "nvml", "simulated"]
    interval: float
    collectors: Path | None
    kubernetes: bool
    kubelet_socket: str
    remote: str | None
    scenario: Path | None
    libdcgm: Path | None
    resource_names: tuple[str, ...]
    expected_gpus: int
    style: LabelStyle
    without_effect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WatcherConfig:
    """The cluster watcher's configuration."""

    web: WebConfig
    log: LogConfig
    cluster: ClusterConfig


def truth(text: str) -> bool:
    """A Boolean as dcgm-exporter's environment variables spell it."""
    if text in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if text in {"0", "f", "F", "false", "FALSE", "False", ""}:
        return False
    raise ConfigError(f"{text!r} is neither true nor false")


def names(text: str) -> tuple[str, ...]:
    """A comma-separated list."""
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def interval(text: str) -> float:
    """Milliseconds on the command line, seconds inside."""
    try:
        milliseconds = int(text)
    except ValueError:
        raise ConfigError(f"--collect-interval {text!r} is not a whole number of milliseconds") from None
    if not MIN_INTERVAL_MS <= milliseconds <= MAX_INTERVAL_MS:
        raise ConfigError(
            f"--collect-interval {milliseconds} is outside {MIN_INTERVAL_MS}..{MAX_INTERVAL_MS} milliseconds"
        )
    return milliseconds / 1000


def node_name(environment: Mapping[str, str]) -> str:
    """The Kubernetes node name where it is known, else the machine's own name."""
    return environment.get("NODE_NAME") or socket.gethostname()


def remote(arguments: argparse.Namespace, environment: Mapping[str, str]) -> str | None:
    """The host engine's address; only its presence selects a remote engine."""
    given = arguments.remote_hostengine_info or environment.get("DCGM_REMOTE_HOSTENGINE_INFO")
    return str(given) if given else None


def collectors(given: str | None) -> Path | None:
    """The counters file; the usual place counts only where it exists, else our own default set is used."""
    if given:
        return Path(given)
    usual = Path(DEFAULT_COUNTERS)
    return usual if usual.is_file() else None


def node_config(arguments: argparse.Namespace, environment: Mapping[str, str]) -> NodeConfig:
    """Check what the command line and environment say; raises ConfigError with one sentence."""
    return NodeConfig(
        web=web_config(arguments),
        log=LogConfig(arguments.log_format, arguments.debug),
        source=arguments.source,
        interval=interval(str(arguments.collect_interval)),
        collectors=collectors(arguments.collectors),
        kubernetes=arguments.kubernetes,
        kubelet_socket=arguments.pod_resources_kubelet_socket,
        remote=remote(arguments, environment),
        scenario=Path(arguments.scenario) if arguments.scenario else None,
        libdcgm=Path(arguments.libdcgm) if arguments.libdcgm else None,
        resource_names=names(arguments.nvidia_resource_names),
        expected_gpus=arguments.expected_gpus,
        style=label_style(arguments, environment),
        without_effect=tuple(arguments.without_effect or ()),
    )


def web_config(arguments: argparse.Namespace) -> WebConfig:
    """The serving part, the same for both programs."""
    file = Path(arguments.web_config_file) if arguments.web_config_file else None
    return WebConfig(arguments.address, file, arguments.web_systemd_socket)


def label_style(arguments: argparse.Namespace, environment: Mapping[str, str]) -> LabelStyle:
    """The renaming options."""
    return LabelStyle(
        hostname=node_name(environment),
        hostname_label="none" if arguments.no_hostname else arguments.hostname_label,
        old_namespace=arguments.use_old_namespace,
        holder=arguments.holder_labels != "none",
        replace_blanks_in_model=arguments.replace_blanks_in_model_name,
    )


def watcher_config(arguments: argparse.Namespace) -> WatcherConfig:
    """The watcher's configuration; raises ConfigError with one sentence."""
    if not 1 <= arguments.interval <= MAX_INTERVAL_MS / 1000:
        raise ConfigError(f"--interval {arguments.interval} is outside 1..{MAX_INTERVAL_MS // 1000} seconds")
    return WatcherConfig(
        web=web_config(arguments),
        log=LogConfig(arguments.log_format, arguments.debug),
        cluster=ClusterConfig(
            api_server=arguments.api_server or None,
            kubeconfig=arguments.kubeconfig or None,
            context=arguments.context or None,
            resources=names(arguments.nvidia_resource_names),
            interval=arguments.interval,
        ),
    )
