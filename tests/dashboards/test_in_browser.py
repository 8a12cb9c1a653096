"""Each dashboard in headless Chromium with real query results: no query fails, no panel is empty, no text is cut."""

import html
import json
import re
import time
from pathlib import Path

import pytest

from dashboards import DASHBOARDS
from dashboards.panels import render
from tests.dashboards import datasets
from tests.dashboards.prometheus import eventually, running
from tests.dashboards.renderer.answers import Source, TimeRange
from tests.dashboards.renderer.page import CAPTION, draw
from tests.dashboards.test_queries import expected_numbers

pytestmark = [pytest.mark.browser, pytest.mark.prometheus]

WIDTH = 1440
MEASURE = Path(__file__).with_name("renderer") / "measure.js"


def source(address):
    now = time.time()
    return Source(address, TimeRange(start=now - 2000, end=now, step=1, rate=15))


def measured(browser, tmp_path, dashboard, address):
    """The report of each panel, by title, with the panels of collapsed rows."""
    page = draw(render(dashboard), source(address), WIDTH, opened=True)
    file = tmp_path / "page.html"
    file.write_text(f"{page.html}<script>{MEASURE.read_text()}</script>", encoding="utf-8")
    dom = browser.dom(f"file://{file}")
    assert CAPTION in dom
    report = json.loads(html.unescape(re.search(r'<pre id="result">(.*?)</pre>', dom, re.DOTALL)[1]))
    return {each["title"]: each for each in report}


def may_be_empty(uid):
    """The titles of panels of which no query has a result in this data set."""
    found = {}
    for query, numbers in expected_numbers(uid).items():
        title, _, _ = query.rpartition(" ")
        found[title] = found.get(title, 0) + numbers[list(datasets.DATA_SETS).index("MIG")]
    return {title for title, number in found.items() if not number}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A Prometheus with MIG devices, shared and idle GPUs, pending workloads and a firing alert."""
    with datasets.running(tmp_path_factory.mktemp("data"), "MIG") as address:
        yield address


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda each: each.uid)
def test_every_panel_has_data_and_its_texts_fit(browser, tmp_path, base, dashboard):
    """Drawn again while panels are empty: a scrape that takes longer than its interval ends series for that long."""
    report = {}

    def empty():
        report.update(measured(browser, tmp_path, dashboard, base))
        return {title for title, each in report.items() if each["state"] == "empty"} - may_be_empty(dashboard.uid)

    eventually(lambda: not empty(), lambda: f"empty: {empty()}")
    assert {title: each["error"] for title, each in report.items() if each["error"]} == {}
    assert {title: each["overflow"] for title, each in report.items() if each["overflow"]} == {}


@pytest.fixture(scope="module")
def empty_base(tmp_path_factory):
    """A Prometheus without any series."""
    with running(tmp_path_factory.mktemp("empty"), "{}") as address:
        yield address


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda each: each.uid)
def test_without_any_series_every_panel_says_that_there_is_no_data(browser, tmp_path, empty_base, dashboard):
    report = measured(browser, tmp_path, dashboard, empty_base)
    assert {title: each["state"] for title, each in report.items() if each["state"] != "empty"} == {}


def test_a_query_that_fails_and_a_text_that_is_too_long_are_found(browser, tmp_path, empty_base):
    dashboard = render(DASHBOARDS[0])
    panel = next(each for each in dashboard["panels"] if each["type"] == "stat")
    panel["targets"][0]["expr"] = "sum("
    panel["title"] = "x" * 200
    page = draw(dashboard, source(empty_base), WIDTH)
    file = tmp_path / "page.html"
    file.write_text(f"{page.html}<script>{MEASURE.read_text()}</script>", encoding="utf-8")
    dom = html.unescape(browser.dom(f"file://{file}"))
    (found,) = [each for each in json.loads(re.search(r'"result">(.*?)</pre>', dom, re.DOTALL)[1]) if each["error"]]
    assert "parse error" in found["error"]
    assert found["overflow"] == ["x" * 200 + "i"]
