"""Looks up once where the processes run that a source of the devices has listed on the GPUs."""

from collections.abc import Sequence

from exporter.node.config import NodeConfig
from exporter.node.devices.readings.processes import ProcessReason
from exporter.node.doctor.deadline import within
from exporter.node.doctor.examination import SourceAttempt
from exporter.node.doctor.node_root import NodeRoot
from exporter.node.open_sources import process_finder
from exporter.node.pods.pod import NodePods
from exporter.node.processes.source import ProcessSource
from exporter.node.processes.use import ProcessPlaces
from exporter.source import SourceError


def process_places(
    config: NodeConfig,
    root: NodeRoot,
    seconds: float,
    attempts: Sequence[SourceAttempt],
    pods: NodePods | SourceError | None,
) -> ProcessPlaces | SourceError | None:
    """Where they run, or why that is not known; None where they are not read or no source works."""
    finder = process_finder(config, lambda path: root.path(str(path)))
    readings = next((each.readings for each in attempts if each.readings is not None), None)
    if finder is None or readings is None:
        return None
    source = ProcessSource(finder, readings.processes, None if isinstance(pods, SourceError) else pods)
    try:
        return within(seconds, source.read)
    except SourceError as error:
        return error
    except TimeoutError as error:
        return SourceError(ProcessReason.PROC_UNREADABLE, f"/proc gave {error}")
