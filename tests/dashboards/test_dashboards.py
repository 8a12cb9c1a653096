"""Requirements on every generated dashboard, whatever it shows."""

import json
import re
from collections.abc import Iterator

import promql_parser
import pytest

from dashboards import DASHBOARDS
from dashboards.__main__ import OUTPUT, files, main
from dashboards.layout import GridBox
from dashboards.panels import render
from dashboards.style import Unit
from tests.dashboards.test_layout import overlap

RENDERED = {dashboard.uid: render(dashboard) for dashboard in DASHBOARDS}
EVERY_DASHBOARD = pytest.mark.parametrize("dashboard", RENDERED.values(), ids=RENDERED.keys())

# Panels that Grafana 12 and later have built in; the Angular ones (graph, singlestat, table-old, …) are gone.
PANEL_TYPES = {"row", "stat", "timeseries", "bargauge", "state-timeline", "table"}
PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
SMALLEST_STEP = "1m"
THRESHOLD = "global:gpugauge_threshold:value"
"""Recorded once for all clusters of a store."""


def all_panels(dashboard):
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def panels(dashboard):
    return [panel for panel in all_panels(dashboard) if panel["type"] != "row"]


def expressions(dashboard) -> Iterator[tuple[str, str]]:
    for panel in panels(dashboard):
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


def nulls(value, path=()) -> Iterator[tuple]:
    if value is None:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from nulls(inner, (*path, key))


def test_the_uids_are_those_that_links_contain():
    assert set(RENDERED) == {"gpu-fleet", "gpu-node"}


@EVERY_DASHBOARD
def test_visible_panels_fit_on_24_columns_without_overlapping(dashboard):
    places = [GridBox(**panel["gridPos"]) for panel in dashboard["panels"]]
    assert all(place.x >= 0 and place.w > 0 and place.x + place.w <= 24 for place in places)
    assert not [(a, b) for i, a in enumerate(places) for b in places[:i] if overlap(a, b)]


@EVERY_DASHBOARD
def test_panels_of_a_collapsed_row_are_below_it_without_overlapping(dashboard):
    for row in dashboard["panels"]:
        places = [GridBox(**panel["gridPos"]) for panel in row.get("panels", [])]
        assert all(place.y > row["gridPos"]["y"] and place.x + place.w <= 24 for place in places)
        assert not [(a, b) for i, a in enumerate(places) for b in places[:i] if overlap(a, b)]


@EVERY_DASHBOARD
def test_ids_and_titles_are_unique(dashboard):
    ids = [panel["id"] for panel in all_panels(dashboard)]
    titles = [panel["title"] for panel in all_panels(dashboard)]
    assert len(set(ids)) == len(ids)
    assert len(set(titles)) == len(titles)


@EVERY_DASHBOARD
def test_a_dashboard_has_what_every_way_of_importing_it_requires(dashboard):
    assert re.fullmatch(r"[a-z0-9-]{8,40}", dashboard["uid"])
    assert {"gpu", "generated"} < set(dashboard["tags"])
    assert (dashboard["id"], dashboard["schemaVersion"], dashboard["editable"], dashboard["graphTooltip"]) == (
        None,
        41,
        False,
        1,
    )
    assert dashboard["description"]
    assert not {"__inputs", "__requires", "version", "iteration"} & dashboard.keys()


@EVERY_DASHBOARD
def test_the_first_variable_is_the_data_source_and_everything_queries_it(dashboard):
    first, *others = dashboard["templating"]["list"]
    assert (first["name"], first["type"], first["query"]) == ("datasource", "datasource", "prometheus")
    querying = [*others, *panels(dashboard), *dashboard["annotations"]["list"]]
    querying += [target for panel in panels(dashboard) for target in panel["targets"]]
    assert all(each["datasource"] == PROMETHEUS for each in querying)
    assert all(each["description"] and each["label"] for each in dashboard["templating"]["list"])


@EVERY_DASHBOARD
def test_every_panel_has_a_title_a_description_a_unit_and_a_query(dashboard):
    known = {unit.value for unit in Unit}
    for panel in panels(dashboard):
        assert panel["title"]
        assert len(panel["description"]) > 30, panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in known, panel["title"]
        assert panel["targets"], panel["title"]


@EVERY_DASHBOARD
def test_missing_values_are_shown_as_no_data_and_lines_are_not_drawn_across_gaps(dashboard):
    for panel in panels(dashboard):
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["noValue"] == "no data", panel["title"]
        assert panel["interval"] == SMALLEST_STEP
        if panel["type"] in {"timeseries", "state-timeline"}:
            assert defaults["custom"]["spanNulls"] is False
            assert defaults["custom"]["insertNulls"] == 180_000


@EVERY_DASHBOARD
def test_only_panel_types_of_current_grafana_releases_are_used(dashboard):
    assert {panel["type"] for panel in all_panels(dashboard)} <= PANEL_TYPES


@EVERY_DASHBOARD
def test_null_is_used_only_where_the_model_requires_it(dashboard):
    first_threshold = ("thresholds", "steps", 0, "value")
    column_threshold = ("value", "steps", 0, "value")
    unexpected = [p for p in nulls(dashboard) if p != ("id",) and p[-4:] not in {first_threshold, column_threshold}]
    assert unexpected == []
    assert '"null"' not in json.dumps(dashboard)


