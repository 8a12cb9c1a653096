"""Makes the labels of the DCGM-named series of components: NVSwitches, their NVLinks, CPUs and cores. No I/O.

The names are those of dcgm-exporter. No container is given a component, so there are no labels of one.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from exporter.metric import LabelPairs, Labels, LabelSchema, labels_of_pairs
from exporter.node.devices.counters.counters_file import CounterRow, Counters
from exporter.node.devices.entities.component import OWNERS, Component, ComponentScope
from exporter.node.devices.series.labels import LabelStyle, hostname_names
from exporter.node.devices.series.metrics import SamplesByField

_NAMES: Mapping[ComponentScope, tuple[str, ...]] = {
    "switch": ("nvswitch",),
    "switch_link": ("nvlink", "nvswitch"),
    "cpu": ("cpu", "cpu_serial"),
    "core": ("cpucore", "cpu"),
}
_Texts = dict[tuple[Component | None, int], str]
"""Values of rows of type label, by component and field."""


@lru_cache(maxsize=64)
def component_schema(style: LabelStyle, scope: ComponentScope, label_rows: tuple[str, ...]) -> LabelSchema:
    """The label names of the metrics of components; `label_rows` are the names of the rows of type label."""
    return LabelSchema((*_NAMES[scope], *hostname_names(style), *label_rows), frozenset({"cpu_serial", *label_rows}))


def component_label_rows(counters: Counters, scope: ComponentScope) -> tuple[CounterRow, ...]:
    """Return the rows of type label of components of this scope: their own, and those of what they are part of."""
    scopes = (scope, OWNERS.get(scope))
    return tuple(row for row in counters.label_rows if row.field.scope in scopes)


class ComponentLabelCache:
    """Makes the labels of every component and keeps those of the last collection."""

    def __init__(self, style: LabelStyle, counters: Counters) -> None:
        self._style = style
        self._rows = {scope: component_label_rows(counters, scope) for scope in _NAMES}
        self.schemas: Mapping[ComponentScope, LabelSchema] = {
            scope: component_schema(style, scope, tuple(row.name for row in rows)) for scope, rows in self._rows.items()
        }
        self._known: dict[tuple[Component, LabelPairs], Labels] = {}

    def labels(self, components: Sequence[Component], by_field: SamplesByField) -> list[Labels]:
        """Return one `Labels` per component. A part has the values of label rows of what it is part of, as its own."""
        texts = _texts(components, by_field, {row.field.id for rows in self._rows.values() for row in rows})
        wholes = {component.whole: component for component in components if component.scope not in OWNERS}
        keys = [(component, self._values(component, wholes.get(component.whole), texts)) for component in components]
        self._known = {key: self._known.get(key) or self._make(*key) for key in keys}
        return [self._known[key] for key in keys]

    def _values(self, component: Component, whole: Component | None, texts: _Texts) -> LabelPairs:
        """Return name and value of each row of type label that has one: the component's own, and those of its whole."""
        subjects = [
            (row, component if row.field.scope == component.scope else whole) for row in self._rows[component.scope]
        ]
        values = ((row.name, texts.get((subject, row.field.id))) for row, subject in subjects)
        return tuple((name, value) for name, value in values if value)

    def _make(self, component: Component, rows: LabelPairs) -> Labels:
        own = dict(zip(_NAMES[component.scope], _own_values(component), strict=True))
        hostnames = ((name, self._style.hostname) for name in hostname_names(self._style))
        return labels_of_pairs(self.schemas[component.scope], (*own.items(), *hostnames, *rows))


def _own_values(component: Component) -> tuple[str, ...]:
    """Return the values of the labels of _NAMES."""
    match component.scope:
        case "switch":
            return (f"nvswitch{component.number}",)
        case "switch_link":
            return str(component.number), f"nvswitch{component.owner}"
        case "cpu":
            return str(component.number), component.serial
        case "core":
            return str(component.number), str(component.owner)


def _texts(components: Sequence[Component], by_field: SamplesByField, fields: set[int]) -> _Texts:
    texts: _Texts = {}
    for field in fields:
        for positions, column in by_field.get(field, ()):
            values = zip(positions, column, strict=True)
            texts |= {(components[position], field): str(value) for position, value in values if value is not None}
    return texts
