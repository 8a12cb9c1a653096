"""Reads the section `tls_server_config` of a web configuration file into `TlsFiles`."""

import ssl
from typing import Any

from exporter.config_node import ConfigNode
from exporter.web.tls import Pem, TlsFiles

_CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "RequestClientCert": ssl.CERT_NONE,  # such a certificate would not be verified, so it is not asked for
    "RequireAnyClientCert": ssl.CERT_REQUIRED,
    "RequireClientCert": ssl.CERT_REQUIRED,  # the older name of RequireAnyClientCert
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_UNVERIFIED = ("RequireAnyClientCert", "RequireClientCert")
"""Any certificate will do there, which Python's ssl module cannot ask for."""
_VERSIONS = {
    "TLS10": ssl.TLSVersion.TLSv1,
    "TLS11": ssl.TLSVersion.TLSv1_1,
    "TLS12": ssl.TLSVersion.TLSv1_2,
    "TLS13": ssl.TLSVersion.TLSv1_3,
}
_CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}
"""OpenSSL's names of the curves."""
_TLS13_SUITES = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""They are always on, in Go as here."""
SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}
"""Go's names of the suites of TLS 1.2, as the file has them, and OpenSSL's."""
_KEYS = (
    "cert",
    "key",
    "client_ca",
    "cert_file",
    "key_file",
    "client_auth_type",
    "client_ca_file",
    "client_allowed_sans",
    "min_version",
    "max_version",
    "cipher_suites",
    "prefer_server_cipher_suites",
    "curve_preferences",
)


def tls_files(section: ConfigNode, warnings: list[str]) -> TlsFiles | None:
    """Read the section; None where it is empty. Adds to `warnings` what is done otherwise. Raises ConfigFileError."""
    given: dict[str, ConfigNode] = {}
    for entry in section.entries():
        if entry.key not in _KEYS:
            raise entry.error(f"unknown key; known: {', '.join(_KEYS)}")
        given[entry.key] = entry
    if not given:
        return None
    certificate, key = _pem(section, given, "cert"), _pem(section, given, "key")
    client_ca = _pem(section, given, "client_ca", optional=True)
    lowest = _version(given, "min_version", "TLS12", warnings)
    ciphers = _cipher_suites(given)
    return TlsFiles(
        certificate,  # type: ignore[arg-type] # it is not optional
        key,  # type: ignore[arg-type] # likewise
        client_ca if (auth := _client_auth(given, warnings)) is not ssl.CERT_NONE else None,
        auth,
        # Suites of TLS 1.3 alone leave no suite for TLS 1.2.
        ssl.TLSVersion.TLSv1_3 if ciphers == "" else lowest,
        _version(given, "max_version", "TLS13", warnings),
        ciphers or None,
        _curve(given, warnings),
        _server_chooses(given),
        _allowed_sans(given, auth),
    )


def _pem(section: ConfigNode, given: dict[str, ConfigNode], key: str, *, optional: bool = False) -> Pem | None:
    """A certificate or key: a file, or a text in the web configuration file itself."""
    inline, file = given.get(key), given.get(f"{key}_file")
    if inline is not None and file is not None:
        raise file.error(f"cannot be given beside {key}")
    if inline is not None:
        return inline.text()
    if file is None:
        if optional:
            return None
        raise section.error(f"{key}_file is missing")
    if not file.text():
        raise file.error("must be the name of a file")
    return file.path.parent / file.text()


def _client_auth(given: dict[str, ConfigNode], warnings: list[str]) -> ssl.VerifyMode:
    """Raises ConfigFileError for a client CA that is not used, and for verification without one.

    Both look safer than they are.
    """
    entry = given.get("client_auth_type")
    ca = given.get("client_ca") or given.get("client_ca_file")
    mode: ssl.VerifyMode = _one_of(entry, _CLIENT_AUTH, "NoClientCert")
    if entry is None or entry.text() == "NoClientCert":
        if ca is not None:
            raise ca.error("has no effect without a client_auth_type that asks for a certificate")
        return mode
    if mode is not ssl.CERT_NONE and ca is None:
        raise entry.error("needs client_ca_file, by which certificates are verified")
    if entry.text() in _UNVERIFIED:
        warnings.append(f"{entry.place}: client certificates are verified, as RequireAndVerifyClientCert says")
    elif mode is ssl.CERT_NONE:
        warnings.append(f"{entry.place}: client certificates are not asked for, because they would not be verified")
    return mode


def _version(given: dict[str, ConfigNode], key: str, default: str, warnings: list[str]) -> ssl.TLSVersion:
    entry = given.get(key)
    version: ssl.TLSVersion = _one_of(entry, _VERSIONS, default)
    if entry is None or version >= ssl.TLSVersion.TLSv1_2:
        return version
    if key == "max_version":
        raise entry.error("TLS before 1.2 is not served")
    warnings.append(f"{entry.place}: TLS before 1.2 is not served")
    return ssl.TLSVersion.TLSv1_2


def _cipher_suites(given: dict[str, ConfigNode]) -> str | None:
    """OpenSSL's list of the suites of TLS 1.2: None where none is given, empty where only those of TLS 1.3 are."""
    entry = given.get("cipher_suites")
    items = list(entry.items()) if entry else []
    if not items:
        return None
    return ":".join(_one_of(item, SUITES, "") for item in items if item.text() not in _TLS13_SUITES)


def _curve(given: dict[str, ConfigNode], warnings: list[str]) -> str | None:
    entry = given.get("curve_preferences")
    curves = [_one_of(item, _CURVES, "") for item in entry.items()] if entry else []
    if entry is None or not curves:
        return None
    if len(curves) > 1:  # Python (3.14) can set one
        warnings.append(f"{entry.place}: of the curves, only the first is used")
    return str(curves[0])


def _server_chooses(given: dict[str, ConfigNode]) -> bool:
    entry = given.get("prefer_server_cipher_suites")
    return entry.boolean() if entry else True


def _allowed_sans(given: dict[str, ConfigNode], auth: ssl.VerifyMode) -> frozenset[str]:
    entry = given.get("client_allowed_sans")
    if entry is None:
        return frozenset()
    if auth is not ssl.CERT_REQUIRED:
        raise entry.error("needs a client_auth_type that requires a certificate")
    names = frozenset(item.text() for item in entry.items())
    if not names:
        raise entry.error("must name somebody")
    return names


def _one_of(entry: ConfigNode | None, choices: dict[str, Any], default: str) -> Any:
    if entry is None:
        return choices[default]
    try:
        return choices[entry.text()]
    except KeyError:
        raise entry.error(f'"{entry.text()}" is not supported; choose from {", ".join(choices)}') from None
