"""Tables of several queries: one row for each label set, whatever the series of the queries are called."""

import pytest

from dashboards.style import Column, table_transformations
from tests.dashboards.renderer.answers import Series
from tests.dashboards.renderer.tables import rows_of

COLUMNS = (Column("node", "Node"), Column("Value #A", "GPUs"), Column("Value #B", "Power"))


def series(ref, name, value, **labels):
    return Series(ref, {"__name__": name, **labels}, name, ((0.0, value),))


def table(transformations, *refs):
    return {"targets": [{"refId": ref} for ref in refs], "transformations": transformations, "options": {}}


def test_the_values_of_series_with_different_names_are_in_one_row():
    found = (
        series("A", "node:gpus:count", 8.0, node="a"),
        series("A", "node:gpus:count", 4.0, node="b"),
        series("B", "node:gpu_power_watts:sum", 900.0, node="b"),
        series("B", "node:gpu_power_watts:sum", 500.0, node="a"),
    )
    headings, rows = rows_of(table(table_transformations(COLUMNS), "A", "B"), found)
    assert headings == ["Node", "GPUs", "Power"]
    assert rows == [{"Node": "a", "GPUs": 8.0, "Power": 500.0}, {"Node": "b", "GPUs": 4.0, "Power": 900.0}]


def test_a_label_that_is_no_column_still_keeps_rows_apart():
    found = (
        *(series("A", "x", value, node="a", pod=pod) for pod, value in (("p", 1.0), ("q", 2.0))),
        *(series("B", "y", value, node="a", pod=pod) for pod, value in (("q", 20.0), ("p", 10.0))),
    )
    _, rows = rows_of(table(table_transformations(COLUMNS), "A", "B"), found)
    assert [(row["GPUs"], row["Power"]) for row in rows] == [(1.0, 10.0), (2.0, 20.0)]


def test_an_unknown_transformation_is_an_error():
    with pytest.raises(NotImplementedError, match="calculateField"):
        rows_of(table([{"id": "calculateField", "options": {}}], "A"), (series("A", "x", 1.0),))
