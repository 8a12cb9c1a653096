"""Writes the dashboards as JSON, one file for each.

python -m dashboards [--output DIR]
"""

import argparse
import json
from pathlib import Path

from dashboards import DASHBOARDS
from dashboards.panels import render
from dashboards.style import Board

OUTPUT = Path(__file__).parent.parent / "deploy" / "generated" / "dashboards"


def files(boards: tuple[Board, ...]) -> dict[str, str]:
    """Contents by file name, the same on every machine."""
    return {f"{board.uid}.json": json.dumps(render(board), indent=2, sort_keys=True) + "\n" for board in boards}


def write(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files(DASHBOARDS).items():
        (directory / name).write_text(text)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m dashboards", description="Write the Grafana dashboards.")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help="folder to write to")
    write(parser.parse_args(arguments).output)


if __name__ == "__main__":
    main()
