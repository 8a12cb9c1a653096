"""Convert the output of grafanalib to the dashboard model of Grafana 11 to 13 (schema version 41).

grafanalib 0.7.1 writes keys of Grafana's former Angular panels beside the current ones. Grafana ignores most of them;
because of others it treats the dashboard as an old one and migrates it. Only keys of the current model are kept.
"""

from typing import Any

Json = dict[str, Any]

SCHEMA_VERSION = 41
NEUTRAL = "#999999"
DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}

DASHBOARD_KEYS = frozenset(
    [
        "annotations",
        "description",
        "editable",
        "graphTooltip",
        "links",
        "panels",
        "refresh",
        "tags",
        "templating",
        "time",
        "timezone",
        "title",
        "uid",
    ]
)
PANEL_KEYS = frozenset(
    [
        "collapsed",
        "datasource",
        "description",
        "fieldConfig",
        "gridPos",
        "id",
        "interval",
        "links",
        "maxPerRow",
        "options",
        "panels",
        "repeat",
        "repeatDirection",
        "targets",
        "title",
        "transformations",
        "type",
    ]
)
TARGET_KEYS = frozenset(
    [
        "datasource",
        "expr",
        "format",
        "instant",
        "interval",
        "legendFormat",
        "refId",
    ]
)
VARIABLE_KEYS = frozenset(
    [
        "allValue",
        "datasource",
        "description",
        "hide",
        "includeAll",
        "label",
        "multi",
        "name",
        "query",
        "refresh",
        "regex",
        "sort",
        "type",
    ]
)
ALL: Json = {"selected": True, "text": ["All"], "value": ["$__all"]}


def to_grafana_model(raw: Json) -> Json:
    """Return the dashboard as Grafana itself would save it. `raw` is not changed."""
    dashboard = prune(keep(raw, DASHBOARD_KEYS))
    return {
        **dashboard,
        "annotations": {"list": [_annotation(each) for each in raw["annotations"]["list"]]},
        "id": None,
        "panels": [_panel(each) for each in raw["panels"]],
        "schemaVersion": SCHEMA_VERSION,
        "templating": {"list": [_variable(each) for each in raw["templating"]["list"]]},
        "timepicker": {},
    }


def keep(whole: Json, keys: frozenset[str]) -> Json:
    """Return the mapping with these keys only."""
    return {key: value for key, value in whole.items() if key in keys}


def prune(value: Any) -> Any:
    """Return the value without mapping keys and list items that are null, at any depth."""
    if isinstance(value, dict):
        return {key: prune(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [prune(inner) for inner in value if inner is not None]
    return value


def thresholds(raw: Json) -> Json:
    """Return threshold steps as the current model has them: color and value only, the first without a lower bound.

    grafanalib 0.7.1 writes the value of the first step as the text "null", and for a panel without steps the text "".
    """
    given = raw.get("steps") or [{"color": NEUTRAL}]
    first, *others = given
    steps = [{"color": first["color"], "value": None}]
    steps += [{"color": step["color"], "value": step["value"]} for step in others]
    return {"mode": raw.get("mode", "absolute"), "steps": steps}


def _panel(raw: Json) -> Json:
    panel: Json = prune(keep(raw, PANEL_KEYS))
    if raw["type"] == "row":
        return {
            **keep(panel, frozenset({"collapsed", "gridPos", "id", "title", "type"})),
            "panels": [_panel(each) for each in raw.get("panels", [])],
        }
    return {
        **panel,
        "datasource": DATASOURCE,
        "fieldConfig": _field_config(raw["fieldConfig"]),
        "targets": [_target(each) for each in raw["targets"]],
    }


def _field_config(raw: Json) -> Json:
    defaults: Json = prune(raw["defaults"])
    custom = defaults.get("custom", {})
    # `displayMode` is the display mode of tables before Grafana 9; columns set today's `cellOptions` in overrides.
    custom.pop("displayMode", None)
    if not custom.get("stacking", True):
        custom["stacking"] = {"group": "A", "mode": "none"}
    defaults["thresholds"] = thresholds(raw["defaults"].get("thresholds") or {})
    return {"defaults": defaults, "overrides": prune(raw.get("overrides") or [])}


def _target(raw: Json) -> Json:
    target: Json = prune(keep(raw, TARGET_KEYS))
    if not target.get("interval"):
        target.pop("interval", None)
    instant = bool(raw["instant"])
    return {**target, "datasource": DATASOURCE, "editorMode": "code", "instant": instant, "range": not instant}


def _variable(raw: Json) -> Json:
    variable: Json = prune(keep(raw, VARIABLE_KEYS))
    if raw["type"] == "datasource":
        variable.pop("datasource", None)
        return {**variable, "current": {}, "options": []}
    current = ALL if raw.get("includeAll") else {}
    return {**variable, "current": current, "datasource": DATASOURCE, "definition": raw["query"], "options": []}


def _annotation(raw: Json) -> Json:
    return {**prune(raw), "datasource": DATASOURCE}
