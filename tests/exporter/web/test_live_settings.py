"""Changed web files are used without a restart, and a mistake in them changes nothing."""

import http.client
import ssl

import pytest
import trustme

from exporter.config import ConfigFileError
from exporter.web.live_settings import LiveSettings
from exporter.web.tls import TlsError
from tests.exporter.web.test_tls import issue
from tests.fakes.endpoints import serving

TLS = "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n"


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def file(authority, tmp_path):
    issue(authority, tmp_path)
    path = tmp_path / "web.yml"
    path.write_text(TLS)
    return path


def presented(server, authority):
    """The certificate that the server presents."""
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=trusting)
    try:
        connection.request("GET", "/health")
        certificate = connection.sock.getpeercert(binary_form=True)
        connection.getresponse().read()
        return certificate
    finally:
        connection.close()


def test_the_files_are_checked_once_a_second(file, authority, tmp_path):
    now = [0.0]
    live = LiveSettings(file, clock=lambda: now[0])
    first = live.current()
    issue(authority, tmp_path)
    assert live.current() is first  # the files were checked a moment ago
    now[0] += 1.0
    second = live.current()
    assert second.tls is not first.tls
    now[0] += 1.0
    assert live.current() is second


def test_a_rotated_certificate_is_presented_to_new_connections(file, authority, tmp_path):
    with serving(settings=LiveSettings(file, every=0.0).current) as server:
        before = presented(server, authority)
        assert presented(server, authority) == before
        issue(authority, tmp_path)
        assert presented(server, authority) != before


def test_changed_headers_and_users_are_used(file):
    live = LiveSettings(file, every=0.0)
    assert (live.current().headers, live.current().users) == ({}, {})
    more = "http_server_config:\n  headers:\n    X-Frame-Options: deny\nbasic_auth_users:\n  ann: $2y$10$"
    file.write_text(TLS + more + "X" * 53 + "\n")
    assert live.current().headers == {"X-Frame-Options": "deny"}
    assert live.current().users == {"ann": b"$2y$10$" + b"X" * 53}


def test_a_file_that_the_changed_configuration_names_is_watched(file, authority, tmp_path):
    live = LiveSettings(file, every=0.0)
    (tmp_path / "more").mkdir()
    issue(authority, tmp_path / "more")
    file.write_text(TLS.replace("tls.", "more/tls."))
    second = live.current().tls
    issue(authority, tmp_path / "more")
    assert live.current().tls is not second


def test_a_broken_pair_keeps_the_former_one_and_is_logged_once(file, authority, tmp_path, caplog):
    caplog.set_level("INFO")
    live = LiveSettings(file, every=0.0)
    first = live.current()
    (tmp_path / "tls.key").write_text("SECRET nonsense")
    for _ in range(5):
        assert live.current() is first
    (message,) = caplog.messages
    assert "the changed web files cannot be used, the former ones stay in use" in message
    assert "tls.crt" in message
    assert "SECRET" not in message
    (tmp_path / "tls.key").unlink()
    for _ in range(5):
        assert live.current() is first
    assert "cannot be read: No such file or directory" in caplog.messages[1]
    issue(authority, tmp_path)
    assert live.current() is not first
    assert caplog.messages[2:] == ["the changed web files are in use"]


@pytest.mark.parametrize("text", ["nonsense: 1\n", "[", "", "http_server_config: {}\n"])
def test_a_mistake_in_a_changed_file_keeps_the_former_settings(file, caplog, text):
    live = LiveSettings(file, every=0.0)
    first = live.current()
    file.write_text(text)
    for _ in range(3):
        assert live.current() is first
    (message,) = caplog.messages
    assert str(file) in message
    file.write_text(TLS)
    assert live.current().tls is not None


def test_what_is_done_otherwise_is_logged_once(file, caplog):
    live = LiveSettings(file, every=0.0)
    for burst in (20, 30):
        file.write_text(f"{TLS}rate_limit:\n  interval: 1s\n  burst: {burst}\n")
        live.current()
    (message,) = [text for text in caplog.messages if "rate_limit" in text]
    assert message == f"{file}:5: rate_limit has no effect: a response is made once and sent to everybody"


def test_at_the_start_a_mistake_is_an_error(file, tmp_path):
    (tmp_path / "tls.key").unlink()
    with pytest.raises(TlsError):
        LiveSettings(file)
    file.write_text("nonsense: 1\n")
    with pytest.raises(ConfigFileError):
        LiveSettings(file)
