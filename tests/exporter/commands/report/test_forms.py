"""The forms of a report, of answers that a real Prometheus gave: text, screen, CSV, FOCUS, HTML, receipt."""

import csv
import html
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from exporter.commands.prometheus.answer import PrometheusSample
from exporter.commands.report.data import as_csv, as_focus
from exporter.commands.report.page import as_html
from exporter.commands.report.prices import of_samples
from exporter.commands.report.receipt import receipt, receipt_head, receipt_table
from exporter.commands.report.report import GpuReport
from exporter.commands.report.screen import draw, progress
from exporter.commands.report.sections import head, notes, tables
from exporter.commands.report.text import as_text
from tests.exporter.commands.report.recorded import parts, recorded_report

GOLDEN = Path(__file__).parents[3] / "golden" / "report"
HOSTILE = '=<script>alert("x")</script>\x1b[31m'


@pytest.fixture(scope="module")
def found():
    return recorded_report()[0]


@pytest.fixture(scope="module")
def hostile():
    """The same fleet with a workload and a warning that mean harm."""
    report = GpuReport()
    for each in parts():
        answers = dict(each.answers)
        answers["WORKLOADS"] = [
            PrometheusSample({**sample.labels, "workload": HOSTILE}, 1) for sample in answers["WORKLOADS"]
        ]
        changed = replace(each, answers=answers, warnings=(HOSTILE,))
        report.add(changed, lambda _, given: of_samples(given["PRICES"]))
    return report


def page(report):
    return as_html(report, head(report), tables(report, "workload", 20), notes(report))


def test_the_text_is_as_recorded(found, golden):
    golden(as_text(head(found), tables(found, "workload", 20), notes(found)), GOLDEN / "report.txt")


def test_the_receipt_is_as_recorded(golden):
    report, facts = recorded_report()
    made = receipt(report, facts, "vision", "train")
    golden(as_text(receipt_head(made), [receipt_table(made)], []), GOLDEN / "receipt.txt")


def test_tables_have_no_more_rows_than_asked_for_and_say_so(found):
    text = as_text([], tables(found, "workload", 1), [])
    assert "vision     train" in text
    assert "and 4 more" in text
    assert "nb-1" not in text


def test_an_empty_report_says_so():
    report = GpuReport()
    report.parts.append(next(parts()).part)
    text = as_text(head(report), tables(report, "workload", 20), notes(report))
    for each in ("No GPU was there in this time.", "No pod had a GPU.", "No energy is known."):
        assert each in text
    assert "<svg" not in page(report)


def test_several_currencies_are_not_added_up(found):
    report = GpuReport()
    for number, each in enumerate(parts()):
        answers = dict(each.answers)
        answers["PRICES"] = [
            PrometheusSample({**sample.labels, "currency": "USD" if number else "EUR"}, sample.value)
            for sample in answers["PRICES"]
        ]
        report.add(replace(each, answers=answers), lambda _, given: of_samples(given["PRICES"]))
    text = as_text([], tables(report, "workload", 20), notes(report))
    assert "Prices are in EUR, USD, so that no costs are added up." in text
    assert "cost EUR" not in text
    assert next(csv.DictReader(io.StringIO(as_csv(report, "workload"))))["cost"] == ""


def test_days_of_which_the_store_knows_nothing_are_named():
    report = GpuReport()
    for number, each in enumerate(parts()):
        answers = each.answers if number else dict.fromkeys(each.answers, ())
        report.add(replace(each, answers=answers), lambda _, given: of_samples(given["PRICES"]))
    assert any(
        each.startswith("No GPU was seen in 24 h between 2027-01-11T00:00:00Z and 2027-01-12T00:00:00Z: ")
        for each in notes(report)
    )


def test_partial_data_is_said(hostile):
    assert any(each.startswith("Partial data: =<script>") for each in notes(hostile))


def test_the_screen_fits_its_width(found):
    output = io.StringIO()
    draw(head(found), tables(found, "workload", 20), notes(found), output, width=150)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", output.getvalue()).splitlines()
    assert max(map(len, lines)) <= 150
    assert any(line.startswith("-        vision     train") for line in lines)


def test_a_terminal_does_not_act_on_names(hostile):
    output = io.StringIO()
    draw(head(hostile), tables(hostile, "workload", 20), notes(hostile), output, width=200)
    assert "\x1b[31m" not in output.getvalue()
    assert "\x1b" not in as_text([], tables(hostile, "workload", 20), notes(hostile))


def test_progress_counts_queries():
    errors = io.StringIO()
    with progress(3, errors) as advance:
        for _ in range(3):
            advance()
    assert "3/3" in errors.getvalue()


def test_spreadsheets_get_no_formulas(hostile):
    rows = list(csv.DictReader(io.StringIO(as_csv(hostile, "workload"))))
    assert all(each["workload"].startswith("'=") for each in rows)


def test_focus_has_its_columns_and_tags(found):
    first = next(csv.DictReader(io.StringIO(as_focus(found))))
    assert first["BillingCurrency"] == "EUR"
    assert first["ChargeCategory"] == "Usage"
    assert (first["ChargePeriodStart"], first["ChargePeriodEnd"]) == ("2027-01-11T00:00:00Z", "2027-01-15T00:00:00Z")
    assert json.loads(first["Tags"])["workload_type"] == "job"


def test_the_page_is_one_file_without_scripts(found, hostile):
    text = page(found)
    assert not re.search(r"<(script|link|img|iframe)|https?://|url\(", text)
    assert text.count("<svg") == 2
    assert "<script>" not in page(hostile)
    assert html.escape("=<script>") in page(hostile)


MEASURE = """<!DOCTYPE html><p id="result"></p><iframe width="{width}" height="900" srcdoc="{page}"></iframe><script>
const frame = document.querySelector("iframe");
frame.onload = () => {{
  const found = frame.contentDocument;
  const rects = [...found.querySelectorAll("rect")].map(each => each.getBoundingClientRect().width);
  document.querySelector("#result").textContent = JSON.stringify({{
    visible: found.documentElement.clientWidth, needed: found.documentElement.scrollWidth, bars: rects.length,
    widest: Math.max(...rects), tables: found.querySelectorAll("tbody").length,
  }});
}};
</script>"""


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_the_screen_of_a_browser(browser, tmp_path, found, width):
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(MEASURE.format(width=width, page=html.escape(page(found))), encoding="utf-8")
    result = re.search(r'<p id="result">(.*?)</p>', browser.dom(f"file://{wrapper}"))
    measured = json.loads(html.unescape(result[1]))
    assert measured["needed"] <= measured["visible"]
    assert measured["tables"] == 7
    assert measured["bars"] > 20
    assert measured["widest"] > 100


@pytest.mark.browser
def test_a_browser_finds_nothing_in_the_page_that_its_policy_forbids(browser, tmp_path, hostile):
    file = tmp_path / "report.html"
    file.write_text(page(hostile), encoding="utf-8")
    assert "Content Security Policy" not in browser.messages(f"file://{file}")
    file.write_text(page(hostile).replace("<h1>", "<script>1</script><h1>"), encoding="utf-8")
    assert "Content Security Policy" in browser.messages(f"file://{file}")
