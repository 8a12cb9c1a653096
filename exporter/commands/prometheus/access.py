"""Where Prometheus is and what it accepts as proof: the flags, and the files that they name."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import urllib3

from exporter import regular_file
from exporter.config import Arguments, ConfigError
from exporter.duration import parse_duration
from exporter.regular_file import UnreadableFileError

_MAX_SECRET_BYTES = 64 << 10
_API = "/api/v1"
_HEADER_TEXT = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")


@dataclass(frozen=True, slots=True)
class PrometheusAccess:
    """An address, and how it is asked."""

    url: str
    """With the prefix under which the API is, such as `/prometheus`; without `/api/v1` and a slash at the end."""
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    """What proves who asks, and for which tenant. Never shown."""
    ca_file: str | None = None
    timeout_seconds: float = 60.0


def access(arguments: Arguments) -> PrometheusAccess:
    """Read the flags and the files that they name. Raises ConfigError."""
    return PrometheusAccess(
        _url(arguments.prometheus),
        _headers(arguments),
        _ca_file(arguments.prometheus_ca_file),
        _seconds(arguments.prometheus_timeout),
    )


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname is not None and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"--prometheus: {_without_password(text)!r} is not an address such as http://prometheus:9090")
    if "@" in parts.netloc:
        raise ConfigError("--prometheus: a password belongs into a file, which --prometheus-basic-auth-file names")
    if parts.query or parts.fragment:
        raise ConfigError(f"--prometheus: {text.partition('?')[0]} is followed by a query or a fragment")
    return text.rstrip("/").removesuffix(_API)


def _without_password(text: str) -> str:
    return re.sub(r"//[^/@]*@", "//", text)


def _headers(arguments: Arguments) -> dict[str, str]:
    bearer, basic = arguments.prometheus_bearer_token_file, arguments.prometheus_basic_auth_file
    if bearer and basic:
        raise ConfigError("--prometheus-bearer-token-file and --prometheus-basic-auth-file cannot both be used")
    headers: dict[str, str] = {}
    if bearer:
        headers["authorization"] = f"Bearer {_secret('--prometheus-bearer-token-file', bearer)}"
    if basic:
        user = _secret("--prometheus-basic-auth-file", basic)
        if ":" not in user:
            raise ConfigError(f"--prometheus-basic-auth-file: {basic} has no line with user:password")
        headers.update(urllib3.make_headers(basic_auth=user))
    if arguments.prometheus_tenant:
        if not _HEADER_TEXT.fullmatch(arguments.prometheus_tenant):
            raise ConfigError(f"--prometheus-tenant: {arguments.prometheus_tenant!r} cannot be sent in a header")
        headers["x-scope-orgid"] = arguments.prometheus_tenant
    return headers


def _secret(flag: str, name: str) -> str:
    """The only line of a file. Raises ConfigError, which never has the content."""
    try:
        text = regular_file.read(Path(name), _MAX_SECRET_BYTES).decode("latin-1").strip()
    except UnreadableFileError as error:
        raise ConfigError(f"{flag}: {name} cannot be read: {error}") from None
    if not _HEADER_TEXT.fullmatch(text):
        raise ConfigError(f"{flag}: {name} is not one line of text")
    return text


def _ca_file(name: str) -> str | None:
    if name and not Path(name).is_file():
        raise ConfigError(f"--prometheus-ca-file: {name} is no file")
    return name or None


def _seconds(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"--prometheus-timeout: {error}") from None
    if seconds <= 0:
        raise ConfigError(f"--prometheus-timeout: {text} is not longer than 0s")
    return seconds
