"""The type `Examination`: everything that was asked of the node once, which the checks then judge. No I/O."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.offer.offer import OfferedIds
from exporter.node.config import NodeConfig
from exporter.node.counters_watch import LoadedCounters, UnusableCountersError
from exporter.node.devices.counters.counters_file import Counters
from exporter.node.devices.fields.device_source import Choice
from exporter.node.devices.readings.readings import Readings
from exporter.node.doctor.node_root import NodeRoot
from exporter.node.dra.knowledge import NO_KNOWLEDGE, DraKnowledge
from exporter.node.pods.pod import NodePods
from exporter.node.processes.use import ProcessPlaces
from exporter.reason import Reason
from exporter.source import SourceError

CandidateName = Choice | Literal["simulated"]


class NativeLibrary(msgspec.Struct, frozen=True):
    """What a library of the driver or of DCGM says of itself, asked in a process of its own."""

    path: str = ""
    """The file that was loaded, with links resolved; empty where none was."""
    version: str = ""
    """What it reports: libdcgm its own version, libnvidia-ml that of the kernel module."""
    file_version: str = ""
    """The version in the file's name; empty where there is none."""
    cuda: str = ""
    """The CUDA version of the driver."""
    cuda_library: str = ""
    """The version in the name of the libcuda beside libnvidia-ml; empty where there is none."""
    reason: str = ""
    message: str = ""
    """Why it cannot be used."""
    records: str = ""
    """What the comparison of record sizes with NVIDIA's bindings found; empty where they are equal."""
    compared: int = 0
    """How many records were compared."""


@dataclass(frozen=True, slots=True)
class SourceAttempt:
    """One source that was read once. `reason` and `message` are why it could not be."""

    candidate: CandidateName
    address: str = ""
    """Of a host engine."""
    readings: Readings | None = None
    reason: Reason | None = None
    message: str = ""

    @property
    def title(self) -> str:
        return f"{self.candidate} {self.address}".rstrip()


class DraExamination(NamedTuple):
    """What the API server shows of ResourceClaims."""

    knowledge: DraKnowledge
    problems: tuple[tuple[str, Reason, str], ...] = ()
    """(kind of object, reason, message) of what cannot be read."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What the checks judge."""

    config: NodeConfig
    root: NodeRoot
    counters: LoadedCounters | UnusableCountersError
    nvml: NativeLibrary | None
    """None where the configuration does not use it."""
    dcgm: NativeLibrary | None
    engine: str | None
    """Address of the host engine that is named with -r or listens on this node."""
    others: tuple[int, ...]
    """Process ids of engines on this node."""
    attempts: tuple[SourceAttempt, ...]
    """The sources that this configuration may read, best first."""
    kubelet: Allocations | SourceError | None
    """None where devices are not attributed to pods."""
    pods: NodePods | SourceError | None = None
    """None where pod metadata is off."""
    offered: OfferedIds | SourceError | None = None
    """The device ids that the kubelet offers to pods; None where it does not say."""
    dra: DraExamination | None = None
    """None where the API server is not asked."""
    processes: ProcessPlaces | SourceError | None = None
    """Where the processes on the GPUs run; None where they are not read, or no source of the devices works."""

    @property
    def claims(self) -> DraKnowledge:
        """What is known of ResourceClaims."""
        return self.dra.knowledge if self.dra is not None else NO_KNOWLEDGE

    @property
    def chosen(self) -> SourceAttempt | None:
        """The first source that works."""
        return next((each for each in self.attempts if each.readings is not None), None)

    @property
    def readings(self) -> Readings | None:
        return self.chosen.readings if self.chosen is not None else None

    @property
    def usable_counters(self) -> Counters:
        """The rows of the counters file; none where it cannot be used."""
        return self.counters.counters if isinstance(self.counters, LoadedCounters) else Counters((), ())
