"""What the test renderer makes of a value, a series and a grid, as Grafana would."""

import pytest

from dashboards.style import Color, ValueState, threshold_steps, value_mappings
from tests.dashboards.renderer import colors, svg
from tests.dashboards.renderer.answers import Series, Source, TimeRange
from tests.dashboards.renderer.field import Shown, settings_of, shown
from tests.dashboards.renderer.timeseries import draw
from tests.dashboards.renderer.units import written

STATES = (ValueState(0, "none", Color.OK), ValueState(1, "", Color.WARNING))
SETTINGS = {
    "color": {"mode": "thresholds"},
    "thresholds": {"steps": [{"color": "#999999", "value": None}, *threshold_steps(STATES)[1:]]},
    "mappings": value_mappings(STATES),
    "noValue": "no data",
    "decimals": 0,
}


@pytest.mark.parametrize(
    ("value", "unit", "decimals", "text"),
    [
        (0.0214, "percentunit", 1, "2.1%"),
        (42, "none", 0, "42"),
        (0, "none", None, "0"),
        (4970, "watt", None, "4.97 kW"),
        (85e9, "bytes", None, "79.2 GiB"),
        (2400, "dtdurations", None, "40 minutes"),
        (0.0042, "s", None, "4.2 ms"),
        (7200, "s", None, "2 hours"),
        (1_000_000, "dateTimeFromNow", None, "16 minutes ago"),
        (1.98e9, "hertz", None, "1.98 GHz"),
        (3.5, "h", None, "3.5 hours"),
    ],
)
def test_a_number_is_written_with_its_unit(value, unit, decimals, text):
    assert written(value, unit, decimals, now=2000) == text


def test_a_value_has_the_word_and_the_color_of_its_state():
    assert shown(0.0, SETTINGS, 0) == Shown("none", Color.OK.value)
    assert shown(3.0, SETTINGS, 0) == Shown("3", Color.WARNING.value)
    assert shown(None, SETTINGS, 0) == Shown("no data", "#999999")


def test_an_override_changes_the_series_of_its_query_alone():
    override = {"matcher": {"id": "byFrameRefID", "options": "B"}, "properties": [{"id": "custom.x", "value": 1}]}
    panel = {"type": "stat", "fieldConfig": {"defaults": {"unit": "watt"}, "overrides": [override]}}
    assert settings_of(panel, "name", "A")["custom"] == {}
    assert settings_of(panel, "name", "B")["custom"] == {"x": 1}


def test_text_on_a_color_is_readable():
    assert (colors.on("#E69F00"), colors.on("#0072B2")) == ("#000000", "#ffffff")


def test_an_axis_has_round_values_that_cover_the_range():
    assert svg.ticks(0, 14, 4) == [0, 5, 10, 15]
    assert svg.ticks(0, 0, 3)[0] == 0


def test_variables_are_replaced_and_groups_of_label_replace_are_not():
    source = Source("", TimeRange(0, 3600, 60, 240), {"node": "a"})
    text = 'label_replace(x{node=~"$node", c=~"${cluster:regex}"}[$__rate_interval], "l", "$1", "m", "$$__all")'
    assert source.expression(text) == 'label_replace(x{node=~"a", c=~".*"}[240s], "l", "$1", "m", "$$__all")'


def test_a_line_is_not_drawn_across_a_gap():
    panel = {
        "type": "timeseries",
        "fieldConfig": {"defaults": {"custom": {"insertNulls": 180_000}}, "overrides": []},
        "options": {"legend": {"showLegend": False}},
    }
    points = tuple((at, 1.0) for at in (0.0, 60.0, 120.0, 600.0, 660.0))
    drawing = draw(panel, (Series("A", {}, "x", points),), TimeRange(0, 720, 60, 240), 400, 200)
    assert drawing.count('class="line"') == 2
