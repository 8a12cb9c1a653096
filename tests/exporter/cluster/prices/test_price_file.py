"""The price file: its rows, which of them are valid, and what a mistake costs."""

import re
from datetime import date
from pathlib import Path

import pytest

from exporter.cluster.prices.price import Price, valid_on
from exporter.cluster.prices.price_file import price_list
from exporter.config import ConfigFileError

DOCUMENT = Path(__file__).parents[4] / "docs/prices.md"
H100 = "NVIDIA-H100-80GB-HBM3"
ROW = f"- {{model: {H100}, currency: EUR, per_hour: 2.35, valid_from: 2027-01-01}}\n"


def read(text):
    return price_list(text.encode() if isinstance(text, str) else text, Path("prices.yaml"))


def price(day, per_hour=2.35, model=H100, pool="", capacity_type="", currency="EUR"):
    return Price(model, pool, capacity_type, currency, per_hour, date.fromisoformat(day))


def test_a_row_has_a_price_and_may_name_a_pool_and_how_it_is_bought():
    text = f"""
- model: NVIDIA H100 80GB HBM3
  currency: EUR
  per_hour: 2.35
  valid_from: 2027-01-01
- {{model: {H100}, pool: training, capacity_type: spot, currency: USD, per_hour: "1", valid_from: "2026-12-31"}}
"""
    found = read(text)
    assert found.prices == (price("2027-01-01"), price("2026-12-31", 1.0, H100, "training", "spot", "USD"))
    assert found.problems == ()
    assert read("prices:" + text.replace("\n", "\n  ")) == found


def test_the_example_of_the_documents_can_be_used():
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = read(example)
    assert found.problems == ()
    amounts = {day: [each.per_hour for each in valid_on(date(day, 6, 1), found.prices)] for day in (2025, 2026, 2027)}
    assert amounts == {2025: [], 2026: [2.35, 0.98], 2027: [2.1, 0.98]}


@pytest.mark.parametrize("text", ["", "[]", "prices:", "prices: []", "\ufeff[]"])
def test_a_file_without_rows_has_no_prices(text):
    assert read(text).prices == read(text).problems == ()


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("{model: X, currency: EUR, per_hour: 2}", "prices.yaml:1: prices: valid_from missing of 'X'"),
        ("{}", "prices.yaml:1: prices: model and currency and per_hour and valid_from missing"),
        ("X", "prices.yaml:1: prices: must have keys and values"),
        ("{modle: X}", "prices.yaml:1: modle: unknown key; known: model, pool, capacity_type, currency, per_hour, "),
        ("{model: [X], currency: EUR, per_hour: 2, valid_from: 2027-01-01}", "prices.yaml:1: model: must be a text"),
        ("{model: X, currency: eur, per_hour: 2, valid_from: 2027-01-01}", "currency: 'eur' is not three capital "),
        ("{model: X, currency: EUR, per_hour: -2, valid_from: 2027-01-01}", "per_hour: '-2' is not an amount such as"),
        ("{model: X, currency: EUR, per_hour: .inf, valid_from: 2027-01-01}", "per_hour: '.inf' is not an amount"),
        ("{model: X, currency: EUR, per_hour: 1e9, valid_from: 2027-01-01}", "per_hour: '1e9' is not an amount"),
        ("{model: X, currency: EUR, per_hour: 2, valid_from: 2027-02-30}", "valid_from: '2027-02-30' is not a day"),
        ("{model: X, currency: EUR, per_hour: 2, valid_from: soon}", "valid_from: 'soon' is not a day"),
        ('{model: "a\\nb", currency: EUR, per_hour: 2, valid_from: 2027-01-01}', "model: 'a\\nb' is no text of up to"),
        (f"{{model: {'x' * 200}, currency: EUR, per_hour: 2, valid_from: 2027-01-01}}", f"model: '{'x' * 80}…' is no"),
    ],
)
def test_a_bad_row_costs_itself_and_is_named_with_file_line_and_value(row, problem):
    found = read(f"prices:\n- {row}\n{ROW}".replace("prices:\n", "prices: \n", 1))
    (only,) = found.problems
    assert problem.replace("prices.yaml:1", "prices.yaml:2") in only
    assert found.prices == (price("2027-01-01"),)


def test_of_two_prices_for_the_same_from_the_same_day_the_first_counts_also_in_another_currency():
    found = read(ROW + ROW.replace("2.35", "3").replace("EUR", "USD"))
    assert found.prices == (price("2027-01-01"),)
    assert found.problems == (f"prices.yaml:2: file: '{H100} 2027-01-01' has a price in line 1 already",)


@pytest.mark.parametrize("text", ["a: 1", "a text", "- {", b"\xff", "x" * 5 + ": [" * 5000])
def test_what_is_no_list_of_rows_is_one_message(text):
    with pytest.raises(ConfigFileError, match=r"prices\.yaml"):
        read(text)


def test_the_row_that_is_valid_today_counts():
    prices = [price("2027-02-01", 3.0), price("2026-06-01", 1.0), price("2027-01-01", 2.0), price("2028-01-01", 9.0)]
    amounts = {
        day: [each.per_hour for each in valid_on(date.fromisoformat(day), prices)]
        for day in ("2026-05-31", "2026-06-01", "2027-01-31", "2027-02-01", "2027-12-31")
    }
    assert amounts == {
        "2026-05-31": [],
        "2026-06-01": [1.0],
        "2027-01-31": [2.0],
        "2027-02-01": [3.0],
        "2027-12-31": [3.0],
    }


def test_a_later_row_in_another_currency_replaces_the_earlier_one():
    prices = [price("2026-01-01"), price("2027-01-01", 2.0, currency="USD"), price("2026-01-01", 1.0, pool="spot")]
    found = valid_on(date(2027, 1, 1), prices)
    assert [(each.pool, each.currency, each.per_hour) for each in found] == [("", "USD", 2.0), ("spot", "EUR", 1.0)]
