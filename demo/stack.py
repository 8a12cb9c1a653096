"""Starts and ends everything that the demo runs; the end-to-end test runs the same.

In this order: the simulated kubelets and API server, the exporters, Prometheus with an hour of history, Alertmanager.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from demo import cluster, history, prometheus
from demo.processes import PortInUseError, Processes, binary, check_ports, free_port
from demo.prometheus import PrometheusApi, ScrapeTargets
from demo.raw_history import INTERVAL_SECONDS, RawHistory
from exporter.node.simulation.scenario import Scenario, load
from simulators.api_server import SimulatedApiServer
from simulators.kubelet import KubeletAllocation, SimulatedKubelet

HISTORY_SECONDS = 3600.0
PORT_ATTEMPTS = 5
"""How many ports are tried for the Prometheus that computes history, in case another process takes one first."""

Report = Callable[[str], None]
"""Takes a message about the progress."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports on loopback. `node` is that of the first node exporter; those of the others follow it."""

    prometheus: int = 9090
    alertmanager: int = 9093
    node: int = 9400
    watcher: int = 9410

    def by_option(self) -> dict[str, int]:
        """Each port by the option that sets it, as messages name it."""
        first = {f"--node-port (first of {len(cluster.NODES)})": self.node}
        others = {f"--node-port ({node.name})": self.node + i for i, node in enumerate(cluster.NODES) if i}
        return {
            "--prometheus-port": self.prometheus,
            "--alertmanager-port": self.alertmanager,
            "--watcher-port": self.watcher,
            **first,
            **others,
        }

    def targets(self) -> ScrapeTargets:
        """The addresses to scrape."""
        nodes = {node.name: f"127.0.0.1:{self.node + i}" for i, node in enumerate(cluster.NODES)}
        return ScrapeTargets(nodes, f"127.0.0.1:{self.watcher}")


