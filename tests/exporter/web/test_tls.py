"""TLS: unusable files are named, and clients are verified as configured."""

import http.client
import re
import socket
import ssl
import warnings
from dataclasses import replace

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from exporter.web.config_file import WebConfigFile
from exporter.web.tls import TlsError, TlsFiles, context, names_of
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
    with serving(web=WebConfigFile(files)) as server:
        assert get(server, trusting)[0] == 200


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
    with serving(web=WebConfigFile(strict)) as server:
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
    with warnings.catch_warnings(), serving(web=WebConfigFile(newest)) as server:
        trusting.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            get(server, trusting)


@pytest.mark.parametrize("name", ["scraper.monitoring", "192.0.2.7", "2001:db8::7", "ops@example.com"])
def test_only_certificates_for_an_allowed_name_are_let_in(files, authority, tmp_path, name):
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    tls = replace(files, client_ca=tmp_path / "ca.crt", client_auth=ssl.CERT_REQUIRED, allowed_sans=frozenset({name}))
    with serving(web=WebConfigFile(tls)) as server:
        for client, welcome in ((name, True), ("other.monitoring", False)):
            known = ssl.create_default_context()
            authority.configure_trust(known)
            authority.issue_cert(client).configure_cert(known)
            if welcome:
                assert get(server, known)[0] == 200
            else:
                with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
                    get(server, known)


def test_a_certificate_and_a_key_may_be_texts(files, trusting):
    inline = TlsFiles(files.certificate.read_text(), files.key.read_text())
    with serving(web=WebConfigFile(inline)) as server:
        assert get(server, trusting)[0] == 200


def test_a_text_that_is_no_key_is_an_error_that_does_not_quote_it(files):
    with pytest.raises(TlsError) as raised:
        context(TlsFiles(files.certificate, "SECRET"))
    assert "the text in the web configuration file" in str(raised.value)
    assert "SECRET" not in str(raised.value)


def negotiated(server, trusting):
    """What a client ends up with: version, cipher suite."""
    raw = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    with trusting.wrap_socket(raw, server_hostname="localhost") as secured:
        return secured.version(), secured.cipher()[0]


def test_only_the_configured_suites_and_versions_are_spoken(files, authority):
    suite = "ECDHE-ECDSA-AES128-GCM-SHA256"
    tls = replace(files, ciphers=suite, max_version=ssl.TLSVersion.TLSv1_2)
    with serving(web=WebConfigFile(tls)) as server:
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        assert negotiated(server, trusting) == ("TLSv1.2", suite)
        trusting.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            negotiated(server, trusting)


def test_only_the_configured_curve_is_spoken(files, authority):
    with serving(web=WebConfigFile(replace(files, curve="secp384r1"))) as server:
        for curve, welcome in (("secp384r1", True), ("prime256v1", False)):
            trusting = ssl.create_default_context()
            authority.configure_trust(trusting)
            trusting.set_ecdh_curve(curve)
            if welcome:
                assert negotiated(server, trusting)[0] == "TLSv1.3"
            else:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    negotiated(server, trusting)


def test_every_kind_of_name_in_a_certificate_counts():
    pairs = (("DNS", "a"), ("IP Address", "2001:DB8:0:0:0:0:0:7"), ("email", "ops@b"), ("URI", "spiffe://c/d"))
    assert names_of({"subjectAltName": pairs}) == {"a", "2001:db8::7", "ops@b", "spiffe://c/d"}
    assert names_of({}) == frozenset()
