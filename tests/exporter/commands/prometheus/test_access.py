"""How Prometheus is named on the command line, and what the files beside it must have."""

import pytest

from exporter.commands.prometheus.access import access
from exporter.config import Arguments, ConfigError
from exporter.flags.prometheus import PROMETHEUS

DEFAULTS = {flag.name.replace("-", "_"): flag.default for flag in PROMETHEUS}
SECRET = "hunter2"


def given(**values):
    return access(Arguments(**{**DEFAULTS, "prometheus": "http://p:9090", **values}))


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://p:9090", "http://p:9090"),
        ("http://p:9090/", "http://p:9090"),
        ("https://mimir/prometheus/", "https://mimir/prometheus"),
        ("https://thanos/api/v1", "https://thanos"),
        ("http://[::1]:9090/x/api/v1/", "http://[::1]:9090/x"),
    ],
)
def test_an_address_keeps_its_prefix(text, url):
    assert given(prometheus=text).url == url


@pytest.mark.parametrize("text", ["p:9090", "ftp://p", "http://", "http://p:x", "http://[::1", f"ftp://u:{SECRET}@p"])
def test_what_is_no_address_is_one_message(text):
    with pytest.raises(ConfigError, match=r"--prometheus: .* is not an address such as") as raised:
        given(prometheus=text)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("text", [f"http://u:{SECRET}@p", "http://p?x=1", "http://p#x"])
def test_secrets_and_queries_in_an_address_are_rejected(text):
    with pytest.raises(ConfigError) as raised:
        given(prometheus=text)
    assert SECRET not in str(raised.value)


def test_credentials_are_read_from_files(tmp_path):
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    assert given(prometheus_bearer_token_file=str(file)).headers == {"authorization": f"Bearer {SECRET}"}
    file.write_text(f"user:{SECRET}\n")
    found = given(prometheus_basic_auth_file=str(file), prometheus_tenant="a|b")
    assert found.headers == {"authorization": "Basic dXNlcjpodW50ZXIy", "x-scope-orgid": "a|b"}
    assert SECRET not in repr(found)
    assert "Basic" not in repr(found)


@pytest.mark.parametrize("content", ["", "two\nlines", "tab\tin", "ünï"])
def test_a_file_without_one_line_is_named_and_not_shown(tmp_path, content):
    file = tmp_path / "secret"
    file.write_text(content)
    with pytest.raises(ConfigError) as raised:
        given(prometheus_bearer_token_file=str(file))
    assert str(raised.value) == f"--prometheus-bearer-token-file: {file} is not one line of text"


def test_other_mistakes_name_their_flag(tmp_path):
    file = tmp_path / "secret"
    file.write_text(SECRET)
    for values, text in (
        ({"prometheus_basic_auth_file": str(file)}, "has no line with user:password"),
        ({"prometheus_bearer_token_file": str(tmp_path)}, "cannot be read: it is a directory"),
        ({"prometheus_bearer_token_file": "a", "prometheus_basic_auth_file": "b"}, "cannot both be used"),
        ({"prometheus_ca_file": "/nowhere"}, "--prometheus-ca-file: /nowhere is no file"),
        ({"prometheus_timeout": "soon"}, "--prometheus-timeout: 'soon' is not a duration"),
        ({"prometheus_timeout": "0s"}, "--prometheus-timeout: 0s is not longer than 0s"),
        ({"prometheus_tenant": "a\nb"}, "--prometheus-tenant: 'a\\nb' cannot be sent in a header"),
    ):
        with pytest.raises(ConfigError) as raised:
            given(**values)
        assert text in str(raised.value)
        assert SECRET not in str(raised.value)
