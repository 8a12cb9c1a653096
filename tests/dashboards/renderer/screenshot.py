"""Photographs a drawn dashboard in headless Chromium."""

import subprocess
import tempfile
from pathlib import Path

from tests.dashboards.renderer.page import Page
from tests.dashboards.renderer.small_png import smaller

CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
LIMIT_SECONDS = 120


def photograph(page: Page, width: int, target: Path) -> None:
    """Write a PNG of the whole page, with a palette."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(page.html, encoding="utf-8")
        command = [*CHROMIUM, f"--user-data-dir={folder}/profile", f"--window-size={width},{page.height}"]
        drawn = Path(folder) / "page.png"
        command += [f"--screenshot={drawn}", f"file://{source}"]
        subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_SECONDS)
        target.write_bytes(smaller(drawn.read_bytes()))
