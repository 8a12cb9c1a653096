"""Makes a `NodeConfig` of the node exporter's command line and environment.

In: the parsed arguments, whose values were checked. Out: the configuration, with warnings for the user.
"""

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from exporter.config import Arguments, LogOptions, WebOptions, log_options, web_options, web_warnings
from exporter.gpu_names import ResourcePatterns, gpu_resources
from exporter.node.attribution.matching.mps import ReplicaChoice
from exporter.node.attribution.matching.rules import AttributionRules
from exporter.node.audit.options import AuditOptions, audit_options
from exporter.node.config_file.content import FieldList, NodeConfigFile
from exporter.node.dcgm.host_engine.address import AddressError, parse_address
from exporter.node.dcgm.host_engine.same_machine import on_this_machine
from exporter.node.devices.computed.computed_families import CountWindows
from exporter.node.devices.counters.watch_intervals import Pace, pace_of
from exporter.node.devices.entities.component_selection import ComponentSelections
from exporter.node.devices.entities.selection import Selection
from exporter.node.devices.fields.device_source import SourceName
from exporter.node.devices.series.labels import LabelStyle
from exporter.node.pods.options import PodOptions, pod_options, pod_warnings
from exporter.node.service_account.account import ConfigMapName, ServiceAccount, service_account

DEFAULT_COUNTERS = "/etc/dcgm-exporter/default-counters.csv"
"""Where the images of dcgm-exporter and of gpugauge have the file; the GPU Operator refers to it by this path."""
MIN_INTERVAL_MS = 100


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """What is read and exposed of the processes on GPUs."""

    read: bool
    host_proc: Path | None
    """Folder where /proc of the node is mounted; None for the exporter's own /proc."""
    container_log_links: Path
    virtual_gpus: bool
    """Whether two DCGM-named families have series of the pods that share a GPU."""


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The node exporter's checked configuration."""

    web: WebOptions
    log: LogOptions
    source: SourceName
    pace: Pace
    """How often is read, and how often fields are sampled."""
    counters_file: Path | None
    """The counters file that was named; None where none was."""
    config_map: ConfigMapName | None
    """The ConfigMap that has the counters; the counters file is read until it can be used."""
    service_account: ServiceAccount
    fields: FieldList | None
    """The fields that the configuration file lists, in place of a counters file."""
    kubernetes: bool
    """Whether devices are attributed to pods."""
    kubelet_root: str
    """Folder of the kubelet."""
    kubelet_socket: str
    remote: str | None
    """Address of a host engine; None means that no host engine was named."""
    scenario: Path | None
    libdcgm: Path | None
    bindings: Path | None
    """Folder of NVIDIA's Python bindings of DCGM; None means where NVIDIA's packages have them."""
    resource_names: tuple[str, ...]
    """Further resource names that mean GPUs."""
    index_resources: tuple[str, ...]
    """Resource names whose device ids are indices."""
    reservation_namespaces: tuple[str, ...]
    monitoring_namespaces: tuple[str, ...]
    dra: bool
    """Whether ResourceSlices and ResourceClaims are read from the API server."""
    selections: ComponentSelections
    devices: Selection
    """Of which devices DCGM-named series are exposed."""
    jobs_folder: Path | None
    """Folder of the files that map GPUs to HPC jobs; None for none."""
    processes: ProcessOptions
    replicas: ReplicaChoice
    """How replicas of a GPU share it."""
    mps_root: Path
    """Folder with the pipes of MPS."""
    expected_gpus: int
    health_requires_gpus: bool
    """Whether /health is 503 until a GPU was read."""
    state_file: Path | None
    """Where to remember what must survive a restart of the exporter; None for nowhere."""
    style: LabelStyle
    windows: CountWindows
    normalized: bool = True
    """Whether normalized values are exposed."""
    pods: PodOptions = PodOptions()  # noqa: RUF009 - it does not change
    audit: AuditOptions | None = None
    """None without an audit log."""
    profiling_pause_file: Path | None = None
    """While this file is there, profiling is paused."""
    usual_counters_file: Path = Path(DEFAULT_COUNTERS)
    """The counters file where none was named, while something is there; the built-in list otherwise."""
    warnings: tuple[str, ...] = ()
    """Messages for the log, about what was given and is not used as it is."""

    @property
    def interval(self) -> float:
        """Seconds between collections."""
        return self.pace.collection

    @property
    def attribution_rules(self) -> AttributionRules:
        """What attribution cannot read from the node."""
        return AttributionRules(
            gpus=gpu_resources(self.resource_names),
            indexed=ResourcePatterns(self.index_resources),
            reservation_namespaces=frozenset(self.reservation_namespaces),
            monitoring_namespaces=frozenset(self.monitoring_namespaces),
        )

    @property
    def reads_this_machine(self) -> bool:
        """Whether the GPUs are certainly real ones of this machine.

        What is found here says nothing about simulated GPUs, nor about those of a host engine elsewhere.
        """
        return self.source != "simulated" and (self.remote is None or on_this_machine(self.remote))


