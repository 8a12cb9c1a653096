"""Everything a pass looks at: the three tables as of one moment, each present only while it is current."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from exporter.cluster.kubernetes.records import Namespace, Node, Pod, Switches
from exporter.cluster.kubernetes.store import TableView
from exporter.gpu_names import GpuResources
from exporter.metric import Labels


@dataclass(frozen=True, slots=True)
class View:
    """`pods`, `nodes` and `namespaces` are None while nothing current is known of them."""

    now: float
    """Seconds since the epoch."""
    gpus: GpuResources
    pods: tuple[Pod, ...] | None = None
    nodes: tuple[Node, ...] | None = None
    namespaces: Mapping[str, Switches] | None = None
    tables: tuple[TableView, ...] = ()
    label: Callable[[tuple[tuple[str, str], ...]], Labels] = Labels
    """Makes labels; a pass that is one of many remembers them."""


def view_of(
    now: float,
    gpus: GpuResources,
    tables: tuple[TableView, ...],
    label: Callable[[tuple[tuple[str, str], ...]], Labels] = Labels,
) -> View:
    """The view that these tables give; they may come in any order."""
    records = {table.object: table.records for table in tables}
    pods, nodes, spaces = (records.get(name) for name in ("pods", "nodes", "namespaces"))
    return View(
        now=now,
        gpus=gpus,
        pods=None if pods is None else tuple(each for each in pods if isinstance(each, Pod)),
        nodes=None if nodes is None else tuple(each for each in nodes if isinstance(each, Node)),
        namespaces=None
        if spaces is None
        else {each.name: each.switches for each in spaces if isinstance(each, Namespace)},
        tables=tables,
        label=label,
    )
