"""Clusters that another label tells apart: dashboards read that label, and are otherwise the same."""

import json
import re
from collections.abc import Iterator

import pytest

from dashboards import DASHBOARDS
from dashboards.__main__ import files, main
from promql.cluster_label import with_cluster_label
from tests.promql import grouping_labels, selectors

LABEL = "k8s_cluster"
NAMES = [name for name in files(DASHBOARDS) if name.endswith(".json")]


def texts(node: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in the JSON with the key that it belongs to, and every key of an object as one."""
    match node:
        case dict():
            for name, value in node.items():
                yield "a key", name
                yield from texts(value, name)
        case list():
            for value in node:
                yield from texts(value, key)
        case str():
            yield key, node


def queries(text: str) -> list[str]:
    """The PromQL of the panels, with values for the variables of Grafana."""
    found = [value for key, value in texts(json.loads(text)) if key == "expr"]
    values = {
        "$__range_s": "3600",
        "$__range": "1h",
        "$__rate_interval": "5m",
        "$__interval_ms": "60000",
        "$__interval": "1m",
    }
    for variable, value in values.items():
        found = [query.replace(variable, value) for query in found]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_generator_with_another_label_writes_what_the_search_makes_of_its_files(name):
    text, other = files(DASHBOARDS)[name], files(DASHBOARDS, LABEL)[name]
    assert other == with_cluster_label(text, LABEL) != text
    assert other.replace(LABEL, "cluster") == text


@pytest.mark.parametrize("name", NAMES)
def test_no_query_reads_the_label_and_the_variable_keeps_its_name(name):
    text = files(DASHBOARDS, LABEL)[name]
    for query in queries(text):
        assert "cluster" not in grouping_labels(query), query
        assert all("cluster" not in matchers for _, matchers in selectors(query)), query
        assert '"cluster"' not in query, query
    assert not re.search(r"(fields|labels)\.cluster\b", text)
    for key, value in texts(json.loads(text)):
        assert value != "cluster" or key == "name"
        assert key not in ("query", "definition") or "cluster)" not in value.replace(f"{LABEL})", "")
    assert [each["name"] for each in json.loads(text)["templating"]["list"]].count("cluster") == 1


def test_the_label_is_an_option(tmp_path):
    main(["--output", str(tmp_path), "--cluster-label", LABEL])
    name = "dashboards/gpu-fleet.json"
    assert (tmp_path / name).read_text() == files(DASHBOARDS, LABEL)[name]
