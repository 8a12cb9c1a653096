"""The house style: how our panels, variables and links look. The only module that knows grafanalib.

A function per panel type takes what differs between two panels and fixes the rest: data source, step, legends and
what is shown where there is no value.
"""

import json
from collections.abc import Iterator
from typing import Any

from grafanalib import core as grafana
from grafanalib._gen import DashboardEncoder

from dashboards.grafana_model import DATASOURCE, Json, normalise
from dashboards.layout import COLUMNS, Box, Row, below, flow, panel_id
from dashboards.queries import FIRING
from dashboards.style import (
    GAP_MILLISECONDS,
    NATURAL_ORDER,
    NO_DATA,
    REFS,
    STEP,
    Board,
    Colour,
    Column,
    Query,
    State,
    Unit,
    arrange,
    cells,
    decimals,
    defaults,
    lines,
    steps,
    words,
)


def stat(title: str, description: str, unit: Unit, expr: str, states: tuple[State, ...] = (), link: str = "") -> Any:
    """One number for the whole selection, with its course behind it."""
    return grafana.Stat(
        **_head(title, description),
        targets=_targets((Query(expr),), instant=bool(states)),
        color={"mode": "thresholds"} if states else {"mode": "fixed", "fixedColor": Colour.BUSY.value},
        format=unit.value,
        noValue=NO_DATA,
        reduceCalc="lastNotNull",
        mappings=words(states),
        thresholds=steps(states),
        decimals=decimals(unit),
        colorMode="background" if states else "value",
        graphMode="none" if states else "area",
        extraJson={"fieldConfig": {"defaults": defaults(unit, link), "overrides": []}},
    )


def graph(title: str, description: str, unit: Unit, *queries: Query, stacked: bool = False, link: str = "") -> Any:
    """Lines over time with their means in a table below; stacked where the parts make a whole."""
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
        overrides=lines(queries),
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
    """The newest values side by side, one bar for each series."""
    # grafanalib's own bar gauge has the options of Grafana 6; a stat differs from today's in these few keys only.
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
        thresholds=[{"color": Colour.BUSY.value}],
        decimals=decimals(unit),
        overrides=lines(queries),
    )
    panel.extraJson = {
        "type": "bargauge",
        "options": {**options, **dict.fromkeys(("colorMode", "graphMode", "justifyMode", "textMode"))},
        "fieldConfig": {"defaults": {**defaults(unit, link), "min": 0}},
    }
    return panel


def timeline(title: str, description: str, query: Query, states: tuple[State, ...]) -> Any:
    """Which state each thing was in, and when it changed: a word beside every colour."""
    return grafana.StateTimeline(
        **_head(title, description),
        targets=_targets((query,)),
        mappings=words(states),
        tooltipMode="single",
        extraJson={
            "fieldConfig": {
                "defaults": {
                    "unit": Unit.COUNT.value,
                    "noValue": NO_DATA,
                    "thresholds": {"steps": steps(states)},
                    "custom": {"spanNulls": False, "insertNulls": GAP_MILLISECONDS},
                }
            },
            "options": {"legend": {"showLegend": False}},
        },
    )


def table(title: str, description: str, columns: tuple[Column, ...], *exprs: str, sort: str = "") -> Any:
    """Instant values merged to one line for each set of labels; columns that are not named are left out.

    With several expressions, the value of the first is the field `Value #A`, of the second `Value #B`, and so on;
    of a single one it is `Value`. `sort` is the heading of the column whose largest value comes first.
    """
    return grafana.Table(
        **_head(title, description),
        targets=_targets(tuple(Query(expr) for expr in exprs), instant=True, format="table"),
        unit=Unit.TEXT.value,
        filterable=True,
        colorMode="fixed",
        transformations=arrange(columns),
        overrides=[cells(column) for column in columns],
        extraJson={
            "fieldConfig": {"defaults": {"noValue": NO_DATA, "color": {"mode": "thresholds"}}},
            "options": {
                "sortBy": [{"displayName": sort, "desc": True}] if sort else [],
                "cellHeight": "sm",
                "footer": {"show": False, "reducer": ["sum"], "countRows": False},
            },
        },
    )


