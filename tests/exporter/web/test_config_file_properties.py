"""Whatever is in the web configuration file: it is read as what it says, or is one message that has no secret in it."""

import tempfile
from contextlib import suppress
from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import strategies as st

from exporter.config import ConfigFileError
from exporter.web.config_file import SECTIONS, WebConfigFile, load

SECRET = "s3cr3t-w0rd"
HEADERS = ("Content-Security-Policy", "Strict-Transport-Security", "X-Frame-Options")
OF_TLS = (
    "cert", "key", "client_ca", "cert_file", "key_file", "client_auth_type", "client_ca_file", "client_allowed_sans",
    "min_version", "max_version", "cipher_suites", "prefer_server_cipher_suites", "curve_preferences",
)  # fmt: skip
keys = st.sampled_from([*SECTIONS, *OF_TLS, *HEADERS, "headers", "http2", "interval", "burst"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just(SECRET))
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=8,
)
hashes = st.integers(4, 15).map(lambda cost: f"$2y${cost:02}$" + "a" * 53)
names = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)
header_values = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)


def check_message(message, path):
    assert message.startswith(str(path))
    assert len(message.splitlines()) == 1
    assert SECRET not in message


def loaded(content):
    """What the file says. A ConfigFileError must be one line that begins with the path; nothing else may be raised."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "web.yml"
        path.write_bytes(content)
        try:
            return load(path)
        except ConfigFileError as error:
            check_message(str(error), path)
            raise


@given(st.binary(max_size=200))
def test_no_bytes_make_reading_fail_otherwise(content):
    with suppress(ConfigFileError):
        assert isinstance(loaded(content), WebConfigFile)


@given(trees)
def test_no_tree_of_known_keys_makes_reading_fail_otherwise(tree):
    with suppress(ConfigFileError):
        assert isinstance(loaded(yaml.safe_dump(tree).encode()), WebConfigFile)


@given(st.dictionaries(names, hashes, max_size=4), st.dictionaries(st.sampled_from(HEADERS), header_values))
def test_users_and_headers_are_those_of_the_file(users, headers):
    document = {"basic_auth_users": users, "http_server_config": {"headers": headers}}
    found = loaded(yaml.safe_dump(document).encode())
    assert found.users == {name: value.encode() for name, value in users.items()}
    assert found.headers == headers
    assert found.warnings == ()
