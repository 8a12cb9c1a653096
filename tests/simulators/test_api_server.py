"""The simulated API server: what a watch sends, when it ends, and what happens to requests that are not served yet."""

import json
import math
import socket
import threading
import urllib.error
import urllib.request

import pytest

from simulators import objects
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from simulators.field_selector import matches

UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


@pytest.fixture
def server():
    """A server that is not started: its requests are made without HTTP."""
    return SimulatedApiServer(bookmark_seconds=0.01)


def watch(server, **query):
    return server.accept("pods", {"watch": "true", "resourceVersion": "1", **query}, {})


def event(line):
    decoded = json.loads(line)
    return decoded["type"], decoded["object"]["metadata"].get("name")


def test_a_watch_that_was_accepted_before_a_disconnect_ends_although_it_was_not_served_yet(server):
    request = watch(server)
    server.disconnect()
    with pytest.raises(ConnectionResetError):
        next(server.events(request))


def test_a_watch_that_is_accepted_after_a_disconnect_is_served(server):
    server.disconnect()
    server.put("pods", objects.pod("p"))
    assert event(next(server.events(watch(server)))) == ("ADDED", "p")


def test_a_watch_in_progress_ends_at_a_disconnect(server):
    server.put("pods", objects.pod("p"))
    events = server.events(watch(server))
    assert event(next(events)) == ("ADDED", "p")
    server.disconnect()
    with pytest.raises(ConnectionResetError):
        list(events)


def test_a_watch_sends_changes_in_order_then_bookmarks(server):
    server.put("pods", objects.pod("p"))
    server.put("nodes", objects.node("n"))
    server.put("pods", objects.running(objects.pod("p"), "n"))
    server.delete("pods", "p", "default")
    events = server.events(watch(server))
    assert [event(next(events)) for _ in range(4)] == [
        ("ADDED", "p"),
        ("MODIFIED", "p"),
        ("DELETED", "p"),
        ("BOOKMARK", None),
    ]


def test_an_object_that_no_longer_matches_the_selector_is_deleted_for_the_watch(server):
    server.put("pods", objects.pod("p"))
    done = objects.pod("p")
    done["status"]["phase"] = "Succeeded"
    server.put("pods", done)
    events = server.events(watch(server, fieldSelector=UNFINISHED))
    assert [event(next(events)) for _ in range(2)] == [("ADDED", "p"), ("DELETED", "p")]


def test_a_watch_from_an_expired_version_ends_with_410(server):
    server.put("pods", objects.pod("p"))
    server.expire()
    (line,) = server.events(watch(server))
    assert json.loads(line)["object"]["code"] == 410


def test_a_list_in_pages_is_of_one_version_and_ends_when_its_history_expires(server):
    for number in range(5):
        server.put("pods", objects.pod(f"p{number}"))
    first = server.page("pods", {"limit": "2"})
    server.put("pods", objects.pod("p5"))
    second = server.page("pods", {"limit": "2", "continue": first["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in second["items"]] == ["p2", "p3"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    server.expire()
    assert server.page("pods", {"limit": "2", "continue": second["metadata"]["continue"]}) is None


def test_a_fault_affects_so_many_requests_of_its_type(server):
    fault = ApiFault("list", "pods", times=2, status=500)
    server.add_fault(fault)
    assert server.next_fault("watch", "pods") is None
    assert server.next_fault("list", "nodes") is None
    assert [server.next_fault("list", "pods") is not None for _ in range(3)] == [True, True, False]


def test_clearing_the_faults_ends_a_delay_whether_it_has_begun_or_not(server):
    begun, accepted = (
        threading.Thread(target=server.pause, args=(server.accept("pods", {}, {}), math.inf), daemon=True)
        for _ in range(2)
    )
    begun.start()
    server.clear_faults()
    accepted.start()
    for thread in (begun, accepted):
        thread.join(30)
        assert not thread.is_alive()


def test_a_stopped_server_can_keep_its_port_and_refuses_connections_until_it_starts_again():
    server = SimulatedApiServer()
    server.start()
    try:
        url, address = server.url, ("127.0.0.1", int(server.url.rpartition(":")[2]))
        server.stop(keep_port=True)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, 30)
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(address)
        server.start()
        assert server.url == url
        socket.create_connection(address, 30).close()
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", True),
        ("status.phase=Pending", True),
        ("status.phase==Pending", True),
        ("status.phase!=Pending", False),
        (UNFINISHED, True),
        ("status.phase=Pending,metadata.name=q", False),
        ("spec.nodeName=", True),
        ("spec.nodeName!=", False),
        ("status.phase.deeper=", True),
    ],
)
def test_a_field_selector_matches_when_every_requirement_does(selector, expected):
    assert matches(objects.pod("p"), selector) is expected


def test_another_kind_is_served_once_that_is_asked_for(server):
    path = "/apis/batch/v1/jobs"
    assert server.kind_at(path) is None
    server.serve(path)
    assert server.kind_at(path) == "jobs"
    server.put("jobs", objects.job("train", "team-a"))
    page = server.page("jobs", {})
    assert page["kind"] == "JobList"
    assert [item["metadata"]["name"] for item in page["items"]] == ["train"]


def test_a_list_of_one_namespace_has_its_objects_alone_and_a_fault_can_be_that_of_one_path(server):
    for namespace in ("a", "b"):
        server.put("pods", objects.pod("p", namespace))
    server.add_fault(ApiFault("list", path="/api/v1/pods", status=403))
    server.start()
    try:
        with urllib.request.urlopen(server.url + "/api/v1/namespaces/a/pods?fieldSelector=metadata.name=p") as answer:
            assert [each["metadata"]["namespace"] for each in json.load(answer)["items"]] == ["a"]
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(server.url + "/api/v1/pods")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(server.url + "/api/v1/namespaces/a/absent")
    finally:
        server.stop()
