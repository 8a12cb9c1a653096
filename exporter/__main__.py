"""The command `gpugauge`: arguments to program; the only place with exit codes."""

import os
import signal
import sys
from collections.abc import Sequence

from exporter import cli, log
from exporter.config import ConfigError, LogConfig, node_config, watcher_config
from exporter.web.listener import ListenError
from exporter.web.tls import TlsError

USAGE = 2


def _log(config: LogConfig) -> None:
    log.setup(sys.stderr, "json" if config.format == "json" else "text", "debug" if config.debug else "info")


def _node(arguments: cli.Arguments) -> int:
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would report each restart of the kubelet on stderr
    from exporter.node.serving import run  # noqa: PLC0415 - each program loads only its own libraries

    config = node_config(arguments, os.environ)
    _log(config.log)
    run(config, os.environ)
    return 0


def _cluster(arguments: cli.Arguments) -> int:
    from exporter.cluster.program import run  # noqa: PLC0415 - each program loads only its own libraries

    config = watcher_config(arguments)
    _log(config.log)
    run(config, os.environ)
    return 0


def _demo(arguments: cli.Arguments) -> int:
    from demo.program import run  # noqa: PLC0415 - each program loads only its own libraries

    return run(arguments)


COMMANDS = {"node": _node, "cluster": _cluster, "demo": _demo}


def _heed_signals() -> None:
    """What signals do until a program has handlers of its own.

    The first process of a container ignores what it has no handler for; and a request to read a file again that was
    not read yet must not end anything.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGHUP, lambda *_: None)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chosen command; a mistake in flags, files or ports is one sentence and exit code 2."""
    _heed_signals()
    try:
        arguments = cli.parse(sys.argv[1:] if argv is None else argv, os.environ)
        return COMMANDS[arguments.command](arguments)
    except (ConfigError, ListenError, TlsError) as error:
        print(f"gpugauge: {error}", file=sys.stderr)  # noqa: T201 - the edge
        return USAGE


if __name__ == "__main__":
    sys.exit(main())
