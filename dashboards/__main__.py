"""`python -m dashboards [--output FOLDER]`: writes each dashboard as JSON, as Grafana imports it."""

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


def write(folder: Path) -> None:
    """Write every dashboard into the folder, which is created where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files(DASHBOARDS).items():
        (folder / name).write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m dashboards", description="Write the Grafana dashboards.")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FOLDER", help="folder to write to")
    write(parser.parse_args(arguments).output)


if __name__ == "__main__":
    main()
