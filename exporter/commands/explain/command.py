"""Runs `gpugauge explain`: reads the objects that the command line names and returns the text."""

from collections.abc import Callable
from contextlib import ExitStack, closing

from exporter.commands.explain.node_report import node_report
from exporter.commands.explain.overview import overview
from exporter.commands.explain.past.explainer import PastExplainer
from exporter.commands.explain.pod_report import pod_report
from exporter.commands.explain.sources import FileSource, ObjectSource, api_source
from exporter.commands.explain.watcher import WatcherAnswer, ask
from exporter.commands.prometheus.access import access
from exporter.commands.prometheus.client import PrometheusClient
from exporter.config import Arguments, ConfigError
from exporter.gpu_names import GpuResources, gpu_resources

_NODE = "node/"


def run(arguments: Arguments, clock: Callable[[], float]) -> str:
    """Read the objects that the command line names and return the text. Raises ConfigError."""
    gpus, now = gpu_resources(arguments.nvidia_resource_names), clock()
    if len(arguments.operands) > 1:
        raise ConfigError(f"explain takes one NAMESPACE/POD or node/NAME, and was given {' '.join(arguments.operands)}")
    name = arguments.operands[0] if arguments.operands else ""
    with ExitStack() as open_ones:
        past = _past(arguments, name, open_ones)
        if arguments.objects:
            return report(FileSource(arguments.objects), gpus, now, name, json=arguments.json, past=past)
        source = open_ones.enter_context(closing(api_source(arguments)))
        return report(source, gpus, now, name, json=arguments.json, watcher=arguments.watcher, past=past)


def _past(arguments: Arguments, name: str, open_ones: ExitStack) -> PastExplainer | None:
    """The client of Prometheus, where one is named and a pod is meant. Raises ConfigError."""
    if not arguments.prometheus or not name or name.startswith(_NODE):
        return None  # the variable may be set for all commands
    client = open_ones.enter_context(closing(PrometheusClient(access(arguments))))
    return PastExplainer(client, arguments.cluster)


def report(
    source: ObjectSource,
    gpus: GpuResources,
    now: float,
    name: str,
    *,
    json: bool,
    watcher: str = "",
    past: PastExplainer | None = None,
) -> str:
    """Explain one pod or one node, or list all pending GPU workloads. Raises ConfigError for one that is not known.

    `watcher` is the address of a watcher, which is asked where the source does not show everything.
    """
    if name.startswith(_NODE):
        return node_report(source, source.view(gpus, now, ""), name.removeprefix(_NODE), json=json)
    namespace, _, pod = name.rpartition("/")
    namespace = namespace or "default"
    view = source.view(gpus, now, namespace if name else "")
    answer = _answer(source, watcher)
    if name:
        return pod_report(source, view, (namespace, pod), answer, past, json=json)
    return overview(source, view, answer, json=json)


def _answer(source: ObjectSource, watcher: str) -> WatcherAnswer | None:
    """What a watcher says, where it is needed; that it cannot be asked costs only its part."""
    if not watcher or not source.not_seen:
        return None
    try:
        return ask(watcher)
    except ConfigError as error:
        source.not_seen.append(f"the watcher's metrics ({error})")
        return None
