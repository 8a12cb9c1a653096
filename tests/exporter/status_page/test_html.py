"""A status page is plain HTML in which every text is only a text, readable in either color scheme."""

import base64
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.reason import find_reason
from exporter.snapshot import Snapshot, SourceHealth, SourceProblem
from exporter.status_page.content import MAX_ROWS, Cell, Mark, StatusPage, absent, table, text
from exporter.status_page.html import DARK, LIGHT, POLICY, page_html
from exporter.status_page.sources import in_order_of_need, sources_table
from exporter.time_text import age
from tests.exporter.status_page.pages import HOSTILE, ReadPage, check_harmless, rows_of, written


def page_of(*rows, name="Name"):
    return StatusPage((("Fact", text("value")),), (table("Title", (name,), rows, "None."),))


def everywhere(words):
    cell = Cell((words, words), words, ratio=0.5, mark=Mark.BAD)
    return StatusPage(((words, cell),), (table(words, (words,), [(cell,)], words, words), table("", (), [], words)))


def test_a_hostile_text_is_a_text_wherever_it_stands():
    check_harmless(page_html(HOSTILE, everywhere(HOSTILE), ["/metrics"], HOSTILE))


@given(st.text(alphabet=st.characters(), max_size=80))
def test_no_text_becomes_an_element_or_an_attribute(words):
    check_harmless(page_html(words, everywhere(words), ["/metrics"], words))


def test_half_a_character_pair_and_a_long_text_do_no_harm():
    (row,) = rows_of(page_of((text("a\ud800b"),)))
    assert row == {"Name": "a\N{REPLACEMENT CHARACTER}b"}
    (row,) = rows_of(page_of((text("x" * 10_000),)))
    assert len(row["Name"]) < 400


def test_the_policy_allows_the_style_sheet_of_the_page_and_nothing_else():
    body = written(page_of()).decode()
    style = re.search(r"<style>(.*?)</style>", body, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in POLICY
    assert POLICY.startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in POLICY
    assert "url(" not in style
    assert "@import" not in style
    assert "://" not in body


def luminance(color):
    parts = (int(color[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_every_color_of_text_can_be_read(colors):
    """WCAG 2.1 asks for a contrast of 4.5."""
    back = luminance(colors["back"])
    for name in ("text", "soft", "good", "bad"):
        high, low = sorted((luminance(colors[name]), back), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, name


def test_a_long_table_is_cut_and_says_so():
    body = written(page_of(*[(text(str(number)),) for number in range(MAX_ROWS + 7)]))
    assert len([row for row in ReadPage(body).rows if row]) == MAX_ROWS
    assert "and 7 more, which are in /metrics" in body.decode()


def test_a_table_without_rows_and_a_missing_value_say_so():
    assert "None." in written(page_of()).decode()
    assert rows_of(page_of((absent("not read"),))) == [{"Name": "\N{EN DASH}\nnot read"}]


def test_a_bar_stays_within_its_bounds():
    bars = re.findall(
        r'<meter value="([\d.]+)">', written(page_of((Cell(("a",), ratio=1.7),), (Cell(("b",), ratio=-1),))).decode()
    )
    assert bars == ["1.000", "0.000"]


def test_problems_come_with_meaning_and_remedy_and_without_the_message():
    health = (SourceHealth("a", False, 0.1, "quota", "/secret/path"), SourceHealth("b", True, 0.1))
    snapshot = Snapshot(0.0, (), health, (SourceProblem("b", "new", "/secret/path"),))
    page = StatusPage((), (sources_table(snapshot, lambda _, value: find_reason(value, PendingReason)),))
    down, up, problem = rows_of(page)
    assert (down["State"], down["Meaning"], down["Remedy"]) == (
        "down",
        PendingReason.QUOTA.meaning,
        PendingReason.QUOTA.remedy,
    )
    assert (up["State"], up["Reason"]) == ("up", "\N{EN DASH}")
    assert (problem["State"], problem["Reason"]) == ("problem", "new")
    assert "see the log" in problem["Meaning"]
    assert b"secret" not in written(page)


@pytest.mark.parametrize(
    ("up", "problems", "order"),
    [
        (True, (), ["a", "b", "s"]),
        (False, (), ["s", "a", "b"]),
        (True, (SourceProblem("x", "quota", "m"),), ["s", "a", "b"]),
    ],
)
def test_sources_come_first_while_one_has_a_problem(up, problems, order):
    snapshot = Snapshot(0.0, (), (SourceHealth("x", up, 0.0),), problems)
    found = in_order_of_need(snapshot, *(table(title, (), [], "") for title in ("s", "a", "b")))
    assert [each.title for each in found] == order


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "0 min"),
        (59, "0 min"),
        (3599, "59 min"),
        (3600, "1 h 0 min"),
        (172_799, "47 h 59 min"),
        (172_800, "2 days"),
    ],
)
def test_ages_are_given_to_the_minute_and_later_to_the_day(seconds, expected):
    assert age(seconds) == expected
