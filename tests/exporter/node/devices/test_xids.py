"""The table of XIDs: texts and critical codes."""

import pytest

from exporter.node.devices.readings import xids


@pytest.mark.parametrize(
    ("code", "words"), [(0, "No Error"), (999, "Unknown Error"), (float("nan"), "Unknown Error"), (79, xids.TEXTS[79])]
)
def test_every_code_has_words_also_none_and_an_unknown_one(code, words):
    assert xids.text(code) == words


def test_critical_codes_are_known_and_few_because_each_is_a_series_on_every_gpu():
    assert set(xids.CRITICAL) < xids.TEXTS.keys() - {xids.NO_XID}
    assert len(xids.CRITICAL) <= 10
