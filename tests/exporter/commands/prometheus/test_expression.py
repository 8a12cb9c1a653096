"""Values in PromQL: whatever a text has, it stays one text."""

import promql_parser
import pytest

from exporter.commands.explain.past import queries
from exporter.commands.prometheus.expression import cluster_pattern, exactly, filled


@pytest.mark.parametrize("text", ["p", 'a"b', "a\\b", "a\nb", 'x"} or vector(1) #', "$pod"])
def test_a_value_cannot_leave_its_place(text):
    expression = promql_parser.parse(filled('up{pod="$pod"}', pod=text))
    assert [matcher.value for matcher in expression.matchers.matchers] == [text]


def test_a_pattern_matches_the_texts_alone():
    assert exactly("a.b", "c+") == r"a\.b|c\+"
    assert (cluster_pattern(""), cluster_pattern("a|b")) == (".*", r"a\|b")


def test_a_place_without_a_value_is_a_defect():
    with pytest.raises(KeyError):
        filled('up{pod="$pod"}')


VALUES = dict.fromkeys(("cluster", "namespace", "pod", "uuids", "resource", "size"), "x") | {"quantile": "0.5"}


@pytest.mark.parametrize("name", [name for name in vars(queries) if name.isupper()])
def test_every_query_about_pods_is_promql(name):
    promql_parser.parse(filled(getattr(queries, name), **VALUES))
