"""A reflector of the node exporter against the simulated API server: what it knows stays true whatever that does."""

import socket
import ssl
import threading
import time

import msgspec
import pytest
import trustme

from exporter.node.service_account.account import ServiceAccount
from exporter.node.service_account.reasons import KEEP_SECONDS, ApiReason
from exporter.node.service_account.reflector import PAGE_OBJECTS, NodeReflector
from exporter.node.service_account.session import ApiRequestError, ApiSession
from exporter.node.service_account.watched_kind import WatchedKind
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from tests.clock import Clock
from tests.waiting import until


class Meta(msgspec.Struct):
    name: str


class Named(msgspec.Struct):
    metadata: Meta


def name_of(text):
    return msgspec.json.decode(text, type=Named).metadata.name


PODS = WatchedKind("pods", ("/api/v1/pods",), name_of, {"fieldSelector": "spec.nodeName=n1"})


def pod(name, node="n1", **more):
    return {"metadata": {"namespace": "ml", "name": name, **more}, "spec": {"nodeName": node}}


@pytest.fixture
def server():
    started = SimulatedApiServer(token="secret", bookmark_seconds=0.1)
    started.start()
    yield started
    started.stop()


@pytest.fixture
def account(server, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    return ServiceAccount(server.url, tmp_path)


@pytest.fixture
def start():
    running = []

    def started(kind, account, **options):
        running.append(NodeReflector(kind, account, **options))
        running[-1].start()
        return running[-1]

    yield started
    for each in running:
        each.close()
    until(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("watch-")])


def objects(reflector):
    return reflector.view(KEEP_SECONDS).objects


def reason(reflector):
    problem = reflector.view(KEEP_SECONDS).problem
    return problem and problem[0]


def test_what_the_selector_selects_is_listed_once_and_then_watched(server, account, start):
    server.put("pods", pod("a"))
    server.put("pods", pod("elsewhere", node="n2"))
    reflector = start(PODS, account)
    until(lambda: objects(reflector) == ("a",))
    server.put("pods", pod("b"))
    server.put("pods", pod("far", node="n2"))
    until(lambda: objects(reflector) == ("a", "b"))
    server.delete("pods", "a", "ml")
    until(lambda: objects(reflector) == ("b",))
    listed, *watched = server.requests
    assert (listed.watch, listed.query["fieldSelector"]) == (False, "spec.nodeName=n1")
    assert [(each.watch, each.query["fieldSelector"]) for each in watched] == [(True, "spec.nodeName=n1")]


def test_the_first_list_is_from_memory_and_a_later_one_from_what_is_stored(server, account, start):
    reflector = start(PODS, account)
    until(lambda: objects(reflector) == ())
    server.expire()
    until(lambda: sum(not each.watch for each in server.requests) == 2)
    assert [each.query.get("resourceVersion") for each in server.requests if not each.watch] == ["0", None]


def test_nothing_changes_the_objects_until_one_of_them_does(server, account, start):
    server.put("pods", pod("a"))
    reflector = start(PODS, account)
    first = until(lambda: objects(reflector))
    server.put("pods", pod("a", labels={"x": "y"}))
    server.put("pods", pod("z"))
    until(lambda: len(objects(reflector)) == 2)
    assert first == ("a",)
    known = objects(reflector)
    server.expire()
    until(lambda: sum(not each.watch for each in server.requests) == 2)
    until(lambda: reason(reflector) is None)
    assert objects(reflector) is known


def test_a_long_list_comes_in_pages(server, account, start):
    names = [f"p{number:04}" for number in range(PAGE_OBJECTS * 2 + 1)]
    for name in names:
        server.put("pods", pod(name))
    reflector = start(PODS, account)
    until(lambda: objects(reflector) == tuple(names))
    lists = [each.query for each in server.requests if not each.watch]
    assert len(lists) == 3
    assert [("resourceVersion" in query, "continue" in query) for query in lists] == [
        (True, False),
        (False, True),
        (False, True),
    ]


def test_a_page_that_is_too_large_is_asked_for_with_fewer_objects(server, account, start):
    large = "x" * (5 << 20)
    names = ("a", "b", "c", "d")
    for name in names:
        server.put("pods", pod(name, annotations={"large": large}))
    reflector = start(PODS, account)
    until(lambda: objects(reflector) == names)
    limits = [int(each.query["limit"]) for each in server.requests if not each.watch]
    assert limits[0] == PAGE_OBJECTS
    assert limits[-1] < len(names)


