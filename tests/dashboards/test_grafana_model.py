"""Grafana's own types as a second check: what they drop from a dashboard, Grafana would not read."""

import json

import pytest

from dashboards import DASHBOARDS
from dashboards.panels import render

pytestmark = pytest.mark.filterwarnings("ignore:Prefer using dashboardv2:DeprecationWarning")


@pytest.fixture(scope="module")
def model():
    # Only releases 0.0.x have the current schema. Those with a large epoch, which pip prefers, have an older one.
    pytest.importorskip("grafana_foundation_sdk", reason="needs grafana-foundation-sdk==0.0.21")
    plugins = pytest.importorskip("grafana_foundation_sdk.cog.plugins")
    plugins.register_default_plugins()
    return pytest.importorskip("grafana_foundation_sdk.models.dashboard")


def lost(ours, theirs, path=()):
    """Yield the paths whose value Grafana's model dropped or changed. What it adds is ignored: defaults."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            yield from lost(value, theirs[key], (*path, key)) if key in theirs else [(*path, key)]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from lost(one, other, (*path, index))
    elif ours != theirs:
        yield path


def through(model, dashboard):
    from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: PLC0415 - absent where the fixture skips

    return json.loads(JSONEncoder().encode(model.Dashboard.from_json(dashboard)))


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_the_model_of_grafana_keeps_everything_but_the_empty_id(dashboard, model):
    ours = render(dashboard)
    assert list(lost(ours, through(model, ours))) == [("id",)]


def test_keys_that_grafana_does_not_read_are_found(model):
    ours = render(DASHBOARDS[0])
    panel = ours["panels"][1]
    panel["span"] = 6
    panel["options"]["fieldOptions"] = {"calcs": ["mean"]}
    assert set(lost(ours, through(model, ours))) == {
        ("id",),
        ("panels", 1, "span"),
        ("panels", 1, "options", "fieldOptions"),
    }
