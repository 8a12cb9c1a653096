"""The status page is made outside the event loop, for all who ask at once, and only for who may scrape."""

import base64
import http.client
import threading
from concurrent.futures import ThreadPoolExecutor

import bcrypt
import pytest

from exporter.web.config_file import WebConfigFile
from exporter.web.html_pages import HtmlPage
from tests.fakes.endpoints import serving
from tests.waiting import until

PAGE = HtmlPage(b"<p>state</p>", "default-src 'none'; style-src 'sha256-x'")


def get(server, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def test_the_page_is_served_with_headers_by_which_a_browser_runs_and_keeps_nothing():
    with serving(status_page=lambda: PAGE) as server:
        status, headers, body = get(server)
        assert (status, body) == (200, PAGE.body)
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert headers["content-security-policy"] == PAGE.policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert get(server, method="HEAD")[2] == b""
        assert get(server, method="POST")[0] == 405


def test_the_page_that_has_links_alone_runs_and_loads_nothing_either():
    with serving() as server:
        assert get(server)[1]["content-security-policy"].startswith("default-src 'none'; ")


def test_a_configured_policy_does_not_weaken_that_of_the_page():
    web = WebConfigFile(headers={"Content-Security-Policy": "default-src *"})
    with serving(status_page=lambda: PAGE, web=web) as server:
        assert get(server)[1]["content-security-policy"] == PAGE.policy


def test_a_page_that_takes_long_delays_no_scrape_and_is_made_once_for_all_who_wait():
    release, made = threading.Event(), []

    def slow():
        made.append(1)
        assert release.wait(60)
        return PAGE

    with serving(status_page=slow) as server, ThreadPoolExecutor(5) as clients:
        waiting = [clients.submit(get, server) for _ in range(5)]
        until(lambda: made and server.connections == 5, 60)
        assert get(server, "/metrics")[2] == b"a 1\n"
        assert not any(each.done() for each in waiting)
        release.set()
        assert [each.result(60)[2] for each in waiting] == [PAGE.body] * 5
    assert made == [1]


def test_a_client_that_goes_does_not_take_the_page_from_the_others():
    release, made = threading.Event(), threading.Event()

    def slow():
        made.set()
        assert release.wait(60)
        return PAGE

    with serving(status_page=slow) as server, ThreadPoolExecutor(1) as clients:
        gone = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        gone.request("GET", "/")
        assert made.wait(60)
        stays = clients.submit(get, server)
        until(lambda: server.connections == 2, 60)
        gone.close()
        release.set()
        assert stays.result(60)[2] == PAGE.body


def test_a_defect_costs_the_page_alone_and_is_logged_once(caplog):
    def broken():
        raise KeyError("no such label")

    with serving(status_page=broken) as server:
        for _ in range(3):
            assert get(server)[::2] == (500, b"the status page cannot be made; the log has the cause\n")
        assert get(server, "/metrics")[0] == 200
    assert [record.message for record in caplog.records] == [
        "the status page cannot be made because of a defect in gpugauge"
    ]


def test_with_passwords_the_page_needs_one_as_the_metrics_do():
    users = {"ann": bcrypt.hashpw(b"right", bcrypt.gensalt(4))}
    made = []

    def make():
        made.append(1)
        return PAGE

    with serving(status_page=make, web=WebConfigFile(users=users)) as server:
        status, headers, body = get(server)
        assert (status, body) == (401, b"Unauthorized\n")
        assert headers["www-authenticate"] == "Basic"
        assert made == []
        assert get(server, Authorization="Basic " + base64.b64encode(b"ann:right").decode())[2] == PAGE.body


@pytest.mark.parametrize("path", ["/", "/metrics"])
def test_where_only_health_is_served_there_is_no_page(path):
    with serving(status_page=lambda: PAGE, health_only=True) as server:
        assert get(server, path)[0] == 404
