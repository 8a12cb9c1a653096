"""The client of Prometheus's API: what it sends, what it reads, and one message for each thing that goes wrong."""

import gzip
import json
import socket

import pytest

from exporter.commands.prometheus.access import PrometheusAccess
from exporter.commands.prometheus.client import PrometheusClient, PrometheusError
from tests.exporter.commands.prometheus.fake import asking, vector


def message(answer, **options):
    with asking(answer, **options) as (client, _), pytest.raises(PrometheusError) as raised:
        client.query("up", 0)
    assert "\n" not in str(raised.value)
    return str(raised.value).partition(" ")[2].partition(" ")[2], raised.value.transient


def test_a_query_is_sent_as_a_form_with_its_time_and_deadline():
    with asking(lambda _: (200, vector(({"node": "a"}, 2.5)))) as (client, requests):
        answer = client.query('up{node="a"}', 1_700_000_000.25)
    assert [(each.labels, each.value) for each in answer.samples] == [({"node": "a"}, 2.5)]
    assert (requests[0]["method"], requests[0]["path"]) == ("POST", "/api/v1/query")
    assert requests[0]["fields"] == {"query": 'up{node="a"}', "time": "1700000000.250", "timeout": "60s"}


def test_a_range_has_points_and_a_prefix_is_kept():
    body = {"resultType": "matrix", "result": [{"metric": {}, "values": [[60, "1"], [120, "NaN"], [180, "3"]]}]}
    text = json.dumps({"status": "success", "data": body, "warnings": ["a store did not answer"]}).encode()
    with asking(lambda _: (200, text), prefix="/prometheus") as (client, requests):
        answer = client.query_range("up", 60, 180, 60)
    assert [each.points for each in answer.series] == [[(60, 1.0), (180, 3.0)]]
    assert answer.warnings == ("a store did not answer",)
    assert requests[0]["path"] == "/prometheus/api/v1/query_range"
    assert {name: requests[0]["fields"][name] for name in ("start", "end", "step")} == {
        "start": "60.000", "end": "180.000", "step": "60",
    }  # fmt: skip


def test_values_that_are_no_numbers_are_left_out():
    with asking(lambda _: (200, vector(({"a": "1"}, "NaN"), ({"a": "2"}, "+Inf"), ({"a": "3"}, 0)))) as (client, _):
        assert [each["a"] for each in client.query("x", 0).samples] == ["3"]


def test_credentials_and_tenant_are_sent_in_headers():
    headers = {"authorization": "Bearer t", "x-scope-orgid": "team"}
    with asking(lambda _: (200, vector()), headers=headers) as (client, requests):
        client.query("up", 0)
    sent = {name.lower(): value for name, value in requests[0]["headers"].items()}
    assert (sent["authorization"], sent["x-scope-orgid"]) == ("Bearer t", "team")


def test_a_proxy_that_forbids_post_is_asked_with_get_from_then_on():
    with asking(lambda each: (405, b"") if each["method"] == "POST" else (200, vector())) as (client, requests):
        client.query("up", 0)
        client.query("up", 1)
    assert [each["method"] for each in requests] == ["POST", "GET", "GET"]
    assert requests[1]["fields"]["query"] == "up"


def test_a_redirect_is_not_followed_because_credentials_are_for_one_address():
    with asking(lambda _: (302, b"")) as (client, requests), pytest.raises(PrometheusError, match="answered 302"):
        client.query("up", 0)
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("status", "body", "text", "transient"),
    [
        (400, json.dumps({"status": "error", "error": "parse error"}).encode(), "answered 400: parse error", False),
        (401, b"", "answered 401: it does not accept the credentials", False),
        (403, b"no", "answered 403: the credentials do not allow it", False),
        (
            404,
            b"404 page not found",
            "answered 404: is the prefix of the API missing, such as /prometheus for Mimir?",
            False,
        ),
        (503, json.dumps({"error": "query\x1b timed out"}).encode(), "answered 503: query  timed out", True),
        (504, b"<html>", "answered 504", True),
        (200, b"<html>", "answered what cannot be read: it is not an answer of Prometheus: ", False),
        (200, b'{"status":"success"}', "answered what cannot be read: it has no data", False),
        (200, b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}', "a scalar, not series", False),
        (200, vector(({}, "many")), "answered what cannot be read: it has a value that is no number", False),
        (200, b'{"status":"success","data":{"resultType":"vector","result":[{"metric":7}]}}', "cannot be read", False),
    ],
)
def test_each_error_is_one_message(status, body, text, transient):
    found, again = message(lambda _: (status, body))
    assert text in found
    assert again is transient


def test_an_answer_that_is_too_large_is_not_read_to_its_end():
    found, transient = message(lambda _: (200, b" " * (3 << 20)), max_bytes=1 << 20)
    assert (found, transient) == ("answered more than 1 MiB: ask for a shorter time or for less", False)


def test_nothing_that_listens_is_one_message_that_may_change():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(PrometheusError, match="cannot be reached") as raised:
            PrometheusClient(PrometheusAccess(url)).query("up", 0)
    assert raised.value.transient


def test_a_server_that_does_not_answer_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        given = PrometheusAccess(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_seconds=0.2)
        client = PrometheusClient(given)
        with pytest.raises(PrometheusError, match=r"did not answer within 0\.2 s") as raised:
            client.query("up", 0)
        client.close()
    assert raised.value.transient


def test_an_answer_that_never_ends_is_given_up():
    times = iter([0.0, 100.0])
    with asking(lambda _: (200, vector())) as (client, _):
        client._clock = lambda: next(times)
        with pytest.raises(PrometheusError, match="did not answer in full in time"):
            client.query("up", 0)


def test_a_file_without_certificates_is_one_message(tmp_path):
    (tmp_path / "ca").write_bytes(gzip.compress(b""))
    with pytest.raises(Exception, match=r"--prometheus-ca-file: .* has no certificates"):
        PrometheusClient(PrometheusAccess("https://a", ca_file=str(tmp_path / "ca")))
