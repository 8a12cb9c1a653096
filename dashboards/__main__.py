"""`python -m dashboards [--output FOLDER] [--cluster-label NAME]`: writes each dashboard as JSON, as Grafana takes it.

Beside the folder `dashboards` with them, it writes the resources by which the grafana-operator finds them.
"""

import argparse
import json
from pathlib import Path

from dashboards import DASHBOARDS
from dashboards.grafana_operator import resources
from dashboards.panels import render
from dashboards.style import Dashboard
from promql.cluster_label import CLUSTER_LABEL, with_cluster_label

OUTPUT = Path(__file__).parent.parent / "deploy" / "generated"


def files(dashboards: tuple[Dashboard, ...], cluster_label: str = CLUSTER_LABEL) -> dict[str, str]:
    """Return the contents of the files, by path below the output folder. They are the same on every machine.

    `cluster_label` is the label that tells clusters apart.
    """
    return {
        **{f"dashboards/{each.uid}.json": with_cluster_label(_text(each), cluster_label) for each in dashboards},
        "grafana-dashboards.yaml": resources(dashboards),
    }


def _text(dashboard: Dashboard) -> str:
    return json.dumps(render(dashboard), indent=2, sort_keys=True) + "\n"


def write(folder: Path, cluster_label: str = CLUSTER_LABEL) -> None:
    """Write every file below the folder, which is created where it is missing."""
    (folder / "dashboards").mkdir(parents=True, exist_ok=True)
    for name, text in files(DASHBOARDS, cluster_label).items():
        (folder / name).write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m dashboards", description="Write the Grafana dashboards.")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FOLDER", help="folder to write below")
    parser.add_argument(
        "--cluster-label", default=CLUSTER_LABEL, metavar="NAME", help="label that tells clusters apart"
    )
    options = parser.parse_args(arguments)
    write(options.output, options.cluster_label)


if __name__ == "__main__":
    main()
