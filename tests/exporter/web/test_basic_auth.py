"""Passwords: who may read, that health needs none, and that bcrypt delays nobody else."""

import asyncio
import base64
import http.client
import threading
import time

import bcrypt
import pytest

from exporter.web.basic_auth import MAX_REMEMBERED, MAX_WAITING, Login, Logins
from exporter.web.config_file import WebConfigFile
from tests.fakes.endpoints import serving
from tests.waiting import until

COST = 4
"""The lowest: a check takes about a millisecond."""


def hashed(password, cost=COST):
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost))


USERS = {"ann": hashed("right"), "bob": hashed("other")}


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def check(*headers, users=USERS, logins=None):
    """The results for these headers, one after another, in one event loop."""
    logins = logins or Logins()

    async def run():
        return [await logins.check(users, header) for header in headers]

    return asyncio.run(run())


def get(server, path="/metrics", authorization=None, timeout=60):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
    try:
        connection.request("GET", path, headers={"Authorization": authorization} if authorization else {})
        response = connection.getresponse()
        response.read()
        return response.status, dict(response.getheaders())
    finally:
        connection.close()


@pytest.fixture(scope="module")
def server():
    with serving(web=WebConfigFile(users=USERS)) as server:
        yield server


@pytest.mark.parametrize(("user", "password"), [("ann", "right"), ("bob", "other")])
def test_a_right_password_is_let_in(server, user, password):
    assert get(server, authorization=basic(user, password))[0] == 200


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Basic",
        "Basic !!!",
        "Basic " + base64.b64encode(b"ann").decode(),
        "Basic " + base64.b64encode(b"\xff:right").decode(),
        "Bearer right",
        basic("ann", "wrong"),
        basic("ann", ""),
        basic("ann", "right\0"),
        basic("ann", "right" + "x" * 80),
        basic("nobody", "right"),
        basic("", "right"),
        basic("bob", "right"),
    ],
)
def test_everything_else_is_not(server, authorization):
    status, headers = get(server, authorization=authorization)
    assert status == 401
    assert headers["www-authenticate"] == "Basic"


@pytest.mark.parametrize("path", ["/metrics", "/", "/nothing"])
def test_every_other_path_needs_a_password(server, path):
    assert get(server, path)[0] == 401


@pytest.mark.parametrize("path", ["/health", "/livez", "/readyz"])
def test_health_needs_none(server, path):
    assert get(server, path)[0] == 200


def test_a_hash_of_another_tool_is_understood():
    users = {"ann": b"$2y$" + USERS["ann"][4:]}
    assert check(basic("ann", "right"), basic("ann", "wrong"), users=users) == [Login.RIGHT, Login.WRONG]


def test_a_right_password_is_compared_once_and_again_when_the_hash_changes():
    logins = Logins()
    assert check(basic("ann", "right"), logins=logins) == [Login.RIGHT]
    slow = {"ann": USERS["ann"]}
    logins._compare = None  # calling it would fail
    assert check(basic("ann", "right"), users=slow, logins=logins) == [Login.RIGHT]
    with pytest.raises(TypeError):
        check(basic("ann", "right"), users={"ann": hashed("right")}, logins=logins)


def test_the_memory_for_right_passwords_is_bounded_and_wrong_ones_take_none():
    logins = Logins()
    for number in range(MAX_REMEMBERED + 10):
        logins._remember(bytes([number % 256, number // 256]))
    assert len(logins._right) == MAX_REMEMBERED
    fresh = Logins()
    check(*(basic("ann", f"wrong {number}") for number in range(20)), logins=fresh)
    assert fresh._right == {}


def test_an_unknown_user_takes_as_long_as_a_known_one():
    users = {"ann": hashed("right", 10)}

    def seconds(header):
        """CPU time of every thread: how busy the machine is does not count."""
        began = time.process_time()
        assert check(header, users=users) == [Login.WRONG]
        return time.process_time() - began

    known, unknown = (min(seconds(basic(user, "x")) for _ in range(5)) for user in ("ann", "nobody"))
    assert unknown > known / 2


def test_while_many_passwords_are_compared_a_scraper_is_answered_and_some_are_sent_away():
    slow = {"ann": hashed("right", 10)}
    with serving(web=WebConfigFile(users=slow)) as server:
        assert get(server, authorization=basic("ann", "right"))[0] == 200
        statuses = []

        def attack(number):
            statuses.append(get(server, authorization=basic("ann", f"wrong {number}"))[0])

        clients = [threading.Thread(target=attack, args=(number,)) for number in range(4 * MAX_WAITING)]
        for client in clients:
            client.start()
        until(lambda: statuses or not any(client.is_alive() for client in clients))
        before = len(statuses)
        assert get(server, authorization=basic("ann", "right"))[0] == 200
        assert get(server, "/livez")[0] == 200
        # Had the scraper waited its turn behind bcrypt, nearly all of the others would have been answered before.
        assert before < len(clients) - MAX_WAITING / 2
        for client in clients:
            client.join()
        assert set(statuses) == {401, 429}
