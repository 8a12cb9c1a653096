"""Checks the node exporter's command line and environment, and makes a `NodeConfig` of them.

In: the parsed arguments. Out: the checked configuration, or ConfigError with a message for the user.
"""

import argparse
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exporter.config import (
    MAX_INTERVAL_SECONDS,
    ConfigError,
    LogOptions,
    WebOptions,
    log_options,
    parse_names,
    web_options,
)
from exporter.node.devices.device_source import SourceName
from exporter.node.devices.labels import LabelStyle

DEFAULT_COUNTERS = "/etc/dcgm-exporter/default-counters.csv"
"""Where the images of dcgm-exporter and of gpugauge have the file; the GPU Operator refers to it by this path."""
MIN_INTERVAL_MS = 100
MAX_INTERVAL_MS = MAX_INTERVAL_SECONDS * 1000


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The node exporter's checked configuration."""

    web: WebOptions
    log: LogOptions
    source: SourceName
    interval: float
    """Seconds between collections."""
    counters_file: Path | None
    """The counters file; None means the built-in default."""
    kubernetes: bool
    """Whether devices are attributed to pods."""
    kubelet_socket: str
    remote: str | None
    """Address of a host engine; None means that no host engine was named."""
    scenario: Path | None
    libdcgm: Path | None
    resource_names: tuple[str, ...]
    """Further resource names that mean GPUs."""
    expected_gpus: int
    style: LabelStyle
    ignored_flags: tuple[str, ...] = ()
    """Flags of dcgm-exporter that were given and are ignored for compatibility."""


def node_config(arguments: argparse.Namespace, environment: Mapping[str, str]) -> NodeConfig:
    """Check the command line and the environment. Raises ConfigError."""
    return NodeConfig(
        web=web_options(arguments),
        log=log_options(arguments),
        source=arguments.source,
        interval=parse_interval(str(arguments.collect_interval)),
        counters_file=counters_path(arguments.collectors),
        kubernetes=arguments.kubernetes,
        kubelet_socket=arguments.pod_resources_kubelet_socket,
        remote=remote_address(arguments, environment),
        scenario=Path(arguments.scenario) if arguments.scenario else None,
        libdcgm=Path(arguments.libdcgm) if arguments.libdcgm else None,
        resource_names=parse_names(arguments.nvidia_resource_names),
        expected_gpus=arguments.expected_gpus,
        style=label_style(arguments, environment),
        ignored_flags=tuple(arguments.ignored_flags or ()),
    )


def parse_interval(text: str) -> float:
    """Convert `--collect-interval` from milliseconds to seconds. Raises ConfigError outside 0.1 s to 1 h."""
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
    """The Kubernetes node name from NODE_NAME where it is set, else the machine's host name."""
    return environment.get("NODE_NAME") or socket.gethostname()


def remote_address(arguments: argparse.Namespace, environment: Mapping[str, str]) -> str | None:
    """The host engine's address; None means that no host engine was named."""
    given = arguments.remote_hostengine_info or environment.get("DCGM_REMOTE_HOSTENGINE_INFO")
    return str(given) if given else None


def counters_path(given: str | None) -> Path | None:
    """The counters file to read. None means our built-in default, where neither a flag nor the usual path gives one."""
    if given:
        return Path(given)
    usual = Path(DEFAULT_COUNTERS)
    return usual if usual.is_file() else None


def label_style(arguments: argparse.Namespace, environment: Mapping[str, str]) -> LabelStyle:
    """The options that rename or leave out labels of DCGM-named series."""
    return LabelStyle(
        hostname=node_name(environment),
        hostname_label="none" if arguments.no_hostname else arguments.hostname_label,
        old_namespace=arguments.use_old_namespace,
        allocation_labels=arguments.allocation_labels != "none",
        replace_blanks_in_model=arguments.replace_blanks_in_model_name,
    )
