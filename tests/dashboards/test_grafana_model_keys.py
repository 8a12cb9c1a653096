"""The conversion of grafanalib's output to the current dashboard model."""

import copy

from dashboards.grafana_model import NEUTRAL, prune, thresholds, to_grafana_model

RAW = {
    "__inputs": [],
    "annotations": {"list": [{"name": "x", "expr": "up", "datasource": None}]},
    "description": "d",
    "gnetId": None,
    "hideControls": False,
    "id": None,
    "panels": [
        {
            "type": "row",
            "title": "r",
            "id": 1,
            "collapsed": True,
            "targets": [],
            "span": None,
            "panels": [
                {
                    "type": "stat",
                    "title": "inner",
                    "id": 2,
                    "maxDataPoints": 100,
                    "cacheTimeout": None,
                    "editable": True,
                    "fieldConfig": {"defaults": {"unit": "none", "thresholds": {"mode": "absolute", "steps": ""}}},
                    "targets": [
                        {"refId": "A", "expr": "up", "instant": True, "step": 10, "interval": "", "query": "up"},
                        {"refId": "B", "expr": "up", "instant": False, "intervalFactor": 2, "interval": "5m"},
                    ],
                }
            ],
        },
    ],
    "rows": [],
    "schemaVersion": 12,
    "sharedCrosshair": False,
    "style": "dark",
    "templating": {
        "list": [
            {"type": "datasource", "name": "datasource", "query": "prometheus", "datasource": None, "useTags": False},
            {"type": "query", "name": "a", "query": "label_values(m, a)", "includeAll": True, "tagsQuery": None},
            {"type": "query", "name": "b", "query": "label_values(m, b)", "includeAll": False},
        ]
    },
    "timepicker": {"hidden": False},
    "title": "t",
    "uid": "u",
    "version": 0,
}
PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}


def test_keys_of_older_grafana_releases_are_dropped_and_the_schema_version_is_current():
    dashboard = to_grafana_model(RAW)
    assert not {"__inputs", "gnetId", "hideControls", "rows", "sharedCrosshair", "style", "version"} & dashboard.keys()
    assert (dashboard["schemaVersion"], dashboard["id"], dashboard["timepicker"]) == (41, None, {})


def test_the_input_is_not_changed():
    before = copy.deepcopy(RAW)
    to_grafana_model(RAW)
    assert before == RAW


def test_a_query_is_a_range_exactly_when_it_is_not_instant():
    targets = to_grafana_model(RAW)["panels"][0]["panels"][0]["targets"]
    assert [(each["instant"], each["range"]) for each in targets] == [(True, False), (False, True)]
    assert [each.get("interval") for each in targets] == [None, "5m"]
    assert all(
        each.keys() <= {"refId", "expr", "instant", "range", "interval", "datasource", "editorMode"} for each in targets
    )


def test_a_row_keeps_its_panels_and_has_no_queries_of_its_own():
    row = to_grafana_model(RAW)["panels"][0]
    assert row.keys() == {"collapsed", "id", "panels", "title", "type"}
    assert row["panels"][0]["fieldConfig"]["overrides"] == []
    assert "maxDataPoints" not in row["panels"][0]


def test_everything_queries_the_chosen_data_source():
    dashboard = to_grafana_model(RAW)
    panel = dashboard["panels"][0]["panels"][0]
    querying = [panel, *panel["targets"], *dashboard["annotations"]["list"], *dashboard["templating"]["list"][1:]]
    assert [each["datasource"] for each in querying] == [PROMETHEUS] * len(querying)
    assert "datasource" not in dashboard["templating"]["list"][0]


def test_variables_that_offer_all_start_with_it():
    current = [each["current"] for each in to_grafana_model(RAW)["templating"]["list"]]
    assert current == [{}, {"selected": True, "text": ["All"], "value": ["$__all"]}, {}]


def test_the_text_null_and_old_keys_are_dropped_from_thresholds():
    old = {"steps": [{"color": "a", "index": 0, "value": "null", "op": "gt"}, {"color": "b", "index": 1, "value": 2.0}]}
    assert thresholds(old) == {
        "mode": "absolute",
        "steps": [{"color": "a", "value": None}, {"color": "b", "value": 2.0}],
    }


def test_a_panel_without_thresholds_has_one_neutral_step():
    assert thresholds({"steps": ""})["steps"] == thresholds({})["steps"] == [{"color": NEUTRAL, "value": None}]


def test_pruning_reaches_every_depth_and_keeps_false_and_zero():
    assert prune({"a": None, "b": [{"c": None, "d": 0}, None], "e": False}) == {"b": [{"d": 0}], "e": False}
