"""Fixtures and options shared by every test."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# A machine that is busy with something else makes an example slow, not wrong.
settings.register_profile("gpugauge", deadline=None)
settings.load_profile("gpugauge")

CHROMIUM = (
    "--headless",
    "--no-sandbox",  # as root, which CI is, Chromium has no sandbox
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew instead of comparing")


@pytest.fixture
def golden(request):
    """Compares a text with a golden file, or writes the file when it was asked for."""

    def compare(text, path):
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path.name} is missing: run pytest --update-golden and look at what it writes"
        assert text.splitlines() == path.read_text(encoding="utf-8").splitlines()

    return compare


@pytest.fixture
def socket_path():
    """The path of a unix socket: it has at most 107 bytes (unix(7)), and pytest's own folders can be longer."""
    with tempfile.TemporaryDirectory(prefix="kubelet-") as folder:
        yield Path(folder) / "kubelet.sock"


class Browser:
    """Headless Chromium with an empty profile, started anew for each page."""

    def __init__(self, executable, profile):
        self._command = [executable, *CHROMIUM, f"--user-data-dir={profile}"]

    def dom(self, url):
        """The document as HTML after its scripts have run."""
        return self._run("--dump-dom", url)

    def messages(self, url):
        """What the browser logs about the page, such as violations of its policy."""
        return self._done("--enable-logging=stderr", "--dump-dom", url).stderr

    def screenshot(self, url, path, *, width=1280, height=900):
        """Write a PNG of the page."""
        self._run(f"--screenshot={path}", f"--window-size={width},{height}", url)

    def _run(self, *arguments):
        return self._done(*arguments).stdout

    def _done(self, *arguments):
        done = subprocess.run([*self._command, *arguments], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done


@pytest.fixture
def browser(tmp_path):
    """Chromium from PATH; where there is none the test is skipped. Tests that use it are marked `browser`."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.skip("no Chromium on PATH (Debian: apt-get install chromium)")
    return Browser(executable, tmp_path / "chromium")
