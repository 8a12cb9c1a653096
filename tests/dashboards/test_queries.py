"""Every query of every panel, annotation and variable returns the expected number of series, in three data sets.

The expected numbers are golden files, one per dashboard: `pytest --update-golden` writes them anew, and a new dashboard
needs nothing else. Review them as you review code: a panel that shows something when nothing is known lies.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from dashboards import DASHBOARDS
from tests.dashboards.datasets import DATA_SETS, GOLDEN, running
from tests.dashboards.prometheus import eventually, query
from tests.dashboards.rendered import RENDERED, filled, panels, variable_sources

FOLDER = GOLDEN / "dashboards"
SECONDS_PER_QUERY = 10.0
"""What takes longer on these few series is wrong, however busy the machine is."""
WINDOW = "15s"
"""For `$__range` and `$__rate_interval`: a few scrapes."""
SETTLED_SECONDS = 30.0
"""For so long the numbers must not change before they are written as expected ones."""

WITHOUT_RESULT = {
    "Allocated and busy GPUs, compared with last week C": "nothing was recorded a week ago",
    "Allocated and busy GPUs, compared with last week D": "nothing was recorded a week ago",
    "Allocated, busy and a week ago C": "nothing was recorded a week ago",
    "Allocated, busy and a week ago D": "nothing was recorded a week ago",
    "Allocated and busy, and a week before C": "nothing was recorded a week ago",
    "Allocated and busy, and a week before D": "nothing was recorded a week ago",
    "Busy, week before A": "nothing was recorded a week ago",
}
"""Queries that return nothing in any data set, and why."""


def queries(dashboard: dict) -> Iterator[tuple[str, str, bool]]:
    """Title and name, expression, and whether it is an instant query, of every query of a dashboard."""
    for panel in panels(dashboard):
        for target in panel["targets"]:
            yield f"{panel['title']} {target['refId']}", filled(target["expr"], WINDOW, "1s"), target["instant"]
    for annotation in dashboard["annotations"]["list"]:
        yield f"annotation {annotation['name']}", filled(annotation["expr"]), False
    for name, series, label in variable_sources(dashboard):
        yield f"variable {name}", f"group by ({label}) ({filled(series)})", True


def number_of_series(base: str, expression: str, *, instant: bool) -> int:
    began = time.monotonic()
    if instant:
        found = query(base, "query", query=expression)
    else:
        now = time.time()
        found = query(base, "query_range", query=expression, start=str(now - 2), end=str(now), step="1")
    assert time.monotonic() - began < SECONDS_PER_QUERY, expression
    return len(found)


def numbers(bases: dict[str, str], dashboard: dict) -> str:
    """The table of the numbers of series, as it is in the golden file."""
    lines = ["  ".join(bases)]
    for title, expression, instant in queries(dashboard):
        found = [number_of_series(base, expression, instant=instant) for base in bases.values()]
        lines.append("".join(f"{number:>5}" for number in found) + f"  {title}")
    return "\n".join(lines) + "\n"


def settled(bases: dict[str, str], dashboard: dict) -> str:
    """The numbers once they no longer change, also where windows reach back to before the last rules had run."""
    found, since = numbers(bases, dashboard), time.monotonic()
    while time.monotonic() - since < SETTLED_SECONDS:
        now = numbers(bases, dashboard)
        if now != found:
            found, since = now, time.monotonic()
    return found


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """The address of a Prometheus for each data set."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(running(tmp_path_factory.mktemp("data"), name)) for name in DATA_SETS}


@pytest.mark.prometheus
@pytest.mark.parametrize("uid", RENDERED)
def test_every_query_returns_the_expected_number_of_series(bases, uid, request):
    file = FOLDER / f"{uid}.txt"
    if request.config.getoption("--update-golden"):
        FOLDER.mkdir(exist_ok=True)
        file.write_text(settled(bases, RENDERED[uid]))
    assert file.exists(), f"{file.name} is missing: run pytest --update-golden and look at what it writes"
    expected = file.read_text()
    eventually(
        lambda: numbers(bases, RENDERED[uid]) == expected,
        lambda: f"{uid}:\n" + difference(expected, numbers(bases, RENDERED[uid])),
    )


def difference(expected: str, found: str) -> str:
    pairs = zip(expected.splitlines(), found.splitlines(), strict=False)
    return "\n".join(f"{one}\n{other} (found)" for one, other in pairs if one != other)


def expected_numbers(uid: str) -> dict[str, list[int]]:
    lines = (FOLDER / f"{uid}.txt").read_text().splitlines()[1:]
    return {
        line[5 * len(DATA_SETS) + 2 :]: [int(each) for each in line[: 5 * len(DATA_SETS)].split()] for line in lines
    }


def test_every_dashboard_has_its_expected_numbers():
    assert {path.stem for path in FOLDER.iterdir()} == {dashboard.uid for dashboard in DASHBOARDS}


@pytest.mark.parametrize("uid", RENDERED)
def test_every_query_has_a_result_in_a_data_set(uid):
    assert [title for title, found in expected_numbers(uid).items() if not any(found)] == [
        title for title in expected_numbers(uid) if title in WITHOUT_RESULT
    ]


@pytest.mark.parametrize("uid", RENDERED)
def test_nothing_is_shown_when_nothing_is_known_but_that_no_alert_fires(uid):
    shown = [title for title, found in expected_numbers(uid).items() if found[1]]
    assert set(shown) <= {
        "Firing alerts A",
        "GPUs in trouble A",
        "Critical alerts A",
        "Warnings A",
        "About to fire A",
    }
