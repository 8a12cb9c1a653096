"""A ConfigMap is got with the pod's service account, and what can go wrong is one message each."""

import http.server
import json
import ssl
import threading
from contextlib import contextmanager

import pytest
import trustme

from exporter.node.service_account.account import ConfigMapName, ServiceAccount, service_account
from exporter.node.service_account.request import ApiServerError, config_map

NAME = ConfigMapName("gpu", "counters")


@contextmanager
def answering(status, body, asked, tls=None):
    """An API server with one answer; `asked` gets paths and tokens."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers["Authorization"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Write nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "token").write_text("secret\n")
    return tmp_path


def asked_for(folder, status, body, tls=None):
    asked = []
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    with answering(status, body, asked, tls) as url:
        try:
            return config_map(ServiceAccount(url, folder), NAME, "metrics"), asked
        except ApiServerError as error:
            return str(error), asked


def test_the_key_is_got_with_the_token(folder):
    found, asked = asked_for(folder, 200, {"data": {"metrics": "a, b, c\n", "other": "x"}})
    assert found == "a, b, c\n"
    assert asked == [("/api/v1/namespaces/gpu/configmaps/counters", "Bearer secret")]


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, b"", "the API server answered 401 Unauthorized: the token of the service account is not accepted"),
        (403, b"", "answered 403 Forbidden: the service account may not get it; a Role must allow the verb get"),
        (404, b"", "the API server answered 404 Not Found: there is none"),
        (503, b"", "the API server answered 503 Service Unavailable"),
        (200, {"data": {"b": "", "a": ""}}, "it has no key 'metrics'; it has a, b"),
        (200, {"data": None}, "it has no key 'metrics'; it has none"),
        (200, {}, "it has no key 'metrics'; it has none"),
        (200, [], "the API server's answer is no ConfigMap"),
        (200, b"{", "the API server's answer is no ConfigMap"),
        (200, b"[" * 100_000, "the API server's answer is no ConfigMap"),
        (200, b"\xff", "the API server's answer is no ConfigMap"),
        (200, {"data": []}, "it has no key 'metrics'; it has none"),
        (200, {"data": "a"}, "the API server's answer is no ConfigMap"),
        (200, {"data": {"metrics": 5}}, "it has no key 'metrics'; it has metrics"),
    ],
)
def test_a_failure_is_one_message_without_the_token(folder, status, body, message):
    found, _ = asked_for(folder, status, body)
    assert message in found
    assert "\n" not in found
    assert "secret" not in found


def test_an_api_server_that_cannot_be_asked_is_one_message(folder, tmp_path):
    for account in (ServiceAccount("http://127.0.0.1:1", folder), ServiceAccount("https://127.0.0.1:1", folder)):
        with pytest.raises(ApiServerError, match="the API server cannot be asked: "):
            config_map(account, NAME, "metrics")
    with pytest.raises(ApiServerError, match=r"the API server cannot be asked: .+No such file"):
        config_map(ServiceAccount("http://127.0.0.1:1", tmp_path / "none"), NAME, "metrics")
    with pytest.raises(ApiServerError, match="no API server is known: KUBERNETES_SERVICE_HOST is not set"):
        config_map(service_account({}), NAME, "metrics")


@pytest.mark.parametrize("token", [b"sec\nret", b"secret\xff", b"sec\x00ret\r\nX: 1"])
def test_a_token_that_cannot_be_sent_is_not_in_the_message(folder, token):
    (folder / "token").write_bytes(token)
    found, asked = asked_for(folder, 200, {"data": {"metrics": "x"}})
    assert found == "the API server cannot be asked: the token of the service account is not usable"
    assert asked == []


def test_the_api_server_must_have_a_certificate_of_the_clusters_authority(folder):
    authority, other = trustme.CA(), trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(folder / "ca.crt")
    assert asked_for(folder, 200, {"data": {"metrics": "x"}}, tls)[0] == "x"
    other.cert_pem.write_to_path(folder / "ca.crt")
    found, asked = asked_for(folder, 200, {"data": {"metrics": "x"}}, tls)
    assert "certificate verify failed" in found
    assert asked == []


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [("10.0.0.1", "6443", "https://10.0.0.1:6443"), ("fd00::1", "", "https://[fd00::1]:443"), ("", "443", "")],
)
def test_the_address_is_that_of_the_variables_of_a_pod(host, port, url):
    assert service_account({"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}).url == url
