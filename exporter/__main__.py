"""The command `gpugauge`: parses the arguments and runs the chosen program. The only module that sets exit codes."""

import io
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from exporter import cli, log
from exporter.config import Arguments, ConfigError, LogOptions
from exporter.web.listener import ListenError
from exporter.web.tls import TlsError

FAILURE, USAGE = 1, 2


def _log(config: LogOptions, warnings: Sequence[str]) -> None:
    """Set the log up, and begin it with what was found in the command line and the environment."""
    log.setup(sys.stderr, "json" if config.format == "json" else "text", "debug" if config.debug else "info")
    for warning in warnings:
        logging.getLogger("exporter").warning("%s", warning)


def _node(arguments: Arguments) -> int:
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC would report each restart of the kubelet on stderr
    from exporter.node.config import node_config  # noqa: PLC0415 - each program loads only its own libraries
    from exporter.node.program import run  # noqa: PLC0415 - likewise

    config = node_config(arguments, os.environ)
    _log(config.log, config.warnings)
    return 0 if run(config, os.environ) else FAILURE


def _cluster(arguments: Arguments) -> int:
    from exporter.cluster.config import watcher_config  # noqa: PLC0415 - each program loads only its own libraries
    from exporter.cluster.pipeline import run  # noqa: PLC0415 - likewise

    config = watcher_config(arguments, os.environ)
    _log(config.log, config.warnings)
    return 0 if run(config, os.environ) else FAILURE


def _metrics(_arguments: Arguments) -> int:
    from exporter.commands.metrics import markdown  # noqa: PLC0415 - each program loads only its own libraries

    sys.stdout.write(markdown())
    return 0


def _forget(arguments: Arguments) -> int:
    from exporter.commands.forget import forget  # noqa: PLC0415 - each program loads only its own libraries

    sys.stdout.write(forget(arguments))
    return 0


def _check_config(arguments: Arguments) -> int:
    from exporter.commands.check_config import check, report  # noqa: PLC0415 - each program loads only its own libraries

    checked = check(arguments)
    sys.stdout.write(report(checked, as_json=arguments.json))
    return (0, FAILURE, USAGE)[checked.severity]


def _audit(arguments: Arguments) -> int:
    from exporter.commands.audit.command import run  # noqa: PLC0415 - each program loads only its own libraries

    text, intact = run(arguments)
    sys.stdout.write(text)
    return 0 if intact else FAILURE


def _mig(arguments: Arguments) -> int:
    from exporter.commands.mig.command import run  # noqa: PLC0415 - each program loads only its own libraries

    text, fits = run(arguments)
    sys.stdout.write(text)
    return 0 if fits else FAILURE


def _report(arguments: Arguments) -> int:
    from exporter.commands.report.command import ReportTerminal, run  # noqa: PLC0415 - as for the others

    _write_any_name()
    terminal = ReportTerminal(sys.stdout, sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    if sys.stderr.isatty():
        from exporter.commands.report.screen import progress  # noqa: PLC0415 - rich is loaded for a terminal alone

        terminal = replace(terminal, progress=progress)
    run(arguments, time.time, terminal)
    return 0


def _write_any_name() -> None:
    """Names may have what the terminal's encoding lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _compare(arguments: Arguments) -> int:
    from exporter.commands.compare.command import run  # noqa: PLC0415 - each program loads only its own libraries

    text, harmless = run(arguments)
    sys.stdout.write(text)
    return 0 if harmless else FAILURE


def _bundle(arguments: Arguments) -> int:
    from exporter.commands.bundle import bundle  # noqa: PLC0415 - each program loads only its own libraries

    sys.stdout.write(bundle(arguments))
    return 0


def _explain(arguments: Arguments) -> int:
    from exporter.commands.explain.command import run  # noqa: PLC0415 - each program loads only its own libraries

    sys.stdout.write(run(arguments, time.time))
    return 0


def _doctor(arguments: Arguments) -> int:
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # as for the node exporter
    from exporter.commands.doctor.command import run  # noqa: PLC0415 - each program loads only its own libraries
    from exporter.node.config import node_config  # noqa: PLC0415 - likewise

    log.setup(sys.stderr, "text", "error")  # what is wrong is in the findings
    _write_any_name()
    on_terminal = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    works = run(arguments, node_config(arguments, os.environ), sys.stdout, on_terminal=on_terminal)
    return 0 if works else FAILURE


RUNNERS = {
    "node": _node,
    "cluster": _cluster,
    "explain": _explain,
    "forget": _forget,
    "check-config": _check_config,
    "audit": _audit,
    "mig": _mig,
    "report": _report,
    "compare": _compare,
    "bundle": _bundle,
    "metrics": _metrics,
    "doctor": _doctor,
}


def _install_first_signal_handlers() -> None:
    """Handle SIGTERM and SIGHUP until the program installs its own handlers.

    Process 1 of a container ignores a signal that has no handler, so SIGTERM would be lost. SIGHUP asks to reload
    configuration that was not read yet: there is nothing to do, and it must not end the process.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGHUP, lambda *_: None)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chosen command. A mistake in flags, files or ports is one message and exit code 2."""
    _install_first_signal_handlers()
    try:
        arguments = cli.parse(sys.argv[1:] if argv is None else argv, os.environ)
        if arguments.output:
            sys.stdout.write(arguments.output)
            return 0
        return RUNNERS[arguments.command](arguments)
    except (ConfigError, ListenError, TlsError) as error:
        print(f"gpugauge: {error}", file=sys.stderr)  # noqa: T201 - the edge
        return USAGE


if __name__ == "__main__":
    sys.exit(main())
