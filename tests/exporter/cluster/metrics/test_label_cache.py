"""Label sets kept from pass to pass."""

from exporter.cluster.metrics.label_cache import LabelMemory

ONE, OTHER = (("a", "1"),), (("a", "2"),)


def test_labels_asked_for_in_every_pass_are_made_once():
    label = LabelMemory()
    first = label(ONE)
    label.next_pass()
    assert label((("a", "1"),)) is first
    label.next_pass()
    assert label(ONE) is first


def test_what_a_whole_pass_did_not_ask_for_is_forgotten():
    label = LabelMemory()
    first = label(ONE)
    label.next_pass()
    label(OTHER)
    label.next_pass()
    assert label(ONE) is not first
    assert label(ONE).pairs == ONE
