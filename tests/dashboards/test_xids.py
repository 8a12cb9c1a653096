"""The words of XIDs on dashboards are those of the node exporter, which dashboards do not import."""

from dashboards.xids import CRITICAL, WORDS
from exporter.node.devices.readings import xids


def test_dashboards_have_the_words_and_the_critical_codes_of_the_exporter():
    assert {int(code): words for code, words in WORDS.items()} == {
        code: words for code, words in xids.TEXTS.items() if code != xids.NO_XID
    }
    assert tuple(map(int, CRITICAL)) == xids.CRITICAL
