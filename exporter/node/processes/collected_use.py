"""What a collection of the node exporter makes of processes: families, problems, and the series of virtual GPUs."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from exporter.metric import Family, Labels
from exporter.node.attribution.matching.attribute import Attribution
from exporter.node.devices.counters.counters_file import Counters
from exporter.node.devices.readings.processes import NAME
from exporter.node.devices.readings.readings import Readings
from exporter.node.devices.series.labels import LabelStyle
from exporter.node.pods.pod import NodePods
from exporter.node.processes.metrics import process_families
from exporter.node.processes.source import ProcessFinder, ProcessSource
from exporter.node.processes.use import DeviceUses, device_uses
from exporter.node.processes.virtual_gpus import with_virtual_gpus
from exporter.snapshot import CollectionCycle, SourceProblem


@dataclass(frozen=True, slots=True)
class CollectedUse:
    """What is used of the devices in one collection; nothing where processes are not read."""

    attribution: Attribution
    uses: DeviceUses
    families: tuple[Family, ...]

    @property
    def problems(self) -> tuple[SourceProblem, ...]:
        return tuple(SourceProblem(NAME, *problem) for problem in self.uses.problems)


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """Reads where processes run, once per collection, and adds up what they use."""

    finder: ProcessFinder | None
    """None where processes are not read."""
    style: LabelStyle
    virtual_gpus: bool = False
    """Whether two families of the counters file have series of the pods that share a device."""

    def read(
        self, cycle: CollectionCycle, readings: Readings, attribution: Attribution, pods: NodePods | None
    ) -> CollectedUse:
        """Return the use of the devices of this collection; its health is recorded in the cycle."""
        places = None
        if self.finder is not None:
            places = cycle.read(ProcessSource(self.finder, readings.processes, pods), otherwise=None)
        if places is None or readings.processes is None:
            return CollectedUse(attribution, DeviceUses(), ())
        uses = device_uses(readings.processes, places, attribution)
        return CollectedUse(attribution, uses, process_families(uses, readings.inventory, self.style.hostname))

    def in_families(
        self,
        families: Iterable[Family],
        counters: Counters,
        collected: CollectedUse,
        labels: Sequence[Labels],
        chosen: Collection[int] | None,
    ) -> Iterable[Family]:
        """Return the families of the counters file, with series of pods where these are asked for.

        `labels` are those of the devices; `chosen` are the positions of the devices that are exposed, None for all.
        """
        if not (self.virtual_gpus and self.style.allocation_labels):
            return families
        exposed = range(len(labels)) if chosen is None else chosen
        return with_virtual_gpus(
            families, counters, collected.attribution, [use for use in collected.uses.pods if use.device in exposed],
            labels, self.style,
        )  # fmt: skip
