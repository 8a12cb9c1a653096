"""A Prometheus of the test's own, that scrapes given pages and evaluates the generated rules every second."""

import json
import os
import shutil
import socket
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

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/generated/rules"


def tool(name: str) -> str:
    found = shutil.which(name, path=f"{ROOT / '.cache/tools/bin'}{os.pathsep}{os.environ.get('PATH', '')}")
    assert found, f"{name} is neither in .cache/tools/bin nor on PATH: run `make setup`"
    return found


@contextmanager
def serving(pages: dict[str, str]) -> Iterator[str]:
    """An HTTP server with a page at each path; gives its address."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(pages[self.path].encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _settings(jobs: dict[str, dict[str, str]], address: str) -> str:
    """`jobs`: path of the page to the target's labels. Written as JSON, which is YAML too."""
    scrapes = [
        {
            "job_name": path.strip("/"),
            "metrics_path": path,
            "honor_labels": True,
            "static_configs": [{"targets": [address], "labels": labels}],
            "relabel_configs": [{"target_label": "job", "replacement": labels["job"]}],
        }
        for path, labels in jobs.items()
    ]
    return json.dumps(
        {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules/*.yaml"],
            "scrape_configs": scrapes,
        }
    )


@contextmanager
def prometheus(folder: Path, jobs: dict[str, dict[str, str]], pages: dict[str, str], more_rules: str) -> Iterator[str]:
    """A running Prometheus; gives its base address."""
    (folder / "rules").mkdir()
    for path in RULES.glob("*.yaml"):
        (folder / "rules" / path.name).write_text(path.read_text().replace("interval: 30s", "interval: 1s"))
    (folder / "rules" / "more.yaml").write_text(more_rules)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    with serving(pages) as address, (folder / "log").open("w") as log:
        (folder / "prometheus.yml").write_text(_settings(jobs, address))
        command = [tool("prometheus"), f"--config.file={folder / 'prometheus.yml'}", f"--web.listen-address={listen}"]
        command += [f"--storage.tsdb.path={folder / 'data'}"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            eventually(lambda: ready(f"http://{listen}"), "Prometheus is ready")
            yield f"http://{listen}"
        finally:
            process.terminate()
            process.wait(timeout=20)


def query(base: str, path: str, **parameters: str) -> list[dict]:
    """The result of a query; an error of Prometheus is the test's."""
    request = f"{base}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        with error:
            raise AssertionError(f"{json.load(error)['error']}: {parameters['query']}") from None


def eventually(check: Callable[[], bool], what: str, seconds: float = 40) -> None:
    """Polls until the check holds."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.2)


def ready(base: str) -> bool:
    """Whether queries are answered; before that even a query is met with plain text and 503."""
    try:
        with urllib.request.urlopen(f"{base}/-/ready", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False
