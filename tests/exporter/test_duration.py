"""Durations are read as Go's `time.ParseDuration` reads them."""

import pytest

from exporter.duration import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("1m30s", 90.0),
        ("1h", 3600.0),
        ("500ms", 0.5),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("250us", 0.00025),
        ("250µs", 0.00025),
        ("7ns", 7e-9),
        ("0", 0.0),
        ("+2s", 2.0),
        ("-2s", -2.0),
    ],
)
def test_a_duration_has_numbers_each_with_its_unit(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "30", "s", "1.5", "3 s", " 3s", "3d", "1s\n", "--1s", "1e3s", "٣s"])
def test_anything_else_is_an_error_that_quotes_the_text(text):
    with pytest.raises(ValueError, match="is not a duration such as 30s, 500ms or 1m30s") as error:
        parse_duration(text)
    assert repr(text) in str(error.value)