def test_more_objects_than_are_kept_are_left_out_and_that_is_said(server, account, start):
    for name in ("a", "b", "c"):
        server.put("pods", pod(name))
    few = WatchedKind("pods", ("/api/v1/pods",), name_of, most=2)
    reflector = start(few, account)
    until(lambda: objects(reflector) == ("a", "b"))
    assert reason(reflector) is ApiReason.TOO_MANY_OBJECTS
    server.put("pods", pod("d"))
    server.put("pods", pod("a", labels={"seen": "yes"}))
    server.delete("pods", "b", "ml")
    until(lambda: objects(reflector) == ("a",))


def test_an_object_that_cannot_be_decoded_costs_itself(server, account, start, caplog):
    def decode(text):
        if name_of(text) == "bad":
            raise RuntimeError("defect")
        return name_of(text)

    server.put("pods", pod("bad"))
    server.put("pods", pod("good"))
    reflector = start(WatchedKind("pods", ("/api/v1/pods",), decode), account)
    until(lambda: objects(reflector) == ("good",))
    server.put("pods", pod("bad"))
    server.put("pods", pod("better"))
    until(lambda: objects(reflector) == ("better", "good"))
    assert reflector.view(KEEP_SECONDS).malformed == 2
    assert [message for message in caplog.messages if "left out" in message] == [
        "one of the pods cannot be read and is left out: ml/bad: RuntimeError('defect')"
    ]


def test_an_object_that_can_no_longer_be_decoded_is_not_known(server, account, start):
    server.put("pods", pod("a"))
    server.put("pods", pod("b"))
    reflector = start(PODS, account)
    until(lambda: objects(reflector) == ("a", "b"))
    server.send("pods", b'{"type":"MODIFIED","object":{"metadata":{"namespace":"ml","name":"a","labels":"\xff"}}}')
    server.send("pods", b'{"type":"MODIFIED","object":{"metadata":{"namespace":"ml","name":"b","labels":{"x":5}}}}')
    until(lambda: objects(reflector) == ("a", "b"))


@pytest.mark.parametrize("gone", [ApiFault("watch", status=410), ApiFault("watch", event=410)])
def test_an_expired_version_leads_to_a_list_at_once(server, account, start, gone):
    server.put("pods", pod("a"))
    server.add_fault(gone)
    reflector = start(PODS, account)
    until(lambda: [each.watch for each in server.requests] == [False, True, False, True])
    until(lambda: objects(reflector) == ("a",) and reason(reflector) is None)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (ApiFault("list", status=403, times=99), ApiReason.FORBIDDEN),
        (ApiFault("list", status=404, times=99), ApiReason.NOT_SERVED),
        (ApiFault("list", status=500, times=99), ApiReason.SERVER_ERROR),
        (ApiFault("list", status=429, retry_after=1, times=99), ApiReason.THROTTLED),
        (ApiFault("list", garbage=b"<html>", times=99), ApiReason.BAD_RESPONSE),
        (ApiFault("list", garbage=b'{"metadata":{}}', times=99), ApiReason.BAD_RESPONSE),
        (ApiFault("list", drop=True, times=99), ApiReason.UNREACHABLE),
        (ApiFault("watch", garbage=b"<html>\n", times=99), ApiReason.BAD_RESPONSE),
        (ApiFault("watch", drop=True, times=99), ApiReason.UNREACHABLE),
        (ApiFault("watch", event=500, times=99), ApiReason.SERVER_ERROR),
    ],
)
def test_a_failure_has_a_reason_and_ends(server, account, start, fault, expected):
    server.put("pods", pod("a"))
    server.add_fault(fault)
    reflector = start(PODS, account, jitter=lambda: 0.0)
    until(lambda: reason(reflector) is expected)
    server.clear_faults()
    until(lambda: objects(reflector) == ("a",) and reason(reflector) is None)


def test_objects_are_known_while_the_server_is_away_for_as_long_as_they_are_kept(server, account, start):
    clock = Clock()
    server.put("pods", pod("a"))
    reflector = start(PODS, account, clock=clock)
    until(lambda: objects(reflector) == ("a",))
    server.stop(keep_port=True)
    until(lambda: reason(reflector) is ApiReason.UNREACHABLE)
    clock.now += KEEP_SECONDS
    assert objects(reflector) == ("a",)
    assert reflector.view(KEEP_SECONDS).age == KEEP_SECONDS
    clock.now += 1
    assert objects(reflector) is None
    server.start()
    until(lambda: objects(reflector) == ("a",) and reason(reflector) is None)


