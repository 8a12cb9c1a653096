"""Names who wrote the conditions and taints of a node that tell of a problem. No I/O, no state.

The conditions of the kubelet are in Kubernetes' documents, those of NVSentinel in its integration guide, those of
node-problem-detector in its configuration, and those of the EKS node monitoring agent in Amazon's documents.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from exporter.cluster.kubernetes.objects.records import Taint
from exporter.cluster.kubernetes.objects.wire import PodCondition


class Writer(NamedTuple):
    """One row: who writes conditions and taints of these names."""

    name: str
    conditions: re.Pattern[str]
    taints: re.Pattern[str]


class Signal(NamedTuple):
    """A condition or a taint that tells of a problem."""

    name: str
    writer: str
    message: str


_NOTHING = re.compile(r"(?!)")
WRITERS = (
    Writer(
        "kubelet",
        re.compile(r"Ready|MemoryPressure|DiskPressure|PIDPressure"),
        re.compile(r"node\.kubernetes\.io/.*"),
    ),
    Writer("network plugin", re.compile(r"NetworkUnavailable"), _NOTHING),
    Writer("EKS node monitoring agent", re.compile(r"\w+Ready"), _NOTHING),
    Writer(
        "NVSentinel",
        re.compile(r"Gpu\w+Watch|Gpu\w+Error|SysLogs\w+|SyslogError|NVSwitch\w+|DCGMError|CSPMaintenance"),
        re.compile(r"nvidia\.com/(?:gpu|syslog|nvswitch|nvlink)-[\w-]*error|(?:gpu|nvlink|nvswitch)\.health/.*"),
    ),
    Writer(
        "node-problem-detector",
        re.compile(
            r"KernelDeadlock|ReadonlyFilesystem|XfsShutdown|CperHardwareErrorFatal|CorruptDockerOverlay2|Frequent\w+|"
            r"KubeletUnhealthy|ContainerRuntimeUnhealthy|KubeletProblem|NTPProblem|Gpu\w+"
        ),
        re.compile(r"node-problem-detector(?:\.\w+)*/.*"),
    ),
)
"""The first row that fits counts. Whoever adds checks to node-problem-detector names their conditions."""
_UNNAMED = "another program"


def signals(conditions: Iterable[PodCondition]) -> list[Signal]:
    """The conditions that tell of a problem, in the node's order."""
    return [Signal(each.type, writer_of_condition(each.type), _text(each)) for each in conditions if _is_problem(each)]


def _is_problem(condition: PodCondition) -> bool:
    """Conditions that end in `Ready` are good when true, all others when false."""
    good = "True" if condition.type.endswith("Ready") else "False"
    return condition.status != good


def _text(condition: PodCondition) -> str:
    state = "" if condition.status in ("True", "False") else f"state {condition.status or 'not given'}"
    return ": ".join(filter(None, (state, condition.reason, condition.message)))


def taint_signals(taints: Iterable[tuple[Taint, str]]) -> list[Signal]:
    """The taints that such a program sets, from taints and how they are written."""
    found = ((text, writer_of_taint(taint[0])) for taint, text in taints)
    return [Signal(text, writer, "") for text, writer in found if writer != _UNNAMED]


def writer_of_condition(name: str) -> str:
    """Who writes conditions of this type."""
    return next((row.name for row in WRITERS if row.conditions.fullmatch(name)), _UNNAMED)


def writer_of_taint(key: str) -> str:
    """Who sets taints with this key."""
    return next((row.name for row in WRITERS if row.taints.fullmatch(key)), _UNNAMED)
