"""Writes which link between a node's GPUs and the pods that want them is broken, as text and as JSON."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from exporter.cluster.kubernetes.nodes.node_detail import node_detail
from exporter.cluster.kubernetes.objects.records import Node
from exporter.cluster.kubernetes.pods.pod_detail import detail
from exporter.cluster.scheduling.explaining.node_links import REMEDIES, NodeLink, first_broken, links
from exporter.cluster.scheduling.explaining.node_signals import Signal, signals, taint_signals
from exporter.cluster.scheduling.nodes.node_selection import taint_text
from exporter.cluster.view import ClusterView
from exporter.commands.explain.sources import ObjectSource
from exporter.commands.explain.text import as_json, lines, not_seen_text
from exporter.commands.terminal import aligned
from exporter.config import ConfigError

_NVIDIA_DEVICE = ("feature.node.kubernetes.io/pci-10de.present", "feature.node.kubernetes.io/pci-0302_10de.present")
"""Labels that node feature discovery sets where a device of NVIDIA is."""


@dataclass(frozen=True, slots=True)
class _NodeFindings:
    """What is known of a node."""

    name: str
    links: list[NodeLink]
    conditions: list[Signal]
    taints: list[Signal]
    cordoned: bool


def node_report(source: ObjectSource, view: ClusterView, name: str, *, json: bool) -> str:
    """Explain one node. Raises ConfigError for one that is not known or has no GPUs."""
    if view.nodes is None:
        raise ConfigError(f"node {name}: the nodes may not be read")
    node = next((each for each in view.nodes if each.name == name), None)
    if node is None:
        raise ConfigError(f"node {name} is not known")
    if not node.has_gpus and name not in view.devices.by_node and not _has_device(node):
        raise ConfigError(f"node {name} has no GPUs: neither its labels nor its resources name any")
    found = _findings(source, view, node)
    if json:
        return as_json({**_facts(found), "not_seen": source.not_seen})
    return lines([*_text(found), *not_seen_text(source.not_seen)])


def _has_device(node: Node) -> bool:
    labels = dict(zip(node.labels[::2], node.labels[1::2], strict=True))
    return any(labels.get(key) == "true" for key in _NVIDIA_DEVICE)


def _findings(source: ObjectSource, view: ClusterView, node: Node) -> _NodeFindings:
    given = source.node(node.name)
    found = None if given is None else node_detail(given)
    conditions = (found.status.conditions if found is not None else None) or ()
    pods = source.pods_on(node.name)
    decoded = None if pods is None else [each for pod in pods if (each := detail(pod)) is not None]
    return _NodeFindings(
        node.name,
        links(node, decoded, view.events, through_dra=node.name in view.devices.by_node),
        signals(conditions),
        taint_signals((taint, taint_text(taint)) for taint in node.taints),
        node.cordoned,
    )


def _text(found: _NodeFindings) -> Iterable[str]:
    broken = first_broken(found.links)
    if broken is None:
        yield f"node/{found.name}: no link is broken"
    else:
        yield f"node/{found.name}: the first broken link is {broken.name}"
        yield f"{broken.text[:1].upper()}{broken.text[1:]}."
    yield from ("", "From the GPUs to the pods:")
    yield from (f"  {each}" for each in aligned([_row(each) for each in found.links]))
    yield from _signals_text("Conditions that tell of a problem:", found.conditions)
    yield from _signals_text("Taints that tell of a problem:", found.taints)
    if found.cordoned:
        yield from ("", "The node is cordoned.")
    yield from ("", *([] if broken is None else [f"What to do: {REMEDIES[broken.name]}"]), "To see more:")
    yield from (f"  {each}" for each in _commands(found.name, broken))


def _row(link: NodeLink) -> tuple[str, ...]:
    return link.name, link.state, f"pod {link.namespace}/{link.pod}" if link.pod else link.text


def _signals_text(title: str, found: list[Signal]) -> Iterable[str]:
    if found:
        yield from ("", title)
    for each in found:
        text = f": {each.message}" if each.message else ""
        yield f"  {each.name} (by {each.writer}){text}"


def _commands(name: str, broken: NodeLink | None) -> list[str]:
    node = f"kubectl describe node {shlex.quote(name)}"
    if broken is None or not broken.pod:
        return [node]
    pod = f"-n {shlex.quote(broken.namespace)} {shlex.quote(broken.pod)}"
    return [f"kubectl logs --all-containers {pod}", f"kubectl describe pod {pod}", node]


def _facts(found: _NodeFindings) -> dict[str, object]:
    broken = first_broken(found.links)
    return {
        "node": found.name,
        "first_broken_link": None if broken is None else broken.name,
        "remedy": None if broken is None else REMEDIES[broken.name],
        "links": [each._asdict() for each in found.links],
        "conditions": [each._asdict() for each in found.conditions],
        "taints": [each._asdict() for each in found.taints],
        "cordoned": found.cordoned,
        "commands": _commands(found.name, broken),
    }
