"""Everything the demo runs, in the order in which it starts and ends; the end-to-end test runs the same."""

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
from demo.past import INTERVAL_SECONDS, Past
from demo.processes import Processes, binary, check_ports, free_port
from demo.prometheus import Api, Targets
from exporter.node.simulation.scenario import Scenario, load
from simulators.api_server import SimulatedApiServer
from simulators.kubelet import Holder, SimulatedKubelet

HISTORY_SECONDS = 3600.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the parts listen on loopback; node exporters take three ports from `node` on."""

    prometheus: int = 9090
    alertmanager: int = 9093
    node: int = 9400
    watcher: int = 9410

    def by_option(self) -> dict[str, int]:
        """Each port under the option that chooses it, for sentences."""
        nodes = {f"--node-port (first of {len(cluster.NODES)})": self.node}
        more = {f"--node-port ({name.name})": self.node + i for i, name in enumerate(cluster.NODES) if i}
        return {
            "--prometheus-port": self.prometheus,
            "--alertmanager-port": self.alertmanager,
            "--watcher-port": self.watcher,
            **nodes,
            **more,
        }

    def targets(self) -> Targets:
        """The addresses to scrape."""
        nodes = {node.name: f"127.0.0.1:{self.node + i}" for i, node in enumerate(cluster.NODES)}
        return Targets(nodes, f"127.0.0.1:{self.watcher}")


class Stack:
    """A context manager: inside it the whole product runs on this machine; after it nothing of it is left."""

    def __init__(self, ports: Ports, *, receiver: str, honor_labels: bool = True, say: Say = lambda _: None) -> None:
        """`receiver` is the base address of a webhook that Alertmanager posts to."""
        self.ports = ports
        self._receiver = receiver
        self._honor = honor_labels
        self._say = say
        self._exit = ExitStack()
        self.now = time.time()

    @property
    def prometheus_api(self) -> Api:
        return Api(f"http://127.0.0.1:{self.ports.prometheus}")

    @property
    def alertmanager_api(self) -> Api:
        return Api(f"http://127.0.0.1:{self.ports.alertmanager}")

    def ended(self) -> str | None:
        """A sentence about a part that ended by itself, or None."""
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
        self._say("starting the simulated cluster: 3 nodes, their kubelets, an API server")
        self._start_cluster()
        self._exit.callback(self._processes.stop)  # before the servers: they wait for their clients
        self._start_exporters()
        self._say("writing an hour of history")
        self._write_history()
        self._say("starting Prometheus and Alertmanager")
        self._start_monitoring()

    def _start_cluster(self) -> None:
        epoch = self.now - 2 * cluster.HOUR
        self._scenarios = {node.name: node.write_scenario(self._folder, epoch) for node in cluster.NODES}
        for node in cluster.NODES:
            scenario = load(str(self._scenarios[node.name]))
            kubelet = SimulatedKubelet(self._socket(node.name), _present(scenario, epoch))
            self._exit.enter_context(kubelet)
        server = SimulatedApiServer()
        server.start()
        self._exit.callback(server.stop)
        self._api_server = server.url
        pods = cluster.pods(self.now)
        for namespace in cluster.namespaces(pods, self.now):
            server.put("namespaces", namespace)
        for machine in cluster.nodes(self.now):
            server.put("nodes", machine)
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
        rules = prometheus.hurried(prometheus.rule_files(), self._folder)
        self._start_prometheus(self.ports.prometheus, rules, scrape=True)
        self._processes.wait_for("alertmanager", f"{self.alertmanager_api.url}/-/ready")

    def _start_prometheus(self, port: int, rules: list[Path], *, scrape: bool) -> None:
        targets = self.ports.targets() if scrape else Targets({}, "127.0.0.1:1")
        config = self._folder / "prometheus.yml"
        address = f"127.0.0.1:{self.ports.alertmanager}"
        text = prometheus.configuration(targets, address, rules, honor_labels=self._honor)
        config.write_text(text if scrape else "{}\n", encoding="utf-8")
        self._processes.start("prometheus", prometheus.command(self._binaries["prometheus"], config, self._data, port))
        self._processes.wait_for("prometheus", f"http://127.0.0.1:{port}/-/ready")

    @property
    def _data(self) -> Path:
        return self._folder / "prometheus"

    def _write_history(self) -> None:
        end = time.time()
        start = end - HISTORY_SECONDS
        past = Past(self._scenarios, self.ports.targets(), self._api_server, self.now, honor_labels=self._honor)
        history.write_block(past.lines(start, end), self._folder, self._data, self._binaries["promtool"])
        port = free_port()
        api = Api(f"http://127.0.0.1:{port}")
        for layer in history.layers(history.load_rules(prometheus.rule_files())):
            self._start_prometheus(port, [], scrape=False)
            lines = list(history.recorded_lines(api, layer, start, end))
            self._processes.stop("prometheus")
            history.write_block(lines, self._folder, self._data, self._binaries["promtool"])


def _present(scenario: Scenario, epoch: float) -> Callable[[], Iterable[Holder]]:
    return lambda: cluster.holders(scenario, time.time() - epoch)
