"""Requirements on every generated dashboard, whatever it shows."""

import json
import re
from collections.abc import Iterator

import promql_parser

from dashboards import DASHBOARDS
from dashboards.__main__ import OUTPUT, files, main
from dashboards.grafana_model import NEUTRAL
from dashboards.layout import GridBox
from dashboards.style import Unit
from exporter.commands.metrics import sections
from tests.dashboards.rendered import (
    EVERY_DASHBOARD,
    RENDERED,
    all_panels,
    expressions,
    filled,
    panels,
    variable_sources,
    with_windows,
)
from tests.dashboards.test_layout import overlap
from tests.promql import Matcher, selectors

# Panels that Grafana 12 and later have built in; the Angular ones (graph, singlestat, table-old, …) are gone.
PANEL_TYPES = {"row", "stat", "timeseries", "bargauge", "state-timeline", "table"}
PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
SMALLEST_STEP = "1m"
SMALL = {
    "up",
    "scrape_samples_scraped",
    "ALERTS",
    "ALERTS_FOR_STATE",
    "prometheus_rule_group_last_duration_seconds",
    "prometheus_rule_evaluation_failures_total",
    "prometheus_rule_group_iterations_missed_total",
    "gpugauge_xid_last_timestamp_seconds",
}
"""Series that are few in a fleet too; that of XIDs exists only where there was one."""
THRESHOLD = "global:gpugauge_threshold:value"
"""Recorded once for all clusters of a store."""


def nulls(value, path=()) -> Iterator[tuple]:
    if value is None:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from nulls(inner, (*path, key))


def test_the_uids_are_those_that_links_contain():
    assert set(RENDERED) == {
        "gpu-fleet",
        "gpu-node",
        "gpu-workload",
        "gpu-namespace",
        "gpu-capacity",
        "gpu-efficiency",
        "gpu-health",
        "gpu-exporter",
        "gpu-device",
        "gpu-mig-sharing",
        "gpu-alerts",
        "gpu-weekly",
    }


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
        promql_parser.parse(filled(expression))
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
def test_series_that_node_exporters_expose_are_read_of_chosen_nodes_alone(dashboard):
    watcher = {
        metric.name for each in sections() if each.title.startswith("Cluster watcher") for metric in each.metrics
    }
    for title, expression in expressions(dashboard):
        for name, matchers in selectors(with_windows(expression)):
            if ":" in name or re.sub("_(bucket|count)$", "", name) in watcher | SMALL:
                continue
            assert name.startswith(("gpugauge_", "DCGM_FI_")), f"{title}: {name}"
            assert matchers.get("node") == Matcher("=~", "$node"), f"{title} reads {name} of a whole fleet"


@EVERY_DASHBOARD
def test_every_recorded_series_is_written_by_a_rule(dashboard):
    rules = "\n".join(path.read_text() for path in (OUTPUT / "rules").rglob("*.yaml"))
    recorded = set(re.findall(r"record: (\S+)", rules))
    assert recorded
    for title, expression in expressions(dashboard):
        names = {name for name, _ in selectors(filled(expression))}
        assert {name for name in names if ":" in name} <= recorded, title
    for _, series, _ in variable_sources(dashboard):
        assert {name for name, _ in selectors(filled(series)) if ":" in name} <= recorded


@EVERY_DASHBOARD
def test_table_columns_are_fields_of_the_query_results(dashboard):
    for panel in panels(dashboard):
        if panel["type"] != "table":
            continue
        refs = [target["refId"] for target in panel["targets"]]
        values = {"Value"} if len(refs) == 1 else {f"Value #{ref}" for ref in refs}
        names = panel["transformations"][2]["options"]["include"]["names"]
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
        titles = set(panel["transformations"][3]["options"]["renameByName"].values())
        assert {each["displayName"] for each in panel["options"]["sortBy"]} <= titles, panel["title"]
        assert {override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]} == titles


@EVERY_DASHBOARD
def test_a_stat_shows_what_is_so_now_and_is_gray_without_a_value(dashboard):
    for panel in panels(dashboard):
        if panel["type"] == "stat":
            assert [target["instant"] for target in panel["targets"]] == [True], panel["title"]
            settings = panel["fieldConfig"]["defaults"]
            assert settings["color"] == {"mode": "thresholds"}
            assert settings["thresholds"]["steps"][0] == {"color": NEUTRAL, "value": None}


@EVERY_DASHBOARD
def test_gray_means_unknown_and_nothing_else(dashboard):
    for panel in panels(dashboard):
        settings = panel["fieldConfig"]
        words = [each["options"]["result"] for each in settings["defaults"].get("mappings", [])]
        assert not [word["text"] for word in words if word["color"] == NEUTRAL], panel["title"]
        assert NEUTRAL not in {step["color"] for step in settings["defaults"]["thresholds"]["steps"][1:]}
        legends = {target["refId"]: target.get("legendFormat", "") for target in panel["targets"]}
        for override in settings["overrides"]:
            colors = [each["value"] for each in override["properties"] if each["id"] == "color"]
            if NEUTRAL in {color.get("fixedColor") for color in colors}:
                assert "unknown" in legends[override["matcher"]["options"]], panel["title"]


def test_generated_files_are_current():
    wanted = files(DASHBOARDS)
    assert {name: (OUTPUT / name).read_text() for name in wanted} == wanted
    assert {f"dashboards/{path.name}" for path in (OUTPUT / "dashboards").iterdir()} == dashboard_files().keys()


def dashboard_files():
    return {name: text for name, text in files(DASHBOARDS).items() if name.startswith("dashboards/")}


def test_files_are_small_enough_for_a_config_map_and_end_with_a_newline():
    for name, text in dashboard_files().items():
        assert len(text.encode()) < 200_000, name
        assert text.endswith("}\n")


def test_a_config_map_fits_the_annotation_in_which_kubectl_apply_keeps_what_it_applied():
    for name, text in dashboard_files().items():
        assert len(json.dumps({"data": {name: text}}).encode()) < 262_144 - 1_000, name


def test_the_generator_writes_to_the_folder_it_is_given(tmp_path):
    main(["--output", str(tmp_path / "new")])
    written = [path for path in (tmp_path / "new").rglob("*") if path.is_file()]
    assert {str(path.relative_to(tmp_path / "new")): path.read_text() for path in written} == files(DASHBOARDS)
