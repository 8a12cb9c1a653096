"""The web configuration file is read like other exporters' ones, and a mistake in it is one message."""

import ssl

import pytest

from exporter.config import ConfigFileError
from exporter.web.config_file import WebConfigFile, load
from exporter.web.tls_section import SUITES


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
HASH = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG"


@pytest.mark.parametrize(
    ("auth", "mode"),
    [
        ("RequireAndVerifyClientCert", ssl.CERT_REQUIRED),
        ("RequireAnyClientCert", ssl.CERT_REQUIRED),
        ("RequireClientCert", ssl.CERT_REQUIRED),
        ("VerifyClientCertIfGiven", ssl.CERT_OPTIONAL),
    ],
)
def test_client_certificates_are_verified_as_configured_or_more_strictly(file, tmp_path, auth, mode):
    config = load(file(f"{PAIR}  client_ca_file: ca\n  client_auth_type: {auth}\n"))
    assert config.tls.client_auth is mode
    assert config.tls.client_ca == tmp_path / "ca"
    stricter = f"{tmp_path}/web.yml:5: client certificates are verified, as RequireAndVerifyClientCert says"
    assert config.warnings == ((stricter,) if auth in ("RequireAnyClientCert", "RequireClientCert") else ())


@pytest.mark.parametrize("ca", ["", "  client_ca_file: ca\n"])
def test_a_certificate_that_would_not_be_verified_is_not_asked_for(file, tmp_path, ca):
    config = load(file(f"{PAIR}  client_auth_type: RequestClientCert\n{ca}"))
    assert (config.tls.client_auth, config.tls.client_ca) == (ssl.CERT_NONE, None)
    said = "client certificates are not asked for, because they would not be verified"
    assert config.warnings == (f"{tmp_path}/web.yml:4: {said}",)


def test_versions_of_tls_are_those_of_the_file_and_at_least_1_2(file, tmp_path):
    tls = load(file(PAIR + "  min_version: TLS13\n  max_version: TLS13\n")).tls
    assert (tls.min_version, tls.max_version) == (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)
    config = load(file(PAIR + "  min_version: TLS10\n  max_version: TLS12\n"))
    assert (config.tls.min_version, config.tls.max_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)
    assert config.warnings == (f"{tmp_path}/web.yml:4: TLS before 1.2 is not served",)


def test_cipher_suites_and_curves_have_the_names_of_go(file, tmp_path):
    suites = "[TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]"
    order = "  prefer_server_cipher_suites: false\n  curve_preferences: [CurveP256, X25519]\n"
    config = load(file(f"{PAIR}  cipher_suites: {suites}\n{order}"))
    assert config.tls.ciphers == "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"
    assert config.tls.server_chooses is False
    assert config.tls.curve == "prime256v1"
    assert config.warnings == (f"{tmp_path}/web.yml:6: of the curves, only the first is used",)


def test_suites_of_tls_1_3_alone_leave_tls_1_3_alone(file):
    tls = load(file(PAIR + "  cipher_suites: [TLS_AES_128_GCM_SHA256]\n")).tls
    assert (tls.ciphers, tls.min_version) == (None, ssl.TLSVersion.TLSv1_3)


@pytest.mark.parametrize("suite", SUITES)
def test_every_known_suite_is_one_of_openssl(suite):
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(SUITES[suite])


def test_certificate_key_and_authority_may_be_in_the_file_itself(file):
    inline = "tls_server_config:\n  cert: |\n    CERT\n  key: |\n    KEY\n  client_ca: CA\n"
    tls = load(file(inline + "  client_auth_type: RequireAndVerifyClientCert\n")).tls
    assert (tls.certificate, tls.key, tls.client_ca) == ("CERT\n", "KEY\n", "CA")
    assert tls.paths() == ()


def test_names_of_clients_are_read(file):
    auth = "  client_ca_file: ca\n  client_auth_type: RequireAndVerifyClientCert\n"
    assert load(file(f"{PAIR}{auth}  client_allowed_sans: [a, b]\n")).tls.allowed_sans == {"a", "b"}


def test_users_have_bcrypt_hashes(file):
    assert load(file(f"basic_auth_users:\n  ann: {HASH}\n")).users == {"ann": HASH.encode()}


def test_a_rate_limit_is_accepted_and_has_no_effect(file, tmp_path):
    config = load(file("rate_limit:\n  interval: 1s\n  burst: 20\n"))
    assert config.warnings == (
        f"{tmp_path}/web.yml:2: rate_limit has no effect: a response is made once and sent to everybody",
    )


@pytest.mark.parametrize("http2", ["true", "false"])
def test_headers_are_read_and_http2_is_accepted(file, http2):
    given = load(file(f"http_server_config:\n  http2: {http2}\n  headers:\n    X-Frame-Options: deny\n"))
    assert given.headers == {"X-Frame-Options": "deny"}


