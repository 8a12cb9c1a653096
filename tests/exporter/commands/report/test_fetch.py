"""Queries by parts of the time: again after a passing error, and on from where a run ended."""

import json

import pytest

from exporter.commands.prometheus.client import PrometheusError
from exporter.commands.report.fetch import AnswerFile, Fetch
from exporter.commands.report.period import DAY, Part, parts
from exporter.config import ConfigError
from tests.exporter.commands.prometheus.fake import asking, vector

ASKED = {"ONE": 'one{cluster=~"$cluster"}[$steps]', "TWO": "two[$range]"}
TIME = [Part(0, DAY), Part(DAY, 2 * DAY)]


def fetched(client, kept=None, **more):
    fetch = Fetch(client, "west", kept or AnswerFile(None, "x"), sleep=lambda _: None, **more)
    return list(fetch.all(TIME, ASKED))


def test_each_part_is_asked_at_its_end_with_its_length():
    done = []
    with asking(lambda _: (200, vector(({"a": "b"}, 1)))) as (client, requests):
        found = fetched(client, advance=lambda: done.append(1))
    asked = [(each["fields"]["query"], each["fields"]["time"]) for each in requests]
    one, two = 'one{cluster=~"west"}[86399s:300s]', "two[86400s]"
    assert asked == [(query, f"{end * DAY}.000") for end in (1, 2) for query in (one, two)]
    assert [list(each.answers) for each in found] == [["ONE", "TWO"]] * 2
    assert len(done) == 4


def test_a_passing_error_is_followed_by_another_attempt():
    failing = [503, 504]
    with asking(lambda _: (failing.pop(), b"") if failing else (200, vector())) as (client, requests):
        assert len(fetched(client)) == 2
    assert len(requests) == 6


def test_an_error_that_stays_ends_the_run():
    with asking(lambda _: (503, b"")) as (client, requests):
        with pytest.raises(PrometheusError, match="answered 503"):
            fetched(client)
        assert len(requests) == 3
    with asking(lambda _: (422, b"")) as (client, requests):
        with pytest.raises(PrometheusError, match="answered 422"):
            fetched(client)
        assert len(requests) == 1


def test_a_run_goes_on_where_the_one_before_ended(tmp_path):
    file = tmp_path / "answers"
    with (
        asking(lambda each: (422, b"") if each["fields"]["time"][0] == "1" else (200, vector(({}, 5)))) as (client, _),
        pytest.raises(PrometheusError),
    ):
        fetched(client, AnswerFile(file, "x"))
    file.write_text(file.read_text() + '{"key": "cut o')
    with asking(lambda _: (200, vector(({}, 7)))) as (client, requests):
        found = fetched(client, AnswerFile(file, "x"))
        assert [each["fields"]["time"] for each in requests] == ["172800.000"] * 2
        assert [each.answers["ONE"][0].value for each in found] == [5, 7]
        fetched(client, AnswerFile(file, "another server"))
        assert len(requests) == 6


def test_warnings_of_the_server_are_kept_with_the_answers(tmp_path):
    body = json.loads(vector())
    text = json.dumps({**body, "warnings": ["a store is away"]}).encode()
    with asking(lambda _: (200, text)) as (client, _):
        for _ in range(2):
            found = fetched(client, AnswerFile(tmp_path / "answers", "x"))
            assert [each.warnings for each in found] == [("a store is away",)] * 2


def test_a_file_that_cannot_be_used_is_one_message(tmp_path):
    with pytest.raises(ConfigError, match=r"--resume: .* cannot be read"):
        AnswerFile(tmp_path, "x")
    with pytest.raises(ConfigError, match=r"--resume: .* cannot be written"):
        AnswerFile(tmp_path / "no" / "file", "x").add("k", [], [])


def test_time_is_split_at_midnights():
    found = parts(None, None, 10 * DAY + 7300, 2)
    assert [(each.start, each.end) for each in found] == [
        (8 * DAY + 7200, 9 * DAY), (9 * DAY, 10 * DAY), (10 * DAY, 10 * DAY + 7200),
    ]  # fmt: skip
    assert [each.steps for each in found] == [264, 288, 24]
    assert parts(DAY, 3 * DAY, 9 * DAY, 7) == [Part(DAY, 2 * DAY), Part(2 * DAY, 3 * DAY)]


@pytest.mark.parametrize(("start", "end"), [(5 * DAY, 4 * DAY), (20 * DAY, None), (4 * DAY, 4 * DAY + 60)])
def test_an_empty_time_is_one_message(start, end):
    with pytest.raises(ConfigError, match="--from is not before --to, or is yet to come"):
        parts(start, end, 9 * DAY, 7)


def test_a_time_that_is_too_long_is_one_message():
    with pytest.raises(ConfigError, match="more than 400 days apart"):
        parts(0, None, 500 * DAY, 7)
