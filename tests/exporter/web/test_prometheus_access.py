"""A real Prometheus scrapes the real node exporter through TLS, client certificates, passwords, and their rotation."""

import re
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager

import bcrypt
import pytest
import trustme

from tests.dashboards.prometheus import eventually, query, scraping
from tests.exporter.web.test_tls import issue
from tests.waiting import until

TLS = "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n"
REQUIRED = "  client_ca_file: ca.crt\n  client_auth_type: RequireAndVerifyClientCert\n"


@pytest.fixture
def folder(tmp_path):
    """A folder with an authority, the server's pair and a client's pair."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    issue(authority, tmp_path)
    client = authority.issue_cert("prometheus")
    client.cert_chain_pems[0].write_to_path(tmp_path / "client.crt")
    client.private_key_pem.write_to_path(tmp_path / "client.key")
    (tmp_path / "authority").write_text("")
    return tmp_path, authority


@contextmanager
def exporter(folder, web):
    """A node exporter of simulated GPUs; yields its port and that of its health endpoints."""
    (folder / "web.yml").write_text(web)
    flags = ("--source", "simulated", "--address", "127.0.0.1:0", "--health-address", "127.0.0.1:0")
    command = [sys.executable, "-m", "exporter", "node", *flags, "--web-config-file", str(folder / "web.yml")]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "--collect-interval", "1000"], stderr=output)
    try:
        found = until(lambda: re.search(r"serving on port (\d+), health on port (\d+)", log.read_text()))
        yield int(found[1]), int(found[2])
    finally:
        process.terminate()
        process.wait(60)


def up(base):
    return [float(each["value"][1]) for each in query(base, "query", query='up{job="gpugauge"}')] == [1.0]


def users(password):
    return f"basic_auth_users:\n  prometheus: {bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()}\n"


def secure(folder):
    return {"scheme": "https", "tls_config": {"ca_file": str(folder / "ca.crt"), "server_name": "localhost"}}


def certified(folder):
    access = secure(folder)
    access["tls_config"] |= {"cert_file": str(folder / "client.crt"), "key_file": str(folder / "client.key")}
    return access


def password(folder):
    (folder / "password").write_text("right")
    return {"basic_auth": {"username": "prometheus", "password_file": str(folder / "password")}}


@pytest.mark.prometheus
@pytest.mark.parametrize(
    ("web", "access"),
    [
        ("", lambda folder: {}),
        (users("right"), password),
        (TLS, secure),
        (TLS + users("right"), lambda folder: secure(folder) | password(folder)),
        (TLS + REQUIRED, certified),
        (TLS + REQUIRED + users("right"), lambda folder: certified(folder) | password(folder)),
    ],
    ids=["open", "password", "TLS", "TLS and password", "certificate", "certificate and password"],
)
def test_report_58_a_prometheus_with_the_right_access_scrapes_and_probes_need_none(folder, tmp_path, web, access):
    path, authority = folder
    (tmp_path / "prometheus").mkdir()
    with exporter(path, web) as (port, health):
        jobs, address = {"/metrics": {"job": "gpugauge"}}, f"127.0.0.1:{port}"
        with scraping(tmp_path / "prometheus", jobs, address, {}, access(path)) as base:
            eventually(lambda: up(base), "Prometheus has scraped")
            if web.startswith(TLS):
                issue(authority, path)
                scrapes = "count_over_time(up{job='gpugauge'}[1h]) > 6 and min_over_time(up{job='gpugauge'}[5s]) == 1"
                eventually(lambda: bool(query(base, "query", query=scrapes)), "Prometheus scrapes after the rotation")
        for probe in ("/health", "/livez", "/readyz"):
            with urllib.request.urlopen(f"http://127.0.0.1:{health}{probe}", timeout=60) as response:
                assert response.status == 200
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{health}/metrics", timeout=60)
    log = (path / "log").read_text()
    assert "right" not in log
    assert "$2b$" not in log


@pytest.mark.prometheus
@pytest.mark.parametrize(
    ("web", "access"),
    [
        (users("other"), password),
        (users("right"), lambda folder: {}),
        (TLS + REQUIRED, secure),
        (TLS, lambda folder: {}),
    ],
    ids=["wrong password", "no password", "no certificate", "no TLS"],
)
def test_a_prometheus_without_the_right_access_does_not_scrape(folder, tmp_path, web, access):
    path, _ = folder
    (tmp_path / "prometheus").mkdir()
    with exporter(path, web) as (port, _):
        jobs, address = {"/metrics": {"job": "gpugauge"}}, f"127.0.0.1:{port}"
        with scraping(tmp_path / "prometheus", jobs, address, {}, access(path)) as base:
            eventually(lambda: bool(query(base, "query", query='up{job="gpugauge"}')), "Prometheus has tried")
            assert not up(base)
