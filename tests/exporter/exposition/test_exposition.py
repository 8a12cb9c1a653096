"""Each form of an exposition is made once: in the collection if it was asked for lately, else when it is asked for."""

import gzip
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from exporter.exposition.exposition import RECENT_SECONDS, Demand, Exposition, Form

THREADS = 8


class Renderer:
    """Renders OpenMetrics and counts how often."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return [b"a 1\n", b"# EOF\n"]


def exposition(demand=None, renderer=None):
    return Exposition(lambda: [b"a 1\n"], renderer or Renderer(), demand=demand)


def test_no_form_is_made_while_nobody_asks():
    assert exposition().forms == set()


@pytest.mark.parametrize(
    ("attribute", "form", "body"),
    [
        ("text", Form.TEXT, b"a 1\n"),
        ("text_gzip", Form.TEXT_GZIP, b"a 1\n"),
        ("openmetrics", Form.OPENMETRICS, b"a 1\n# EOF\n"),
        ("openmetrics_gzip", Form.OPENMETRICS_GZIP, b"a 1\n# EOF\n"),
    ],
)
def test_a_form_is_made_when_it_is_asked_for_and_then_in_each_collection(attribute, form, body):
    demand = Demand(lambda: 0.0)
    first = getattr(exposition(demand), attribute)
    assert (gzip.decompress(first) if "gzip" in attribute else first) == body
    assert demand.recent() == [form]
    following = exposition(demand)
    assert form in following.forms
    assert getattr(following, attribute) == first


def test_a_form_that_was_not_asked_for_in_five_minutes_is_no_longer_made():
    now = 0.0
    demand = Demand(lambda: now)
    assert exposition(demand).openmetrics_gzip
    now = RECENT_SECONDS
    assert Form.OPENMETRICS_GZIP in exposition(demand).forms
    now += 1
    assert exposition(demand).forms == set()


def test_the_text_format_alone_never_renders_openmetrics():
    demand, renderer = Demand(), Renderer()
    for _ in range(3):
        assert exposition(demand, renderer).text_gzip
    assert renderer.calls == 0


def test_a_form_is_made_once_however_many_threads_ask_for_it():
    renderer, together = Renderer(), threading.Barrier(THREADS)
    shown = exposition(renderer=renderer)

    def ask(_):
        together.wait(timeout=60)
        return shown.openmetrics_gzip

    with ThreadPoolExecutor(THREADS) as threads:
        bodies = list(threads.map(ask, range(THREADS)))
    assert len({id(body) for body in bodies}) == 1
    assert renderer.calls == 1
