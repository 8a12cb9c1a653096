"""Runs the node exporter: its program, its sampler and its server, until a signal."""

from collections.abc import MutableMapping

from exporter.collection_loop import Sampler
from exporter.config import NodeConfig
from exporter.exposition.exporter_metrics import SelfMetrics
from exporter.node.program import NodeProgram
from exporter.program import ProgramPages, run_until_signalled, serve


def run(config: NodeConfig, environment: MutableMapping[str, str]) -> None:
    """Serve until SIGTERM. Raises ConfigError, ListenError, TlsError or WebConfigError before anything runs."""
    program = NodeProgram(config)
    own = SelfMetrics({"hostname": config.style.hostname}, config=lambda: program.config_state)
    sampler = Sampler(program.take, own, config.interval)
    server = serve("gpugauge node exporter", config.web, ProgramPages(sampler, program.live), environment)
    run_until_signalled(sampler, server, program.close, program.reload)
