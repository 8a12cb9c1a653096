"""Runs `gpugauge explain`: reads the objects that the command line names and returns the text."""

from collections.abc import Callable

from exporter.cluster.config import ClusterConfig
from exporter.cluster.view import ClusterView
from exporter.commands.explain.overview import overview
from exporter.commands.explain.pod_report import pod_report
from exporter.commands.explain.sources import view_of_cluster, view_of_files
from exporter.config import Arguments, ConfigError
from exporter.gpu_names import gpu_resources


def run(arguments: Arguments, clock: Callable[[], float]) -> str:
    """Read the objects that the command line names and return the text. Raises ConfigError."""
    gpus, now = gpu_resources(arguments.nvidia_resource_names), clock()
    if len(arguments.operands) > 1:
        raise ConfigError(f"explain takes one NAMESPACE/POD, and was given {' '.join(arguments.operands)}")
    name = arguments.operands[0] if arguments.operands else ""
    if arguments.objects:
        view = view_of_files(arguments.objects, gpus, now)
    else:
        view = view_of_cluster(_config(arguments), gpus, now)
    return report(view, name, json=arguments.json)


def _config(arguments: Arguments) -> ClusterConfig:
    return ClusterConfig(
        api_server=arguments.api_server or None,
        kubeconfig=arguments.kubeconfig or None,
        context=arguments.context or None,
    )


def report(view: ClusterView, name: str, *, json: bool) -> str:
    """Explain one pod, or list all pending GPU workloads. Raises ConfigError when there is no such pending pod."""
    return pod_report(view, name, json=json) if name else overview(view, json=json)
