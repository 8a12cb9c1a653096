"""What a Prometheus has of the node exporter, as one public consumer of dcgm-exporter's metrics would find it.

Two nodes, `gpu-a` with whole GPUs and `gpu-b` with MIG devices, run the whole node exporter but its server, with the
consumer's own counters file. Three expositions of each, half a minute apart, are served with timestamps, so that one
Prometheus can have the history of every consumer, each at a time of its own.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from exporter.cli import parse as parse_arguments
from exporter.node.attribution.jobs.hpc_job_files import JobFilesReader
from exporter.node.config import label_style
from exporter.node.devices.counters.counters_file import parse as parse_counters
from tests.exporter.node.scenario_flow import SimulatedFlow
from tests.exporter.node.test_source_parity import expositions_through

FOLDER = Path(__file__).parent
DEFAULTS = (FOLDER.parents[1] / "exporter/node/devices/defaults/default-counters.csv").read_text()
SCENARIOS = FOLDER.parents[1] / "exporter/node/simulation/scenarios"
BINDINGS = FOLDER.parent / "fakes/dcgm_bindings"
NODES = {"gpu-a": "whole", "gpu-b": "mig"}
"""The scenario of each node."""
MOMENTS = (5.0, 35.0, 65.0)
"""Seconds since the scenario began."""
ON_SOME_MODELS = {
    # The GPU of the scenario has no fan, no application clocks and no vGPU license; some models have.
    "DCGM_FI_DEV_FAN_SPEED": 40,
    "DCGM_FI_DEV_APP_SM_CLOCK": 1200,
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": 0,
    # An alert that asks for one bit needs a GPU that has it.
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": 0xFF,
}
SAMPLE = re.compile(r"^([^#\n].*)$", re.MULTILINE)


@dataclass(frozen=True)
class Consumer:
    """A public consumer, and what it asks for."""

    name: str
    source: str
    """The repository and the file that the queries are from, in compact form with their variables filled in."""
    counters: tuple[str, ...]
    """Name and type of the rows that it needs beside the default ones."""
    queries: tuple[str, ...]
    flags: tuple[str, ...] = ()

    def counters_file(self):
        """The counters file of its users."""
        return parse_counters("\n".join([DEFAULTS, *(f"{row}, x" for row in self.counters)]), "its-counters.csv")


def consumers():
    listed = json.loads((FOLDER / "queries.json").read_text())
    return [Consumer(**{key: tuple(v) if type(v) is list else v for key, v in each.items()}) for each in listed]


def pages(consumer, folder):
    """What is scraped for this consumer, made in that folder: a text of each node.

    Its timestamps count from the begin of the scenario, as seconds between two `@`.
    """
    return {node: "".join(map(_with_time, MOMENTS, _expositions(consumer, node, folder))) for node in NODES}


def _with_time(moment, exposition):
    return SAMPLE.sub(rf"\1 @{moment:.0f}@", exposition.text.decode())


def at_time(page, begin):
    """The page of a scenario that began at that Unix time."""
    return re.sub(r"@(\d+)@$", lambda match: str((begin + int(match[1])) * 1000), page, flags=re.MULTILINE)


def _expositions(consumer, node, folder):
    counters = consumer.counters_file()
    style = label_style(parse_arguments(("--hostname-label=both", *consumer.flags), {}), {"NODE_NAME": node})
    scenario = _scenario(NODES[node], folder)
    if counters.need_health and node == "gpu-a":  # only an engine makes health checks
        return expositions_through("dcgm", scenario, counters, folder, *MOMENTS, style=style, bindings=str(BINDINGS))
    flow = SimulatedFlow(scenario, counters, style=style, jobs=_jobs(folder))
    return [flow.exposition(moment) for moment in MOMENTS]


def _jobs(folder):
    """The jobs of the first GPU, as a scheduler's prolog writes them for `--hpc-job-mapping-dir`."""
    (folder / "jobs").mkdir(exist_ok=True)
    (folder / "jobs" / "0").write_text("4711\n")
    return JobFilesReader(folder / "jobs")


def _scenario(name, folder):
    """The path of the scenario, in which the first GPU has what only some models have."""
    document = json.loads((SCENARIOS / f"{name}.json").read_text())
    document["devices"][0].setdefault("fields", {}).update(ON_SOME_MODELS)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    return str(path)
