"""Labels that are kept from one collection to the next."""

import pytest

from exporter.cluster.label_cache import LabelCache
from exporter.metric import Kind, LabelError, metric

ONE = metric("one", Kind.GAUGE, "Help.", "a", "b")
OTHER = metric("other", Kind.GAUGE, "Help.", "a", "b")


def test_labels_that_every_collection_uses_are_made_once():
    cache = LabelCache()
    first, _ = cache.sample(ONE, 0, a="1", b="2")
    again, _ = cache.sample(ONE, 0, a="1", b="2")
    assert again is first
    for number in range(3):
        cache.end_collection()
        labels, value = cache.sample(ONE, number, a="1", b="2")
        assert labels is first
        assert value == number


def test_labels_that_a_whole_collection_did_not_use_are_forgotten():
    cache = LabelCache()
    first, _ = cache.sample(ONE, 1, a="1", b="2")
    cache.end_collection()
    cache.sample(ONE, 1, a="2", b="2")
    cache.end_collection()
    labels, _ = cache.sample(ONE, 1, a="1", b="2")
    assert labels is not first
    assert labels == first


def test_a_sample_is_what_the_metric_itself_makes():
    assert LabelCache().sample(ONE, 3, a="1", b="2") == ONE.sample(3, a="1", b="2")
    with pytest.raises(LabelError):
        LabelCache().sample(ONE, 3, a="1")


def test_equal_labels_of_two_metrics_are_made_for_each():
    cache = LabelCache()
    one, _ = cache.sample(ONE, 1, a="1", b="2")
    other, _ = cache.sample(OTHER, 1, a="1", b="2")
    assert one.schema is ONE.schema
    assert other.schema is OTHER.schema
