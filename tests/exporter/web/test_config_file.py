"""The web configuration file is read like other exporters' ones, and a mistake in it is one message."""

import ssl

import pytest

from exporter.web.config_file import WebConfigError, WebConfigFile, load


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "web.yml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}\n", "tls_server_config:\n", "http_server_config: {}\n"])
def test_an_empty_file_or_section_configures_nothing(file, text):
    assert load(file(text)) == WebConfigFile()


def test_tls_files_are_found_beside_the_web_configuration(file, tmp_path):
    tls = load(file("tls_server_config:\n  cert_file: tls/a.crt\n  key_file: /keys/a.key\n")).tls
    assert tls.certificate == tmp_path / "tls" / "a.crt"
    assert str(tls.key) == "/keys/a.key"
    assert tls.client_ca is None
    assert tls.client_auth is ssl.CERT_NONE
    assert tls.min_version is ssl.TLSVersion.TLSv1_2


PAIR = "tls_server_config:\n  cert_file: a\n  key_file: b\n"


@pytest.mark.parametrize(
    ("auth", "mode"),
    [("RequireAndVerifyClientCert", ssl.CERT_REQUIRED), ("VerifyClientCertIfGiven", ssl.CERT_OPTIONAL)],
)
def test_client_certificates_are_verified_as_configured(file, tmp_path, auth, mode):
    tls = load(file(f"{PAIR}  client_ca_file: ca\n  client_auth_type: {auth}\n")).tls
    assert tls.client_auth is mode
    assert tls.client_ca == tmp_path / "ca"


def test_tls_1_3_can_be_required(file):
    assert load(file(PAIR + "  min_version: TLS13\n")).tls.min_version is ssl.TLSVersion.TLSv1_3


def test_headers_are_read(file):
    given = load(file("http_server_config:\n  http2: false\n  headers:\n    X-Frame-Options: deny\n"))
    assert given.headers == {"X-Frame-Options": "deny"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("nonsense_config: {}\n", 1, "nonsense_config: unknown key; known: tls_server_config, http_server_config"),
        (
            "# c\nbasic_auth_users:\n  admin: $2y$10$SECRETSECRET\n",
            3,
            "basic_auth_users: passwords are not supported: use client certificates (client_auth_type)",
        ),
        ("tls_server_config:\n  cert_file: a\n", 2, "tls_server_config: key_file is missing"),
        ("tls_server_config:\n  key_file: SECRET\n", 2, "tls_server_config: cert_file is missing"),
        (
            PAIR + "  client_allowed_sans: [x]\n",
            4,
            (
                "client_allowed_sans: not supported; supported here: cert_file, key_file, client_ca_file, "
                "client_auth_type, min_version"
            ),
        ),
        (PAIR + "  min_version: TLS10\n", 4, 'min_version: "TLS10" is not supported; choose from TLS12, TLS13'),
        (
            PAIR + "  client_auth_type: RequireAnyClientCert\n",
            4,
            (
                'client_auth_type: "RequireAnyClientCert" is not supported; choose from NoClientCert, '
                "RequestClientCert, VerifyClientCertIfGiven, RequireAndVerifyClientCert"
            ),
        ),
        (
            PAIR + "  client_auth_type: RequireAndVerifyClientCert\n",
            4,
            "client_auth_type: needs client_ca_file",
        ),
        (
            PAIR + "  client_ca_file: ca\n",
            4,
            "client_ca_file: has no effect without a client_auth_type that verifies",
        ),
        (PAIR + "  key_file: c\n", 4, "key_file: is given twice"),
        ("tls_server_config:\n  cert_file: [SECRET]\n  key_file: b\n", 2, "cert_file: must be a text"),
        ("tls_server_config:\n  cert_file:\n  key_file: b\n", 2, "cert_file: must be a text"),
        ('tls_server_config:\n  cert_file: ""\n  key_file: b\n', 2, "cert_file: must be the name of a file"),
        ("tls_server_config: SECRET\n", 1, "tls_server_config: must have keys and values"),
        ("[a, b]\n", 1, "file: must have keys and values"),
        ("http_server_config:\n  port: 1\n", 2, "port: unknown key; known: headers, http2"),
        (
            "http_server_config:\n  headers:\n    X-Powered-By: SECRET\n",
            3,
            (
                "X-Powered-By: not a header that may be set; choose from Content-Security-Policy, "
                "Strict-Transport-Security, X-Content-Type-Options, X-Frame-Options, X-XSS-Protection"
            ),
        ),
        (
            'http_server_config:\n  headers:\n    X-Frame-Options: "a\\r\\nSECRET: b"\n',
            3,
            "X-Frame-Options: must be one line of printable ASCII",
        ),
    ],
)
def test_a_message_names_file_line_and_key_but_no_value_of_the_operator(file, text, line, message):
    path = file(text)
    with pytest.raises(WebConfigError) as raised:
        load(path)
    assert str(raised.value) == f"{path}:{line}: {message}"
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize("text", ["a: [1\n", "a: b: c\n", "a:\n\t- b\n", "\x00", "a: 1\n---\nb: 2\n"])
def test_a_file_that_is_not_yaml_is_one_message_that_names_it(file, text):
    path = file(text)
    with pytest.raises(WebConfigError, match=f"^{path}:[^\n]+$"):
        load(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(WebConfigError, match=r"none\.yml: cannot be read: No such file or directory$"):
        load(tmp_path / "none.yml")
    (tmp_path / "latin.yml").write_bytes(b"a: \xff\n")
    with pytest.raises(WebConfigError, match=r"latin\.yml: is not UTF-8 text$"):
        load(tmp_path / "latin.yml")
