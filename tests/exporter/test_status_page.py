"""A program makes its status page at most once per collection, from what that collection left."""

import http.client
import re

import pytest

from exporter.cli import parse
from exporter.cluster.config import watcher_config
from exporter.collection_loop import Collected, CollectionLoop
from exporter.config import WebOptions
from exporter.exposition.exporter_metrics import ConfigState, ExporterMetrics
from exporter.node.config import node_config
from exporter.program import ProgramEndpoints, StatusPageMaker, serve
from exporter.snapshot import Snapshot
from exporter.status_page.content import StatusPage, text
from exporter.status_page.html import POLICY


class Recorded:
    """Fills a page and notes of what."""

    def __init__(self):
        self.seen: list[Collected] = []

    def __call__(self, collected):
        self.seen.append(collected)
        return StatusPage((("Number", text(str(collected.number))),), ())


def loop_at(now, collect=lambda: Snapshot(1.0, ()), config=None):
    return CollectionLoop(collect, ExporterMetrics({}, config), 30.0, lambda: now[0])


def test_the_page_is_made_once_per_collection_and_only_when_asked_for():
    now, content = [0.0], Recorded()
    loop = loop_at(now)
    page = StatusPageMaker("t", loop, content)
    assert b"<dd>0</dd>" in page().body
    loop.collect()
    loop.collect()
    assert [page() for _ in range(3)] == [page()] * 3
    assert b"<dd>2</dd>" in page().body
    assert page().policy == POLICY
    assert [each.number for each in content.seen] == [0, 2]


def test_what_a_collection_left_belongs_together():
    content, state = Recorded(), ConfigState("0" * 64, successful=True)
    results = [Snapshot(1.0, ()), Snapshot(2.0, ())]
    loop = loop_at([0.0], lambda: results.pop(0), lambda: state)
    StatusPageMaker("t", loop, content)()
    loop.collect()
    StatusPageMaker("t", loop, content)()
    first, second = content.seen
    assert (first.snapshot, second.snapshot.taken_at) == (None, 1.0)
    assert (second.config, second.exposition) == (state, loop.exposition)


def test_a_collection_that_failed_gives_no_snapshot():
    def collect():
        raise KeyError("defect")

    loop = loop_at([0.0], collect)
    loop.collect()
    assert (loop.newest.number, loop.newest.snapshot) == (1, None)


def test_a_page_says_that_collections_have_stopped():
    now, content = [0.0], Recorded()
    loop = loop_at(now)
    loop.collect()
    page = StatusPageMaker("t", loop, content)
    assert b"is old" not in page().body
    now[0] = 91.0
    assert b"No collection has ended lately: what follows is old" in page().body
    now[0] = 92.0
    page()
    assert len(content.seen) == 2


@pytest.mark.parametrize(("on", "expected"), [(True, "<dt>Number</dt><dd>0</dd>"), (False, '<a href="/metrics">')])
def test_the_status_page_can_be_switched_off(on, expected):
    loop = loop_at([0.0])
    web = WebOptions("127.0.0.1:0", None, False, status_page=on)
    server = serve("gpugauge", web, ProgramEndpoints(loop, lambda: None), {}, Recorded())
    try:
        connection = http.client.HTTPConnection("127.0.0.1", int(re.search(r"\d+", server.ports())[0]), timeout=60)
        connection.request("GET", "/")
        assert expected in connection.getresponse().read().decode()
        connection.close()
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("argv", "environment", "on"),
    [
        ([], {}, True),
        (["--status-page=off"], {}, False),
        ([], {"GPUGAUGE_STATUS_PAGE": "off"}, False),
        (["--status-page", "on"], {"GPUGAUGE_STATUS_PAGE": "off"}, True),
    ],
)
def test_flag_and_variable_switch_it_in_both_programs(argv, environment, on):
    assert node_config(parse(argv, environment), environment).web.status_page is on
    cluster = ["cluster", "--api-server", "http://127.0.0.1:1", *argv]
    assert watcher_config(parse(cluster, environment), environment).web.status_page is on
