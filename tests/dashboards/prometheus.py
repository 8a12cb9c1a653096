"""A Prometheus for one test module: it scrapes given expositions and evaluates the generated rules every second."""

import json
import re
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.alerts.promtool import tool

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/generated/rules"
GROWING = "GROWING"
"""In place of a value: it grows by 1 each second."""
LIMIT_SECONDS = 120
"""For every wait. What is waited for takes a few seconds on an idle machine; on a busy one it may take far longer."""
LISTENING = re.compile(r'"Listening on".*?address=127\.0\.0\.1:(\d+)')


@contextmanager
def serving(expositions: dict[str, str]) -> Iterator[str]:
    """Serve an exposition at each path, with counters that grow. Yields the address of the server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(expositions[self.path].replace(GROWING, f"{time.monotonic():.0f}").encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _settings(jobs: dict[str, dict[str, str]], address: str, access: dict[str, Any], seconds: int) -> str:
    """The configuration, as JSON, which is YAML too. `jobs`: labels of the scrape target, by path."""
    scrapes = [
        {
            "job_name": path.strip("/"),
            "metrics_path": path,
            "honor_labels": True,
            "static_configs": [{"targets": [address], "labels": labels}],
            "relabel_configs": [{"target_label": "job", "replacement": labels["job"]}],
            **access,
        }
        for path, labels in jobs.items()
    ]
    return json.dumps(
        {
            "global": {"scrape_interval": f"{seconds}s", "evaluation_interval": "1s"},
            "rule_files": ["rules/*.yaml"],
            "scrape_configs": scrapes,
        }
    )


def _write_rules(folder: Path, rules: dict[str, str]) -> None:
    """Write the generated rules, and `rules`, by file name, beside them or in place of them."""
    folder.mkdir()
    for path in RULES.rglob("*.yaml"):
        (folder / path.name).write_text(re.sub(r"interval: \d+s", "interval: 1s", path.read_text()))
    for name, text in rules.items():
        (folder / name).write_text(text)


@contextmanager
def prometheus(
    folder: Path,
    jobs: dict[str, dict[str, str]],
    expositions: dict[str, str],
    rules: dict[str, str],
    seconds: int = 1,
) -> Iterator[str]:
    """Run a Prometheus with the generated rules and these, which scrapes every few seconds. Yields its URL.

    A scrape that takes longer than that, as on a busy machine, ends all series until the next one.
    """
    with serving(expositions) as address, scraping(folder, jobs, address, rules, seconds=seconds) as url:
        yield url


@contextmanager
def scraping(
    folder: Path,
    jobs: dict[str, dict[str, str]],
    address: str,
    rules: dict[str, str],
    access: dict[str, Any] | None = None,
    seconds: int = 1,
) -> Iterator[str]:
    """Run a Prometheus that scrapes a running server, with the generated rules and these. Yields its URL.

    `access` are settings of its scrapes such as `scheme` and `tls_config`.
    """
    _write_rules(folder / "rules", rules)
    with running(folder, _settings(jobs, address, access or {}, seconds)) as url:
        yield url


@contextmanager
def running(folder: Path, settings: str) -> Iterator[str]:
    """Run a Prometheus with this configuration, in a folder that may not exist yet. Yields its URL."""
    folder.mkdir(exist_ok=True)
    log = folder / "log"
    with log.open("w") as output:
        (folder / "prometheus.yml").write_text(settings)
        command = [tool("prometheus"), f"--config.file={folder / 'prometheus.yml'}", "--web.listen-address=127.0.0.1:0"]
        command += [f"--storage.tsdb.path={folder / 'data'}"]
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            yield _started(process, log)
        finally:
            process.terminate()
            process.wait(timeout=LIMIT_SECONDS)


def _started(process: subprocess.Popen, log: Path) -> str:
    """Wait until Prometheus answers queries. Returns its URL, with the port that it logs: it chose a free one."""

    def listening() -> str | None:
        assert process.poll() is None, log.read_text()
        found = LISTENING.search(log.read_text())
        return f"http://127.0.0.1:{found[1]}" if found else None

    eventually(lambda: (url := listening()) is not None and ready(url), "Prometheus is ready")
    url = listening()
    assert url
    return url


def query(base: str, path: str, **parameters: str) -> list[dict]:
    """The result of a query. An error of Prometheus fails the test."""
    request = f"{base}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
            return json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        with error:
            raise AssertionError(f"{json.load(error)['error']}: {parameters['query']}") from None


def eventually(check: Callable[[], bool], what: str | Callable[[], str], seconds: float = LIMIT_SECONDS) -> None:
    """Wait until the check is true. Fails with `what` when it is not within the limit."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(0.2)


def ready(base: str) -> bool:
    """Whether queries are answered: before that Prometheus answers them with 503 and plain text."""
    try:
        with urllib.request.urlopen(f"{base}/-/ready", timeout=LIMIT_SECONDS) as answer:
            return answer.status == 200
    except OSError:
        return False