def test_a_watch_that_stays_open_is_a_confirmation_although_nothing_happens(server, account, start):
    server.put("pods", pod("a"))
    quiet = SimulatedApiServer(token="secret", bookmark_seconds=3600)
    quiet.start()
    try:
        quiet.put("pods", pod("a"))
        quiet.add_fault(ApiFault("watch", status=503))
        reflector = start(PODS, ServiceAccount(quiet.url, account.folder))
        until(lambda: reason(reflector) is ApiReason.SERVER_ERROR)
        until(lambda: reason(reflector) is None)
        assert objects(reflector) == ("a",)
    finally:
        quiet.stop()


def test_the_token_is_read_for_each_request(server, account, start):
    (account.folder / "token").write_text("expired\n")
    reflector = start(PODS, account)
    until(lambda: reason(reflector) is ApiReason.UNAUTHORIZED)
    (account.folder / "token").write_text("secret\n")
    until(lambda: objects(reflector) == ())


@pytest.mark.parametrize("token", [b"sec\nret", b"secret\xff"])
def test_a_token_that_cannot_be_sent_is_in_no_message(account, start, token, caplog):
    (account.folder / "token").write_bytes(token)
    reflector = start(PODS, account)
    until(lambda: reason(reflector) is ApiReason.NO_API_SERVER)
    assert "ret" not in reflector.view(KEEP_SECONDS).problem[1].replace("secret", "ret")
    assert not [message for message in caplog.messages if "sec" in message]


def test_outside_a_cluster_there_is_no_api_server(tmp_path, start):
    reflector = start(PODS, ServiceAccount("", tmp_path))
    until(lambda: reason(reflector) is ApiReason.NO_API_SERVER)
    reflector = start(PODS, ServiceAccount("https://127.0.0.1:1", tmp_path))
    until(lambda: reason(reflector) is ApiReason.NO_API_SERVER)


def test_the_next_version_is_asked_where_one_is_not_served(server, account, start):
    server.put("pods", pod("a"))
    reflector = start(WatchedKind("pods", ("/apis/none/v1/pods", "/api/v1/pods"), name_of), account)
    until(lambda: objects(reflector) == ("a",))


def test_a_server_that_says_nothing_is_given_up_after_a_time(tmp_path):
    (tmp_path / "token").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as mute:
        account = ServiceAccount(f"http://127.0.0.1:{mute.getsockname()[1]}", tmp_path)
        session = ApiSession(account)

        def answer():
            connection, _ = mute.accept()
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n")
            ended.wait()
            connection.close()

        ended = threading.Event()
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            with pytest.raises(ApiRequestError, match="timed out"), session.lines("/x", {}, 0.2) as lines:
                assert [next(lines), next(lines)] == [b"{}"]
        finally:
            ended.set()
            thread.join()


def test_a_reflector_ends_at_once_in_the_middle_of_a_watch(server, account):
    reflector = NodeReflector(PODS, account)
    reflector.start()
    until(lambda: objects(reflector) == ())
    until(lambda: any(each.watch for each in server.requests))
    began = time.monotonic()
    reflector.close()
    assert time.monotonic() - began < 60
    assert reason(reflector) is None
    until(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("watch-")])
    reflector.close()


def test_a_request_that_begins_after_the_end_was_asked_for_ends_at_once(server, account):
    session = ApiSession(account)
    session.interrupt()
    with pytest.raises(ApiRequestError, match="interrupted"), session.lines("/api/v1/pods", {"watch": "true"}, 60):
        pytest.fail("the watch was opened")


def test_over_tls_the_authority_is_read_for_each_request_and_a_watch_can_be_ended(server, tmp_path, start):
    authority, other = trustme.CA(), trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    server._server.socket = tls.wrap_socket(server._server.socket, server_side=True)
    (tmp_path / "token").write_text("secret")
    other.cert_pem.write_to_path(tmp_path / "ca.crt")
    reflector = start(PODS, ServiceAccount(server.url.replace("http:", "https:"), tmp_path))
    until(lambda: reason(reflector) is ApiReason.UNREACHABLE)
    assert "certificate verify failed" in reflector.view(KEEP_SECONDS).problem[1]
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    until(lambda: objects(reflector) == ())
    until(lambda: any(each.watch for each in server.requests))
    reflector.close()


def test_a_request_that_begins_while_the_program_ends_ends_at_once(server, account):
    session = ApiSession(account)
    session.interrupt()
    with pytest.raises(ApiRequestError, match="interrupted"):
        session.whole("/api/v1/pods", {}, 1 << 20)
    assert not server.requests
