"""The check of the processes on GPUs: whether each can be told to be a pod's, where they are read."""

from collections import Counter
from collections.abc import Iterator

from exporter.node.devices.readings.processes import ProcessReason
from exporter.node.doctor.examination import Examination
from exporter.node.doctor.finding import Check, Finding, failed, ok
from exporter.node.processes.cgroup import ContainerPlace
from exporter.node.processes.proc_folder import NoContainer
from exporter.node.processes.use import ProcessPlaces
from exporter.source import SourceError


def _processes(examination: Examination) -> Iterator[Finding]:
    """Nothing where no process is read."""
    found = examination.processes
    if found is None:
        return
    if isinstance(found, SourceError):
        yield failed(ProcessReason.of(found.reason), str(found))
        return
    yield from _of_gpus(examination)
    yield from _of_places(found)


def _of_gpus(examination: Examination) -> Iterator[Finding]:
    """The GPUs whose processes are not known."""
    listed = examination.readings.processes if examination.readings is not None else None
    for gpu in listed.gpus if listed is not None else ():
        if gpu.problem is not None:
            reason, message = gpu.problem
            yield failed(ProcessReason.of(reason), f"{gpu.uuid}: {message}")


def _of_places(found: ProcessPlaces) -> Iterator[Finding]:
    count = Counter(_kind(found, pid) for pid in found.places)
    if unreadable := count[ProcessReason.PROCESS_UNREADABLE]:
        yield failed(ProcessReason.PROCESS_UNREADABLE, f"{unreadable} of {len(found.places)} processes on the GPUs")
    if unknown := count[ProcessReason.POD_UNKNOWN]:
        yield failed(ProcessReason.POD_UNKNOWN, f"{unknown} of {len(found.places)} processes on the GPUs")
    yield ok(f"{count['pod']} processes on the GPUs are those of pods; {count['node']} run outside of pods")


def _kind(found: ProcessPlaces, pid: int) -> str:
    """What is known of a process: `pod`, `node`, `ended`, or the reason why that is not known."""
    place = found.places[pid]
    if isinstance(place, ContainerPlace):
        return "pod" if found.pods.find(place) is not None else ProcessReason.POD_UNKNOWN
    return {
        NoContainer.HOST: "node",
        NoContainer.ENDED: "ended",
        NoContainer.UNREADABLE: ProcessReason.PROCESS_UNREADABLE,
    }[place]


CHECKS = (Check("kubernetes", "processes", _processes),)
