"""Photographs a drawn dashboard in headless Chromium."""

import subprocess
import tempfile
from pathlib import Path

from tests.dashboards.renderer.page import Page

CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
LIMIT_SECONDS = 120


def photograph(page: Page, width: int, target: Path) -> None:
    """Write a PNG of the whole page."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(page.html, encoding="utf-8")
        command = [*CHROMIUM, f"--user-data-dir={folder}/profile", f"--window-size={width},{page.height}"]
        command += [f"--screenshot={target}", f"file://{source}"]
        subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_SECONDS)
