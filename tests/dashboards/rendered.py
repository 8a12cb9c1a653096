"""Every dashboard as the data that Grafana imports, and its parts."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from dashboards import DASHBOARDS
from dashboards.panels import render

RENDERED = {dashboard.uid: render(dashboard) for dashboard in DASHBOARDS}
EVERY_DASHBOARD = pytest.mark.parametrize("dashboard", RENDERED.values(), ids=RENDERED.keys())

LABEL_VALUES = re.compile(r"label_values\((?P<series>.+), (?P<label>\w+)\)")


def all_panels(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Panels and rows, those inside collapsed rows too."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """All panels, without the rows."""
    return [panel for panel in all_panels(dashboard) if panel["type"] != "row"]


def expressions(dashboard: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The expressions of panels and annotations, each with the title of its panel."""
    for panel in panels(dashboard):
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


def variable_sources(dashboard: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Of each variable that lists label values its name, the selector of the series, and the label."""
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            found = LABEL_VALUES.fullmatch(variable["query"])
            assert found, variable["query"]
            yield variable["name"], found["series"], found["label"]


def with_windows(expression: str, window: str = "5m", step: str = "1m") -> str:
    """The expression with the times that Grafana sets, so that it can be parsed; `$node` stays."""
    for name, value in (
        ("range_s", "86400"),
        ("interval_ms", "60000"),
        ("rate_interval", window),
        ("range", window),
        ("interval", step),
    ):
        expression = re.sub(rf"\$__{name}\b", value, expression)
    return expression


def filled(expression: str, window: str = "5m", step: str = "1m") -> str:
    """The expression with everything set that Grafana sets; variables of the dashboard match everything."""
    return re.sub(r"\$[a-z]\w*", ".*", with_windows(expression, window, step))


def links(dashboard: dict[str, Any]) -> Iterator[str]:
    """The address of every link of a panel, a field or a table column."""
    for panel in panels(dashboard):
        for settings in (panel["fieldConfig"]["defaults"], *_columns(panel)):
            yield from (link["url"] for link in settings.get("links", ()))


def _columns(panel: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for override in panel["fieldConfig"]["overrides"]:
        yield {each["id"]: each["value"] for each in override["properties"]}


def text(dashboard: dict[str, Any]) -> str:
    return json.dumps(dashboard)