@EVERY_DASHBOARD
def test_thresholds_begin_without_a_bound_and_rise(dashboard):
    for panel in panels(dashboard):
        values = [step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]
        assert values[0] is None
        assert values[1:] == sorted(values[1:])


@EVERY_DASHBOARD
def test_a_state_timeline_has_a_word_for_every_color(dashboard):
    for panel in panels(dashboard):
        if panel["type"] == "state-timeline":
            mapped = {mapping["options"]["from"] for mapping in panel["fieldConfig"]["defaults"]["mappings"]}
            steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
            assert {step["value"] for step in steps[1:]} == mapped


@EVERY_DASHBOARD
def test_every_expression_parses_and_selects_the_chosen_cluster(dashboard):
    for title, expression in expressions(dashboard):
        promql_parser.parse(expression.replace("$__rate_interval", "5m"))
        found = re.findall(r"([\w:]*)\{([^}]*)\}", expression)
        assert all("$cluster" in matchers for name, matchers in found if name != THRESHOLD), title


@EVERY_DASHBOARD
def test_every_variable_in_use_is_declared(dashboard):
    declared = {each["name"] for each in dashboard["templating"]["list"]}
    text = " ".join(expression for _, expression in expressions(dashboard))
    used = set(re.findall(r"\$([a-z]\w*)", text))
    queries = " ".join(each["query"] for each in dashboard["templating"]["list"])
    assert used | set(re.findall(r"\$([a-z]\w*)", queries)) <= declared


@EVERY_DASHBOARD
def test_only_panels_of_chosen_nodes_read_series_that_exporters_expose(dashboard):
    own = {"up", "ALERTS", "ALERTS_FOR_STATE"}
    for title, expression in expressions(dashboard):
        names = selected(promql_parser.parse(expression.replace("$__rate_interval", "5m")))
        exposed = {name for name in names if ":" not in name and name not in own}
        assert all(name.startswith("gpugauge_") for name in exposed), f"{title}: {exposed}"
        assert not exposed or 'node=~"$node"' in expression, f"{title} reads {exposed} of a whole fleet"


def selected(node) -> set[str]:
    """The metric names that an expression selects."""
    if isinstance(node, promql_parser.VectorSelector):
        return {node.name}
    if isinstance(node, promql_parser.MatrixSelector):
        return {node.vector_selector.name}
    inner = [getattr(node, name, None) for name in ("lhs", "rhs", "expr")]
    inner += list(getattr(node, "args", []) or [])
    return set[str]().union(*(selected(each) for each in inner if each is not None))


@EVERY_DASHBOARD
def test_every_recorded_series_is_written_by_a_rule(dashboard):
    rules = "\n".join(path.read_text() for path in (OUTPUT.parent / "rules").glob("*.yaml"))
    recorded = set(re.findall(r"record: (\S+)", rules))
    assert recorded
    for title, expression in expressions(dashboard):
        names = selected(promql_parser.parse(expression.replace("$__rate_interval", "5m")))
        assert {name for name in names if ":" in name} <= recorded, title
    for each in dashboard["templating"]["list"]:
        assert set(re.findall(r"label_values\(([\w:]+)", each["query"])) <= recorded


@EVERY_DASHBOARD
def test_table_columns_are_fields_of_the_query_results(dashboard):
    for panel in panels(dashboard):
        if panel["type"] != "table":
            continue
        refs = [target["refId"] for target in panel["targets"]]
        values = {"Value"} if len(refs) == 1 else {f"Value #{ref}" for ref in refs}
        names = panel["transformations"][1]["options"]["include"]["names"]
        assert {name for name in names if name.startswith("Value")} <= values, panel["title"]
        text = " ".join(target["expr"] for target in panel["targets"])
        labels = {name for name in names if not name.startswith("Value")}
        assert {label for label in labels if not re.search(rf"\b{label}\b", text)} <= {
            "node",
            "workload",
            "pod",
            "reason",
        } | {
            "workload_type",
            "namespace",
        }, panel["title"]
        titles = set(panel["transformations"][2]["options"]["renameByName"].values())
        assert {each["displayName"] for each in panel["options"]["sortBy"]} <= titles, panel["title"]
        assert {override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]} == titles


@EVERY_DASHBOARD
def test_links_lead_to_existing_dashboards_and_set_variables_that_they_have(dashboard):
    text = json.dumps(dashboard)
    for uid, rest in re.findall(r"/d/([a-z0-9-]+)\?([^ }]*\S*?__url_time_range\})", text):
        assert uid in RENDERED
        declared = {each["name"] for each in RENDERED[uid]["templating"]["list"]}
        assert set(re.findall(r"var-(\w+)=", rest)) <= declared
    assert "http://" not in text
    assert "https://" not in text


def test_generated_files_are_current():
    written = {path.name: path.read_text() for path in OUTPUT.iterdir()}
    assert written == files(DASHBOARDS)


def test_files_are_small_enough_for_a_config_map_and_end_with_a_newline():
    for text in files(DASHBOARDS).values():
        assert len(text.encode()) < 200_000
        assert text.endswith("}\n")


def test_the_generator_writes_to_the_folder_it_is_given(tmp_path):
    main(["--output", str(tmp_path / "new")])
    assert {path.name: path.read_text() for path in (tmp_path / "new").iterdir()} == files(DASHBOARDS)
