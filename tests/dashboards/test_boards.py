"""What holds for every dashboard that is generated, whatever it shows."""

import json
import re
from collections.abc import Iterator

import promql_parser
import pytest

from dashboards import DASHBOARDS
from dashboards.__main__ import OUTPUT, files, main
from dashboards.panels import render
from dashboards.style import Unit

BOARDS = {board.uid: render(board) for board in DASHBOARDS}
EVERY_BOARD = pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS.keys())

# Panels that Grafana 12 and later have built in; the Angular ones (graph, singlestat, table-old, …) are gone.
PANEL_TYPES = {"row", "stat", "timeseries", "bargauge", "state-timeline", "table"}
PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
LEAST_STEP = "1m"


def all_panels(board):
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", [])


def panels(board):
    return [panel for panel in all_panels(board) if panel["type"] != "row"]


def expressions(board) -> Iterator[tuple[str, str]]:
    for panel in panels(board):
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for annotation in board["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


def nulls(value, path=()) -> Iterator[tuple]:
    if value is None:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from nulls(inner, (*path, key))


def overlap(one, other):
    return (
        one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    )


def test_the_uids_are_the_ones_that_links_and_alerts_point_at():
    assert set(BOARDS) == {"gpu-fleet", "gpu-node"}


@EVERY_BOARD
def test_visible_panels_stand_on_24_columns_without_overlapping(board):
    places = [panel["gridPos"] for panel in board["panels"]]
    assert all(place["x"] >= 0 and place["w"] > 0 and place["x"] + place["w"] <= 24 for place in places)
    assert not [(a, b) for i, a in enumerate(places) for b in places[:i] if overlap(a, b)]


@EVERY_BOARD
def test_panels_of_a_collapsed_row_stand_below_it_without_overlapping(board):
    for row in board["panels"]:
        places = [panel["gridPos"] for panel in row.get("panels", [])]
        assert all(place["y"] > row["gridPos"]["y"] and place["x"] + place["w"] <= 24 for place in places)
        assert not [(a, b) for i, a in enumerate(places) for b in places[:i] if overlap(a, b)]


@EVERY_BOARD
def test_ids_and_titles_are_unique(board):
    ids = [panel["id"] for panel in all_panels(board)]
    titles = [panel["title"] for panel in all_panels(board)]
    assert len(set(ids)) == len(ids)
    assert len(set(titles)) == len(titles)


@EVERY_BOARD
def test_a_dashboard_has_what_every_import_path_needs(board):
    assert re.fullmatch(r"[a-z0-9-]{8,40}", board["uid"])
    assert {"gpu", "generated"} < set(board["tags"])
    assert (board["id"], board["schemaVersion"], board["editable"], board["graphTooltip"]) == (None, 41, False, 1)
    assert board["description"]
    assert not {"__inputs", "__requires", "version", "iteration"} & board.keys()


@EVERY_BOARD
def test_the_first_variable_chooses_the_data_source_and_everything_asks_it(board):
    first, *others = board["templating"]["list"]
    assert (first["name"], first["type"], first["query"]) == ("datasource", "datasource", "prometheus")
    asking = [*others, *panels(board), *board["annotations"]["list"]]
    asking += [target for panel in panels(board) for target in panel["targets"]]
    assert all(each["datasource"] == PROMETHEUS for each in asking)
    assert all(each["description"] and each["label"] for each in board["templating"]["list"])


@EVERY_BOARD
def test_every_panel_says_what_it_shows_and_in_which_unit(board):
    known = {unit.value for unit in Unit}
    for panel in panels(board):
        assert panel["title"]
        assert len(panel["description"]) > 30, panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in known, panel["title"]
        assert panel["targets"], panel["title"]


@EVERY_BOARD
def test_missing_values_are_told_and_holes_are_not_bridged(board):
    for panel in panels(board):
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["noValue"] == "no data", panel["title"]
        assert panel["interval"] == LEAST_STEP
        if panel["type"] in {"timeseries", "state-timeline"}:
            assert defaults["custom"]["spanNulls"] is False
            assert defaults["custom"]["insertNulls"] == 180_000


@EVERY_BOARD
def test_only_panels_of_current_grafanas_are_used(board):
    assert {panel["type"] for panel in all_panels(board)} <= PANEL_TYPES


@EVERY_BOARD
def test_null_stands_only_where_the_model_wants_it(board):
    first_threshold = ("thresholds", "steps", 0, "value")
    cell_threshold = ("value", "steps", 0, "value")
    unexpected = [p for p in nulls(board) if p != ("id",) and p[-4:] not in {first_threshold, cell_threshold}]
    assert unexpected == []
    assert '"null"' not in json.dumps(board)


@EVERY_BOARD
def test_thresholds_begin_without_a_bound_and_rise(board):
    for panel in panels(board):
        values = [step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]
        assert values[0] is None
        assert values[1:] == sorted(values[1:])


@EVERY_BOARD
def test_a_state_timeline_says_a_word_for_every_colour(board):
    for panel in panels(board):
        if panel["type"] == "state-timeline":
            mapped = {mapping["options"]["from"] for mapping in panel["fieldConfig"]["defaults"]["mappings"]}
            steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
            assert {step["value"] for step in steps[1:]} == mapped


@EVERY_BOARD
def test_every_expression_parses_and_keeps_to_the_chosen_cluster(board):
    for title, expression in expressions(board):
        promql_parser.parse(expression.replace("$__rate_interval", "5m"))
        selectors = re.findall(r"\{([^}]*)\}", expression)
        assert all("$cluster" in each or "gpugauge_threshold" in expression for each in selectors), title


@EVERY_BOARD
def test_every_variable_in_use_is_declared(board):
    declared = {each["name"] for each in board["templating"]["list"]}
    text = " ".join(expression for _, expression in expressions(board))
    used = set(re.findall(r"\$([a-z]\w*)", text))
    queries = " ".join(each["query"] for each in board["templating"]["list"])
    assert used | set(re.findall(r"\$([a-z]\w*)", queries)) <= declared


@EVERY_BOARD
def test_panels_read_recorded_series_and_the_health_of_the_exporter_alone(board):
    own = {"up", "ALERTS", "ALERTS_FOR_STATE"}
    health = re.compile(r"gpugauge_(source|devices_|device_up|snapshot|rejected|build)")
    for title, expression in expressions(board):
        names = selected(promql_parser.parse(expression.replace("$__rate_interval", "5m")))
        stray = {name for name in names if ":" not in name and name not in own and not health.match(name)}
        assert not stray, f"{title}: {stray}"


def selected(node) -> set[str]:
    """The metric names that an expression selects."""
    if isinstance(node, promql_parser.VectorSelector):
        return {node.name}
    if isinstance(node, promql_parser.MatrixSelector):
        return {node.vector_selector.name}
    inner = [getattr(node, name, None) for name in ("lhs", "rhs", "expr")]
    inner += list(getattr(node, "args", []) or [])
    return set[str]().union(*(selected(each) for each in inner if each is not None))


@EVERY_BOARD
def test_every_recorded_series_is_written_by_a_rule(board):
    rules = "\n".join(path.read_text() for path in (OUTPUT.parent / "rules").glob("*.yaml"))
    recorded = set(re.findall(r"record: (\S+)", rules))
    assert recorded
    for title, expression in expressions(board):
        names = selected(promql_parser.parse(expression.replace("$__rate_interval", "5m")))
        assert {name for name in names if ":" in name} <= recorded, title
    for each in board["templating"]["list"]:
        assert set(re.findall(r"label_values\(([\w:]+)", each["query"])) <= recorded


@EVERY_BOARD
def test_table_columns_are_fields_that_the_queries_give(board):
    for panel in panels(board):
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


@EVERY_BOARD
def test_links_lead_to_dashboards_that_exist_and_set_variables_that_they_have(board):
    text = json.dumps(board)
    for uid, rest in re.findall(r"/d/([a-z0-9-]+)\?([^ }]*\S*?__url_time_range\})", text):
        assert uid in BOARDS
        declared = {each["name"] for each in BOARDS[uid]["templating"]["list"]}
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
