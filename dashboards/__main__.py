"""`python -m dashboards [--output DIR]`: write the dashboards as JSON, one file for each."""

import argparse
import json
from pathlib import Path

from dashboards import DASHBOARDS
from dashboards.panels import render
from dashboards.style import Dashboard

OUTPUT = Path(__file__).parent.parent / "deploy" / "generated" / "dashboards"


def files(dashboards: tuple[Dashboard, ...]) -> dict[str, str]:
    """Return the contents of the files, by file name. They are the same on every machine."""
    return {f"{each.uid}.json": json.dumps(render(each), indent=2, sort_keys=True) + "\n" for each in dashboards}


def write(directory: Path) -> None:
    """Write every dashboard into the directory, which is created where it is missing."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files(DASHBOARDS).items():
        (directory / name).write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m dashboards", description="Write the Grafana dashboards.")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help="folder to write to")
    write(parser.parse_args(arguments).output)


if __name__ == "__main__":
    main()