def variable(name: str, label: str, description: str, query: str, *, all: bool = True) -> Any:
    """A choice of label values, several at a time; `all` offers All, which matches a missing label too."""
    template = grafana.Template(
        name=name,
        label=label,
        query=query,
        multi=True,
        includeAll=all,
        allValue=".*" if all else None,
        refresh=2,
        sort=NATURAL_ORDER,
        type="query",
    )
    return _described(template, description)


def datasource() -> Any:
    """The variable that makes one file work on every import path."""
    template = grafana.Template(name="datasource", label="Data source", query="prometheus", type="datasource")
    return _described(template, "The Prometheus that has the gpugauge rules loaded.")


def to(uid: str, **fields: str) -> str:
    """A link to another of our dashboards that keeps time, data source and clusters; `fields`: variable = column."""
    picked = "".join(f'&var-{name}=${{__data.fields["{column}"]}}' for name, column in fields.items())
    # The chosen clusters and not the one of the row: where there is no such label there is no such column either.
    return f"/d/{uid}?${{datasource:queryparam}}&${{cluster:queryparam}}{picked}&${{__url_time_range}}"


def render(board: Board) -> Json:
    """The dashboard as plain data for Grafana 11 and later, valid on every import path."""
    raw = grafana.Dashboard(
        title=board.title,
        description=board.description,
        uid=board.uid,
        tags=sorted({"gpu", "generated", *board.tags}),
        editable=False,
        graphTooltip=1,
        time=grafana.Time(board.since, "now"),
        timezone="browser",
        refresh=board.refresh,
        templating=grafana.Templating(list(board.variables)),
        annotations=grafana.Annotations([_firing()]),
        links=[grafana.DashboardLink(title="GPU dashboards", tags=["gpu"], asDropdown=True, includeVars=True)],
        panels=list(_place(board.rows)),
    )
    return normalise(json.loads(json.dumps(raw.to_json_data(), cls=DashboardEncoder)))


def _head(title: str, description: str) -> Json:
    return {"title": title, "description": description, "dataSource": DATASOURCE, "interval": STEP}


def _targets(queries: tuple[Query, ...], *, instant: bool = False, format: str = "time_series") -> list[Any]:
    return [
        grafana.Target(expr=query.expr, legendFormat=query.legend, refId=ref, instant=instant, format=format)
        for ref, query in zip(REFS[: len(queries)], queries, strict=True)
    ]


def _described(template: Any, description: str) -> Json:
    # grafanalib's variables have no description; the normaliser passes it on.
    return {**template.to_json_data(), "description": description}


def _firing() -> Json:
    return {
        "name": "Firing GPU alerts",
        "enable": False,
        "hide": False,
        "iconColor": Colour.WARNING.value,
        "expr": f"max by (alertname, severity, cluster, node) (ALERTS{{{FIRING}}})",
        "step": STEP,
        "titleFormat": "{{alertname}}",
        "tagKeys": "severity,cluster,node",
    }


def _place(rows: tuple[Row, ...]) -> Iterator[Json]:
    """Panels with ids and places. What a collapsed row hides takes no room, and lies inside the row's own record."""
    top = 0
    for row in rows:
        boxes = flow([(each.w, each.h) for each in row.panels], top + 1)
        inner = [_at(each.panel, box) for each, box in zip(row.panels, boxes, strict=True)]
        header = grafana.RowPanel(title=row.title, collapsed=row.collapsed, panels=inner if row.collapsed else [])
        yield _at(header, Box(0, top, COLUMNS, 1))
        top += 1
        if not row.collapsed:
            yield from inner
            top = below(boxes, top)


def _at(panel: Any, box: Box) -> Json:
    place = {"x": box.x, "y": box.y, "w": box.w, "h": box.h}
    return {**panel.to_json_data(), "id": panel_id(panel.title), "gridPos": place}
