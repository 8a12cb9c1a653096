"""`python -m demo`: parses the demo's flags and runs it; `make demo` does the same."""

import argparse
import sys

from demo import cluster
from demo.program import run
from demo.stack import Ports


def parser() -> argparse.ArgumentParser:
    """Make the parser of the demo's flags."""
    flags = argparse.ArgumentParser(
        prog="python -m demo",
        description="The whole product on this machine, with simulated GPUs and a simulated cluster.",
    )
    ports = Ports()
    flags.add_argument("--prometheus-port", type=int, default=ports.prometheus)
    flags.add_argument("--alertmanager-port", type=int, default=ports.alertmanager)
    flags.add_argument("--node-port", type=int, default=ports.node, help=f"first of {len(cluster.NODES)} ports")
    flags.add_argument("--watcher-port", type=int, default=ports.watcher)
    flags.add_argument("--seconds", type=float, default=0.0, help="stop after so long (default: run until Ctrl-C)")
    return flags


if __name__ == "__main__":
    sys.exit(run(parser().parse_args()))
