"""The metric of nodes on whose GPUs another program has found a problem, which it tells by a condition or a taint."""

import re
from collections.abc import Iterator

from exporter.cluster.kubernetes.objects.records import Node
from exporter.cluster.scheduling.explaining.node_signals import writer_of_condition, writer_of_taint
from exporter.cluster.view import ClusterView
from exporter.metric import Family, Kind, metric

PROBLEM = metric(
    "gpugauge_node_problem",
    Kind.GAUGE,
    "Constant 1 while a program such as NVSentinel tells of a problem with GPUs, by a condition or taint of the node.",
    "node",
    "writer",
    "problem",
)
METRICS = (PROBLEM,)

_OF_GPUS = re.compile(r"(?i)gpu|dcgm|nvswitch|nvlink|xid|syslog|accelerated")
"""How such a condition or taint is called; node-problem-detector has others, about kernel and runtime."""
_DETECTORS = frozenset({"NVSentinel", "node-problem-detector", "EKS node monitoring agent"})


def node_problem_families(view: ClusterView) -> list[Family]:
    """The family; none while the nodes are not known."""
    if view.nodes is None:
        return []
    found = [(node.name, *each) for node in view.gpu_nodes() for each in sorted(set(_problems(node)))]
    return [Family(PROBLEM, [PROBLEM.sample(1, node=n, writer=w, problem=p) for n, w, p in found])]


def _problems(node: Node) -> Iterator[tuple[str, str]]:
    """Who tells, and of what."""
    named = [(writer_of_condition(name), name) for name in node.problems]
    named += [(writer_of_taint(key), key) for key, _, _ in node.taints]
    return ((writer, name) for writer, name in named if writer in _DETECTORS and _OF_GPUS.search(name))
