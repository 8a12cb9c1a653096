"""The analysis of PromQL expressions for other tests."""

import pytest

from tests.promql import Matcher, grouping_labels, selectors

EXPRESSION = """
max by (node, UUID) (label_replace({__name__=~"a|b", x=""}, "p", "$1", "q", "(.+)"))
* on (node) group_left (model) (rate(c_total{job="j"}[5m]) or avg_over_time((d - 1)[1h:1m] offset 5m))
unless topk by (cluster) (1, -e{z!~"k"})
"""


def test_every_selected_name_is_found_with_its_matchers():
    assert selectors(EXPRESSION) == [
        ("a", {"x": Matcher("=", "")}),
        ("b", {"x": Matcher("=", "")}),
        ("c_total", {"job": Matcher("=", "j")}),
        ("d", {}),
        ("e", {"z": Matcher("!~", "k")}),
    ]


def test_every_label_of_a_grouping_or_join_is_found():
    assert grouping_labels(EXPRESSION) == {"node", "UUID", "model", "cluster"}


def test_a_selector_without_a_literal_name_is_an_error():
    with pytest.raises(ValueError, match="a selector without a metric name"):
        selectors('{__name__=~"a.*"}')