def node_config(arguments: Arguments, environment: Mapping[str, str]) -> NodeConfig:
    """Make the configuration of values that were checked when they were read. Raises ConfigError.

    A flag or variable comes before the configuration file, and that before a default.
    """
    file = _config_file(arguments)
    named = "collectors" in arguments.given
    listed = not named and arguments.configmap_data is None
    return NodeConfig(
        web=web_options(arguments),
        log=log_options(arguments),
        source=arguments.source or _usual_source(arguments),
        pace=_pace(arguments, file),
        counters_file=Path(arguments.collectors) if named else file.counters_file,
        config_map=arguments.configmap_data,
        service_account=service_account(environment),
        fields=file.fields if listed else None,
        kubernetes=arguments.kubernetes,
        kubelet_root=arguments.kubelet_root,
        kubelet_socket=_kubelet_socket(arguments),
        remote=arguments.remote_hostengine_info or None,
        scenario=Path(arguments.scenario) if arguments.scenario else None,
        libdcgm=Path(arguments.libdcgm) if arguments.libdcgm else None,
        bindings=Path(arguments.dcgm_bindings) if arguments.dcgm_bindings else None,
        resource_names=arguments.nvidia_resource_names,
        index_resources=arguments.index_resource_names,
        reservation_namespaces=arguments.reservation_namespaces,
        monitoring_namespaces=arguments.monitoring_namespaces,
        dra=arguments.kubernetes and arguments.kubernetes_enable_dra,
        selections=ComponentSelections(arguments.switch_devices, arguments.cpu_devices),
        devices=arguments.devices,
        jobs_folder=Path(arguments.hpc_job_mapping_dir) if arguments.hpc_job_mapping_dir else None,
        processes=ProcessOptions(
            read=arguments.process_metrics or arguments.kubernetes_virtual_gpus,
            host_proc=Path(arguments.host_proc) if arguments.host_proc else None,
            container_log_links=Path(arguments.container_log_links),
            virtual_gpus=arguments.kubernetes_virtual_gpus,
        ),
        replicas=arguments.replica_sharing,
        mps_root=Path(arguments.mps_root),
        expected_gpus=arguments.expected_gpus,
        health_requires_gpus=arguments.health_require_gpus,
        state_file=Path(arguments.state_file) if arguments.state_file else None,
        pods=pod_options(arguments, environment),
        profiling_pause_file=Path(arguments.profiling_pause_file) if arguments.profiling_pause_file else None,
        style=label_style(arguments, environment),
        audit=audit_options(arguments),
        windows=CountWindows(arguments.xid_count_window_size, arguments.clock_events_count_window_size),
        normalized=arguments.normalized_metrics,
        warnings=(
            *arguments.warnings,
            *web_warnings(arguments),
            *file.warnings,
            *pod_warnings(arguments),
            *_warnings(arguments, file, environment),
        ),
    )


def _config_file(arguments: Arguments) -> NodeConfigFile:
    if not arguments.config_file:
        return NodeConfigFile()
    from exporter.node.config_file.reader import load  # noqa: PLC0415 - it brings a YAML reader, which few nodes need

    return load(Path(arguments.config_file))


def _usual_source(arguments: Arguments) -> SourceName:
    """The source where none is given: only the host engine where one is named, else a choice."""
    return "dcgm" if arguments.remote_hostengine_info else "auto"


def _default_interval(arguments: Arguments, file: NodeConfigFile) -> float:
    """Seconds, as they were given."""
    if "collect-interval" in arguments.given or file.interval is None:
        return float(arguments.collect_interval) / 1000
    return file.interval


def _pace(arguments: Arguments, file: NodeConfigFile) -> Pace:
    least = MIN_INTERVAL_MS / 1000
    groups = [replace(group, seconds=max(group.seconds, least)) for group in file.groups]
    return pace_of(max(_default_interval(arguments, file), least), groups)


def _kubelet_socket(arguments: Arguments) -> str:
    """The socket that is named, else the usual one below the kubelet's folder."""
    if "pod-resources-kubelet-socket" in arguments.given:
        return str(arguments.pod_resources_kubelet_socket)
    return f"{arguments.kubelet_root.rstrip('/')}/pod-resources/kubelet.sock"


def _warnings(arguments: Arguments, file: NodeConfigFile, environment: Mapping[str, str]) -> Iterator[str]:
    for seconds in (_default_interval(arguments, file), *(group.seconds for group in file.groups)):
        if seconds * 1000 < MIN_INTERVAL_MS:
            yield f"a collection interval of {seconds * 1000:.0f} ms is too short: {MIN_INTERVAL_MS} ms are used"
    if arguments.kubernetes_enable_dra and not arguments.kubernetes:
        yield "--kubernetes-enable-dra has no effect without --kubernetes"
    if arguments.kubernetes and not environment.get("NODE_NAME"):
        name = node_name(environment)
        yield f"NODE_NAME is not set: {name!r} stands for the name of the node; set it from spec.nodeName"


def node_name(environment: Mapping[str, str]) -> str:
    """The Kubernetes node name from NODE_NAME where it is set, else the machine's host name."""
    return environment.get("NODE_NAME") or socket.gethostname()


def _engine_host(arguments: Arguments) -> str:
    """The host of the only source, a named host engine, where that is another machine; empty for this machine's GPUs.

    As in dcgm-exporter, in Kubernetes the GPUs are those of the node, by whatever address its engine is named.
    """
    remote = arguments.remote_hostengine_info
    if arguments.kubernetes or (arguments.source or _usual_source(arguments)) != "dcgm" or on_this_machine(remote):
        return ""
    try:
        return parse_address(remote).host
    except AddressError:  # such a value was rejected where it was read
        return ""


def label_style(arguments: Arguments, environment: Mapping[str, str]) -> LabelStyle:
    """The options of DCGM-named series: names of labels, and on which devices."""
    return LabelStyle(
        hostname=_engine_host(arguments) or node_name(environment),
        hostname_label="none" if arguments.no_hostname else arguments.hostname_label,
        old_namespace=arguments.use_old_namespace,
        allocation_labels=arguments.allocation_labels != "none",
        replace_blanks_in_model=arguments.replace_blanks_in_model_name,
        repeat_on_instances=arguments.mig_gpu_quantities == "repeat",
    )
