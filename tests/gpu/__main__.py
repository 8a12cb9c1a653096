"""Checks the node exporter on a machine with a GPU, in at most six minutes. Nothing else may use the GPU meanwhile.

    python -m tests.gpu [--output FOLDER] [CHECK ...]

Prints one line per check: ok, FAILED, or not checked with the reason. Exit code 1 where one failed, 3 without a GPU.
"""

import argparse
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.gpu.checks import CHECKS, CheckFailedError, Machine, NotCheckedError, machine, no_gpu

MOST_SECONDS = 360
NO_GPU = 3


def run(names: Iterable[str], on: Machine) -> int:
    """Run checks by name. Returns how many failed."""
    failed = 0
    for name in names:
        try:
            result, said = "ok", CHECKS[name](on)
        except NotCheckedError as reason:
            result, said = "not checked", str(reason)
        except (CheckFailedError, TimeoutError) as failure:
            result, said = "FAILED", str(failure)
            failed += 1
        print(f"{name:<28}{result:<13}{said}", flush=True)
    return failed


def _out_of_time(*_: object) -> None:
    sys.exit(f"not finished within {MOST_SECONDS} s")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path(), help="folder for capture.prom (default: this folder)")
    parser.add_argument("check", nargs="*", default=list(CHECKS), help=f"only these of: {', '.join(CHECKS)}")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.check) - CHECKS.keys()):
        parser.error(f"no such check: {', '.join(unknown)}")
    if reason := no_gpu():
        print(f"not checked: {reason}")
        return NO_GPU
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.alarm(MOST_SECONDS)
    try:
        with machine(arguments.output) as on:
            return 1 if run(arguments.check, on) else 0
    except TimeoutError as error:
        print(f"FAILED: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
