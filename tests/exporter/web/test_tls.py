"""TLS: changed files are used without a restart, and clients are verified as configured."""

import http.client
import re
import ssl
import warnings

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from exporter.web.tls import ReloadingCertificates, TlsError, TlsFiles, context
from tests.fakes.endpoints import serving


def issue(authority, folder, name="localhost"):
    """Write a new pair into the folder."""
    pair = authority.issue_cert(name, "127.0.0.1")
    for file, blob in (("tls.crt", pair.cert_chain_pems[0]), ("tls.key", pair.private_key_pem)):
        blob.write_to_path(folder / "new")
        (folder / "new").replace(folder / file)


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def files(authority, tmp_path):
    issue(authority, tmp_path)
    return TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key")


@pytest.fixture
def trusting(authority):
    made = ssl.create_default_context()
    authority.configure_trust(made)
    return made


def get(server, client_context):
    """The status, and the certificate that the server presented."""
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=client_context)
    try:
        connection.request("GET", "/health")
        presented = connection.sock.getpeercert(binary_form=True)
        response = connection.getresponse()
        response.read()
        return response.status, presented
    finally:
        connection.close()


def test_requests_are_served_over_tls(files, trusting):
    with serving(tls=files) as server:
        assert get(server, trusting)[0] == 200


def test_new_files_are_used_without_a_restart(files, authority, trusting, tmp_path):
    now = [0.0]
    certificates = ReloadingCertificates(files, clock=lambda: now[0])
    first = certificates.current()
    issue(authority, tmp_path)
    assert certificates.current() is first  # the files were checked a moment ago
    now[0] += 1.0
    second = certificates.current()
    assert second is not first
    now[0] += 1.0
    assert certificates.current() is second


def test_a_rotated_certificate_is_presented_to_new_connections(files, authority, trusting, tmp_path):
    with serving(tls=files) as server:
        server._pool.make_context.__self__._every = 0.0
        before = get(server, trusting)[1]
        assert get(server, trusting)[1] == before
        issue(authority, tmp_path)
        assert get(server, trusting)[1] != before


def test_a_broken_pair_keeps_the_former_one_and_is_logged_once(files, authority, tmp_path, caplog):
    caplog.set_level("INFO")
    certificates = ReloadingCertificates(files, every=0.0)
    first = certificates.current()
    (tmp_path / "tls.key").write_text("SECRET nonsense")
    for _ in range(5):
        assert certificates.current() is first
    (message,) = caplog.messages
    assert "the changed TLS files cannot be used, the former ones stay in use" in message
    assert "tls.crt" in message
    assert "SECRET" not in message
    (tmp_path / "tls.key").unlink()
    for _ in range(5):
        assert certificates.current() is first
    assert "cannot be read: No such file or directory" in caplog.messages[1]
    issue(authority, tmp_path)
    assert certificates.current() is not first
    assert caplog.messages[2:] == ["the changed TLS files are in use"]


def test_certificate_and_key_that_do_not_belong_together_are_rejected(files, authority, tmp_path):
    authority.issue_cert("other").private_key_pem.write_to_path(tmp_path / "tls.key")
    with pytest.raises(TlsError, match=r'tls\.crt" with ".*tls\.key" cannot be used for TLS: KEY_VALUES_MISMATCH$'):
        context(files)


def test_an_encrypted_key_is_rejected_without_asking_on_the_terminal(files, tmp_path):
    key = load_pem_private_key((tmp_path / "tls.key").read_bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pw"))
    (tmp_path / "tls.key").write_bytes(locked)
    with pytest.raises(TlsError, match="cannot be used for TLS"):
        context(files)


@pytest.mark.parametrize("missing", ["tls.crt", "tls.key"])
def test_a_missing_file_is_named(files, tmp_path, missing):
    (tmp_path / missing).unlink()
    with pytest.raises(TlsError, match=rf'{re.escape(missing)}" cannot be read: No such file or directory$'):
        context(files)


def test_a_client_certificate_is_required_and_verified(files, authority, trusting, tmp_path):
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    strict = TlsFiles(files.certificate, files.key, tmp_path / "ca.crt", ssl.CERT_REQUIRED)
    with serving(tls=strict) as server:
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            get(server, trusting)
        stranger = ssl.create_default_context()
        authority.configure_trust(stranger)
        trustme.CA().issue_cert("client@x").configure_cert(stranger)
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            get(server, stranger)
        authority.issue_cert("client@x").configure_cert(trusting)
        assert get(server, trusting)[0] == 200


def test_old_protocol_versions_are_rejected(files, trusting):
    newest = TlsFiles(files.certificate, files.key, min_version=ssl.TLSVersion.TLSv1_3)
    with warnings.catch_warnings(), serving(tls=newest) as server:
        trusting.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            get(server, trusting)