KNOWN_KEYS = (
    "cert, key, client_ca, cert_file, key_file, client_auth_type, client_ca_file, client_allowed_sans, min_version, "
    "max_version, cipher_suites, prefer_server_cipher_suites, curve_preferences"
)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            "nonsense_config: {}\n",
            1,
            "nonsense_config: unknown key; known: tls_server_config, http_server_config, basic_auth_users, rate_limit",
        ),
        (
            "# c\nbasic_auth_users:\n  SECRET: SECRET\n",
            3,
            "basic_auth_users: a password must be a bcrypt hash, such as htpasswd -nB makes",
        ),
        (
            f"basic_auth_users:\n  SECRET: {HASH.replace('$10$', '$20$')}\n",
            2,
            "basic_auth_users: the cost of a bcrypt hash must be from 4 to 15",
        ),
        ("tls_server_config:\n  cert_file: a\n", 2, "tls_server_config: key_file is missing"),
        ("tls_server_config:\n  key_file: SECRET\n", 2, "tls_server_config: cert_file is missing"),
        (PAIR + "  key: SECRET\n", 3, "key_file: cannot be given beside key"),
        (PAIR + "  nonsense: [x]\n", 4, f"nonsense: unknown key; known: {KNOWN_KEYS}"),
        (
            PAIR + "  min_version: SSL30\n",
            4,
            'min_version: "SSL30" is not supported; choose from TLS10, TLS11, TLS12, TLS13',
        ),
        (PAIR + "  max_version: TLS11\n", 4, "max_version: TLS before 1.2 is not served"),
        (
            PAIR + "  client_auth_type: Maybe\n",
            4,
            (
                'client_auth_type: "Maybe" is not supported; choose from NoClientCert, RequestClientCert, '
                "RequireAnyClientCert, RequireClientCert, VerifyClientCertIfGiven, RequireAndVerifyClientCert"
            ),
        ),
        (
            PAIR + "  client_auth_type: RequireAndVerifyClientCert\n",
            4,
            "client_auth_type: needs client_ca_file, by which certificates are verified",
        ),
        (
            PAIR + "  client_ca_file: ca\n",
            4,
            "client_ca_file: has no effect without a client_auth_type that asks for a certificate",
        ),
        (
            PAIR + "  client_allowed_sans: [a]\n",
            4,
            "client_allowed_sans: needs a client_auth_type that requires a certificate",
        ),
        (
            PAIR + "  client_ca_file: ca\n  client_auth_type: RequireAndVerifyClientCert\n  client_allowed_sans: []\n",
            6,
            "client_allowed_sans: must name somebody",
        ),
        (
            PAIR + "  curve_preferences: [Curve25519]\n",
            4,
            ('curve_preferences: "Curve25519" is not supported; choose from CurveP256, CurveP384, CurveP521, X25519'),
        ),
        (PAIR + "  curve_preferences: X25519\n", 4, "curve_preferences: must be a list"),
        (PAIR + "  prefer_server_cipher_suites: 1\n", 4, "prefer_server_cipher_suites: must be true or false"),
        (PAIR + "  key_file: c\n", 4, "key_file: is given twice"),
        ("tls_server_config:\n  cert_file: [SECRET]\n  key_file: b\n", 2, "cert_file: must be a text"),
        ("tls_server_config:\n  cert_file:\n  key_file: b\n", 2, "cert_file: must be a text"),
        ('tls_server_config:\n  cert_file: ""\n  key_file: b\n', 2, "cert_file: must be the name of a file"),
        ("tls_server_config: SECRET\n", 1, "tls_server_config: must have keys and values"),
        ("[a, b]\n", 1, "file: must have keys and values"),
        ("http_server_config:\n  port: 1\n", 2, "port: unknown key; known: headers, http2"),
        ("http_server_config:\n  http2: maybe\n", 2, "http2: must be true or false"),
        ("rate_limit:\n  bursts: 1\n", 2, "bursts: unknown key; known: interval, burst"),
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
    with pytest.raises(ConfigFileError) as raised:
        load(path)
    assert str(raised.value) == f"{path}:{line}: {message}"
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize("text", ["a: [1\n", "a: b: c\n", "a:\n\t- b\n", "\x00", "a: 1\n---\nb: 2\n"])
def test_a_file_that_is_not_yaml_is_one_message_that_names_it(file, text):
    path = file(text)
    with pytest.raises(ConfigFileError, match=f"^{path}:[^\n]+$"):
        load(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigFileError, match=r"none\.yml: cannot be read: No such file or directory$"):
        load(tmp_path / "none.yml")
    (tmp_path / "latin.yml").write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigFileError, match=r"latin\.yml: is not UTF-8 text$"):
        load(tmp_path / "latin.yml")
