"""Makes panels, variables, links and, of these, whole dashboards. The only module that imports grafanalib.

There is a function for each panel type. It takes what differs between two panels and sets the rest: data source, step,
legend, and what is shown where there is no value. `render` returns a dashboard as plain data.
"""

import json
from collections.abc import Iterator
from typing import Any

from grafanalib import core as grafana
from grafanalib._gen import DashboardEncoder

from dashboards.grafana_model import DATASOURCE, Json, to_grafana_model
from dashboards.layout import COLUMNS, GridBox, PanelRow, below, flow, panel_id
from dashboards.links import CLUSTER_OF_LINKS
from dashboards.queries import FIRING, with_cluster_of_links
from dashboards.states import ANY_VALUE
from dashboards.style import (
    GAP_MILLISECONDS,
    NATURAL_ORDER,
    NO_DATA,
    REFS,
    SMALLEST_COLUMN,
    STEP,
    Color,
    Column,
    Dashboard,
    Query,
    Unit,
    ValueState,
    column_override,
    decimals,
    defaults,
    line_overrides,
    table_transformations,
    threshold_steps,
    value_mappings,
)


def stat(
    title: str, description: str, unit: Unit, expr: str, states: tuple[ValueState, ...] = (), link: str = ""
) -> Any:
    """Show one number of now, colored by its state where there are `states`, and gray while there is no value.

    A range query would show the last value for hours after everything died; the trend belongs into a graph.
    """
    return grafana.Stat(
        **_head(title, description),
        targets=_targets((Query(expr),), instant=True),
        color={"mode": "thresholds"},
        format=unit.value,
        noValue=NO_DATA,
        reduceCalc="lastNotNull",
        mappings=value_mappings(states),
        thresholds=threshold_steps(states or ANY_VALUE),
        decimals=decimals(unit),
        colorMode="background" if states else "value",
        graphMode="none",
        extraJson={"fieldConfig": {"defaults": defaults(unit, link, states), "overrides": []}},
    )


def graph(title: str, description: str, unit: Unit, *queries: Query, stacked: bool = False, link: str = "") -> Any:
    """Show lines over time, with mean, maximum and last value in a table below; `stacked` for the parts of a whole."""
    return grafana.TimeSeries(
        **_head(title, description),
        targets=_targets(queries),
        unit=unit.value,
        fillOpacity=60 if stacked else 0,
        stacking={"mode": "normal", "group": "A"} if stacked else {},
        showPoints="never",
        tooltipMode="multi",
        tooltipSort="desc",
        legendDisplayMode="table",
        legendCalcs=["mean", "max", "lastNotNull"],
        overrides=line_overrides(queries),
        extraJson={
            "fieldConfig": {
                "defaults": {
                    **defaults(unit, link),
                    "noValue": NO_DATA,
                    "custom": {"insertNulls": GAP_MILLISECONDS},
                }
            },
            "options": {"legend": {"showLegend": True, "sortBy": "Mean", "sortDesc": True}},
        },
    )


def bars(title: str, description: str, unit: Unit, *queries: Query, link: str = "") -> Any:
    """Show the newest values, one bar for each series."""
    # The bar gauge of grafanalib 0.7.1 has the options of Grafana 6. Today's differs from a stat in these keys alone.
    options = {
        "displayMode": "basic",
        "valueMode": "text",
        "showUnfilled": True,
        "orientation": "horizontal",
        "namePlacement": "auto",
        "minVizHeight": 16,
        "minVizWidth": 8,
        "maxVizHeight": 300,
        "sizing": "auto",
        "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": False},
    }
    panel = grafana.Stat(
        **_head(title, description),
        targets=_targets(queries, instant=True),
        format=unit.value,
        noValue=NO_DATA,
        reduceCalc="lastNotNull",
        color={"mode": "fixed", "fixedColor": Color.BUSY.value},
        thresholds=[{"color": Color.BUSY.value}],
        decimals=decimals(unit),
        overrides=line_overrides(queries),
    )
    panel.extraJson = {
        "type": "bargauge",
        "options": {**options, **dict.fromkeys(("colorMode", "graphMode", "justifyMode", "textMode"))},
        "fieldConfig": {"defaults": {**defaults(unit, link), "min": 0}},
    }
    return panel


def timeline(title: str, description: str, query: Query, states: tuple[ValueState, ...]) -> Any:
    """Show which state each series was in over time, by color and word."""
    return grafana.StateTimeline(
        **_head(title, description),
        targets=_targets((query,)),
        mappings=value_mappings(states),
        tooltipMode="single",
        extraJson={
            "fieldConfig": {
                "defaults": {
                    "unit": Unit.COUNT.value,
                    "noValue": NO_DATA,
                    "thresholds": {"steps": threshold_steps(states)},
                    "custom": {"spanNulls": False, "insertNulls": GAP_MILLISECONDS},
                }
            },
            "options": {"legend": {"showLegend": False}},
        },
    )


