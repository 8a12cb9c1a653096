"""Grafana's own types as a witness: what they do not know, Grafana would not read."""

import json

import pytest

from dashboards import DASHBOARDS
from dashboards.panels import render

pytestmark = pytest.mark.filterwarnings("ignore:Prefer using dashboardv2:DeprecationWarning")


@pytest.fixture(scope="module")
def model():
    # Only releases 0.0.x speak the current schema; those with a large epoch, which pip prefers, an older one.
    pytest.importorskip("grafana_foundation_sdk", reason="needs grafana-foundation-sdk==0.0.21")
    plugins = pytest.importorskip("grafana_foundation_sdk.cog.plugins")
    plugins.register_default_plugins()
    return pytest.importorskip("grafana_foundation_sdk.models.dashboard")


def lost(ours, theirs, path=()):
    """Paths whose value Grafana's model dropped or changed; what it adds are its defaults."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            yield from lost(value, theirs[key], (*path, key)) if key in theirs else [(*path, key)]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from lost(one, other, (*path, index))
    elif ours != theirs:
        yield path


def through(model, board):
    from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: PLC0415 - absent where the fixture skips

    return json.loads(JSONEncoder().encode(model.Dashboard.from_json(board)))


@pytest.mark.parametrize("board", DASHBOARDS, ids=lambda board: board.uid)
def test_grafanas_model_keeps_everything_but_the_empty_id(board, model):
    ours = render(board)
    assert list(lost(ours, through(model, ours))) == [("id",)]


def test_what_grafana_does_not_know_would_be_noticed(model):
    ours = render(DASHBOARDS[0])
    panel = ours["panels"][1]
    panel["span"] = 6
    panel["options"]["fieldOptions"] = {"calcs": ["mean"]}
    assert set(lost(ours, through(model, ours))) == {
        ("id",),
        ("panels", 1, "span"),
        ("panels", 1, "options", "fieldOptions"),
    }
