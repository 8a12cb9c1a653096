"""Reflectors and pollers of the node exporter at their limits: too large, too fast, a defect."""

import pytest

from exporter.backoff import Backoff
from exporter.node.service_account.account import ServiceAccount
from exporter.node.service_account.poller import Poller
from exporter.node.service_account.reasons import ApiReason
from exporter.node.service_account.reflector import MAX_PAGE_BYTES, NodeReflector
from exporter.node.service_account.session import MAX_LINE_BYTES, ApiSession, TooLargeError
from exporter.node.service_account.watched_kind import WatchedKind
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from tests.waiting import until

PODS = WatchedKind("pods", ("/api/v1/pods",), bytes)


@pytest.fixture
def server():
    started = SimulatedApiServer()
    started.start()
    yield started
    started.stop()


@pytest.fixture
def account(server, tmp_path):
    (tmp_path / "token").write_text("secret")
    return ServiceAccount(server.url, tmp_path)


@pytest.fixture
def start():
    running = []

    def started(made):
        running.append(made)
        made.start()
        return made

    yield started
    for each in running:
        each.close()


def reason(reader):
    problem = reader.view(60).problem
    return problem and problem[0]


@pytest.mark.parametrize("reader", [NodeReflector, Poller])
def test_a_defect_ends_no_thread_and_is_logged_once(account, start, caplog, reader):
    made = start(reader(WatchedKind("pods", (), bytes), account))
    until(lambda: reason(made) is ApiReason.CRASHED)
    assert made.view(60).problem[1].startswith("pods cannot be read: IndexError")
    assert [record.levelname for record in caplog.records if record.exc_info] == ["ERROR"]


def test_an_object_that_no_page_has_room_for_is_a_problem(server, account, start):
    server.put("pods", {"metadata": {"namespace": "ml", "name": "a", "annotations": {"a": "x" * MAX_PAGE_BYTES}}})
    made = start(NodeReflector(PODS, account))
    until(lambda: reason(made) is ApiReason.BAD_RESPONSE)
    assert "has more than" in made.view(60).problem[1]
    assert [each.query["limit"] for each in server.requests][:4] == ["100", "25", "6", "1"]


def test_a_line_of_a_watch_has_a_limit(server, account):
    server.add_fault(ApiFault("watch", garbage=b"x" * (MAX_LINE_BYTES + 1)))
    session = ApiSession(account)
    with pytest.raises(TooLargeError), session.lines("/api/v1/pods", {"watch": "true"}, 60) as lines:
        next(lines)


def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_tight_loop(server, account, start):
    server.add_fault(ApiFault("watch", garbage=b"\n", times=10**6))
    start(NodeReflector(PODS, account, jitter=lambda: 0.0))
    watches = until(
        lambda: [each.at for each in server.requests if each.watch][:2] if len(server.requests) > 2 else None
    )
    assert watches[1] - watches[0] >= 1


def test_a_node_that_may_list_and_not_watch_lists_less_and_less_often(server, account, start):
    server.add_fault(ApiFault("watch", status=403, times=10**6))
    made = NodeReflector(PODS, account, jitter=lambda: 0.0)
    made._backoff = Backoff(0.1, 60)
    start(made)
    until(lambda: sum(not each.watch for each in server.requests) == 3)
    first, second, third = [each.at for each in server.requests if not each.watch]
    assert third - second > 2 * (second - first)