def table(title: str, description: str, columns: tuple[Column, ...], *exprs: str, sort: str = "") -> Any:
    """Show instant values, one row for each label set; labels that are no column are left out.

    With several expressions, the value of the first is the field `Value #A`, of the second `Value #B`, and so on;
    of a single one it is `Value`. `sort` is the heading of the column whose largest value comes first. Where a column
    has a link, series need the label `cluster`, because links set it to that of the row.
    """
    if any(column.link for column in columns):
        columns = (*columns, Column(CLUSTER_OF_LINKS, CLUSTER_OF_LINKS, hidden=True))
        exprs = tuple(with_cluster_of_links(expr) for expr in exprs)
    return grafana.Table(
        **_head(title, description),
        targets=_targets(tuple(Query(expr) for expr in exprs), instant=True, format="table"),
        unit=Unit.TEXT.value,
        filterable=True,
        colorMode="fixed",
        transformations=table_transformations(columns),
        overrides=[column_override(column) for column in columns],
        extraJson={
            "fieldConfig": {
                "defaults": {
                    "noValue": NO_DATA,
                    "color": {"mode": "thresholds"},
                    "custom": {"minWidth": SMALLEST_COLUMN},
                }
            },
            "options": {
                "sortBy": [{"displayName": sort, "desc": True}] if sort else [],
                "cellHeight": "sm",
                "footer": {"show": False, "reducer": ["sum"], "countRows": False},
            },
        },
    )


def variable(
    name: str, label: str, description: str, query: str, *, all: bool = True, listed: bool = False, hidden: bool = False
) -> Any:
    """A variable for one or several label values. `all` adds the choice All, which also matches a missing label.

    With `listed` the choice All stands for every value of the list, and for no other. `hidden`: it cannot be chosen.
    """
    template = grafana.Template(
        name=name,
        label=label,
        query=query,
        multi=True,
        includeAll=all,
        allValue=".*" if all and not listed else None,
        refresh=2,
        sort=NATURAL_ORDER,
        type="query",
        hide=2 if hidden else 0,
    )
    return _described(template, description)


def datasource() -> Any:
    """The variable for the data source: with it one file can be imported by hand, by provisioning or by a sidecar."""
    template = grafana.Template(name="datasource", label="Data source", query="prometheus", type="datasource")
    return _described(template, "The Prometheus that has the gpugauge rules loaded.")


def render(dashboard: Dashboard) -> Json:
    """Return the dashboard as plain data for Grafana 11 and later, ready to be imported in any way."""
    raw = grafana.Dashboard(
        title=dashboard.title,
        description=dashboard.description,
        uid=dashboard.uid,
        tags=sorted({"gpu", "generated", *dashboard.tags}),
        editable=False,
        graphTooltip=1,
        time=grafana.Time(dashboard.since, "now"),
        timezone="browser",
        refresh=dashboard.refresh,
        templating=grafana.Templating(list(dashboard.variables)),
        annotations=grafana.Annotations([_firing()]),
        links=[grafana.DashboardLink(title="GPU dashboards", tags=["gpu"], asDropdown=True, includeVars=True)],
        panels=list(_place(dashboard.rows)),
    )
    return to_grafana_model(json.loads(json.dumps(raw.to_json_data(), cls=DashboardEncoder)))


def _head(title: str, description: str) -> Json:
    return {"title": title, "description": description, "dataSource": DATASOURCE, "interval": STEP}


def _targets(queries: tuple[Query, ...], *, instant: bool = False, format: str = "time_series") -> list[Any]:
    return [
        grafana.Target(expr=query.expr, legendFormat=query.legend, refId=ref, instant=instant, format=format)
        for ref, query in zip(REFS[: len(queries)], queries, strict=True)
    ]


def _described(template: Any, description: str) -> Json:
    # The variables of grafanalib 0.7.1 have no description; to_grafana_model keeps this one.
    return {**template.to_json_data(), "description": description}


def _firing() -> Json:
    return {
        "name": "Firing GPU alerts",
        "enable": False,
        "hide": False,
        "iconColor": Color.WARNING.value,
        "expr": f"max by (alertname, severity, cluster, node) (ALERTS{{{FIRING}}})",
        "step": STEP,
        "titleFormat": "{{alertname}}",
        "tagKeys": "severity,cluster,node",
    }


def _place(rows: tuple[PanelRow, ...]) -> Iterator[Json]:
    """Yield rows and panels with ids and positions. Panels of a collapsed row are inside the row and take no space."""
    top = 0
    for row in rows:
        boxes = flow([(each.w, each.h) for each in row.panels], top + 1)
        inner = [_at(each.panel, box) for each, box in zip(row.panels, boxes, strict=True)]
        header = grafana.RowPanel(title=row.title, collapsed=row.collapsed, panels=inner if row.collapsed else [])
        yield _at(header, GridBox(0, top, COLUMNS, 1))
        top += 1
        if not row.collapsed:
            yield from inner
            top = below(boxes, top)


def _at(panel: Any, box: GridBox) -> Json:
    position = {"x": box.x, "y": box.y, "w": box.w, "h": box.h}
    return {**panel.to_json_data(), "id": panel_id(panel.title), "gridPos": position}