class Stack:
    """A context manager: the whole product runs inside it, and no process or file is left after it.

    Entering raises DemoError when something cannot run; that is a PortInUseError when other ports would help.
    """

    def __init__(
        self, ports: Ports, *, receiver: str, honor_labels: bool = True, report: Report = lambda _: None
    ) -> None:
        """`receiver` is the base address of a webhook that Alertmanager posts to."""
        self.ports = ports
        self._receiver = receiver
        self._honor_labels = honor_labels
        self._report = report
        self._exit = ExitStack()
        self.now = time.time()

    @property
    def prometheus_api(self) -> PrometheusApi:
        return PrometheusApi(f"http://127.0.0.1:{self.ports.prometheus}")

    @property
    def alertmanager_api(self) -> PrometheusApi:
        return PrometheusApi(f"http://127.0.0.1:{self.ports.alertmanager}")

    def ended(self) -> str | None:
        """A message about a process that ended by itself, or None."""
        return self._processes.ended()

    def __enter__(self) -> Self:
        self._binaries = {name: binary(name) for name in ("prometheus", "promtool")}
        self._binaries["alertmanager"] = binary("alertmanager", "prometheus-alertmanager")
        check_ports(self.ports.by_option())
        try:
            self._start()
        except BaseException:
            self._exit.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    def _start(self) -> None:
        self._folder = Path(self._exit.enter_context(tempfile.TemporaryDirectory(prefix="gpugauge-demo-")))
        self._processes = Processes(self._folder)
        self._report(f"starting the simulated cluster: {len(cluster.NODES)} nodes, their kubelets, an API server")
        self._start_cluster()
        # Ends before the simulated servers, whose stop waits for the connections of the exporters.
        self._exit.callback(self._processes.stop)
        self._start_exporters()
        self._report("writing an hour of history")
        self._write_history()
        self._report("starting Prometheus and Alertmanager")
        self._start_monitoring()

    def _start_cluster(self) -> None:
        epoch = self.now - 2 * cluster.HOUR
        self._scenarios = {node.name: node.write_scenario(self._folder, epoch) for node in cluster.NODES}
        for node in cluster.NODES:
            scenario = load(str(self._scenarios[node.name]))
            kubelet = SimulatedKubelet(self._socket(node.name), _allocations_now(scenario, epoch))
            self._exit.enter_context(kubelet)
        server = SimulatedApiServer()
        server.start()
        self._exit.callback(server.stop)
        self._api_server = server.url
        pods = cluster.pods(self.now)
        for namespace in cluster.namespaces(pods, self.now):
            server.put("namespaces", namespace)
        for node_object in cluster.nodes(self.now):
            server.put("nodes", node_object)
        for pod in pods:
            server.put("pods", pod)

    def _socket(self, node: str) -> Path:
        return self._folder / f"{node}.sock"

    def _start_exporters(self) -> None:
        gpugauge = [sys.executable, "-m", "exporter"]
        for number, node in enumerate(cluster.NODES):
            port = self.ports.node + number
            command = [*gpugauge, "node", "--source", "simulated", "--scenario", str(self._scenarios[node.name])]
            command += ["--kubernetes", "--pod-resources-kubelet-socket", str(self._socket(node.name))]
            command += ["--address", f"127.0.0.1:{port}", "--collect-interval", str(INTERVAL_SECONDS * 1000)]
            self._processes.start(node.name, command, {"NODE_NAME": node.name})
        command = [*gpugauge, "cluster", "--api-server", self._api_server, "--interval", str(INTERVAL_SECONDS)]
        self._processes.start("watcher", [*command, "--address", f"127.0.0.1:{self.ports.watcher}"])
        for number, node in enumerate(cluster.NODES):
            self._processes.wait_for(node.name, f"http://127.0.0.1:{self.ports.node + number}/readyz")
        self._processes.wait_for("watcher", f"http://127.0.0.1:{self.ports.watcher}/readyz")

    def _start_monitoring(self) -> None:
        config = self._folder / "alertmanager.yml"
        config.write_text(prometheus.alertmanager_configuration(self._receiver), encoding="utf-8")
        command = prometheus.alertmanager_command(
            self._binaries["alertmanager"], config, self._folder / "alertmanager", self.ports.alertmanager
        )
        self._processes.start("alertmanager", command)
        rules = prometheus.with_short_intervals(prometheus.rule_files(), self._folder)
        self._start_prometheus(self.ports.prometheus, rules, scrape=True)
        self._processes.wait_for("alertmanager", f"{self.alertmanager_api.url}/-/ready")

    def _start_prometheus(self, port: int, rules: list[Path], *, scrape: bool) -> None:
        targets = self.ports.targets() if scrape else ScrapeTargets({}, "127.0.0.1:1")
        config = self._folder / "prometheus.yml"
        address = f"127.0.0.1:{self.ports.alertmanager}"
        text = prometheus.configuration(targets, address, rules, honor_labels=self._honor_labels)
        config.write_text(text if scrape else "{}\n", encoding="utf-8")
        self._processes.start("prometheus", prometheus.command(self._binaries["prometheus"], config, self._data, port))
        self._processes.wait_for("prometheus", f"http://127.0.0.1:{port}/-/ready")

    @property
    def _data(self) -> Path:
        return self._folder / "prometheus"

    def _write_history(self) -> None:
        end = time.time()
        start = end - HISTORY_SECONDS
        targets = self.ports.targets()
        raw = RawHistory(self._scenarios, targets, self._api_server, self.now, honor_labels=self._honor_labels)
        self._write_block(raw.samples(start, end))
        for layer in history.layers(history.load_rules(prometheus.rule_files())):
            api = self._start_prometheus_for_history()
            samples = list(history.recorded_samples(api, layer, start, end))
            self._processes.stop("prometheus")
            self._write_block(samples)

    def _write_block(self, samples: Iterable[history.HistorySample]) -> None:
        history.write_block(samples, self._folder, self._data, self._binaries["promtool"])

    def _start_prometheus_for_history(self) -> PrometheusApi:
        """Start a Prometheus that has only the history so far, on any free port."""
        for attempts_left in reversed(range(PORT_ATTEMPTS)):
            port = free_port()
            try:
                self._start_prometheus(port, [], scrape=False)
                break
            except PortInUseError:
                self._processes.stop("prometheus")
                if not attempts_left:
                    raise
        return PrometheusApi(f"http://127.0.0.1:{port}")


def _allocations_now(scenario: Scenario, epoch: float) -> Callable[[], Iterable[KubeletAllocation]]:
    return lambda: cluster.allocations(scenario, time.time() - epoch)
