"""Writes docs/images (the demo's screen, a part of a `/metrics` response, a status page), from a demo that it runs.

Usage: python -m scripts.screenshots   (needs chromium on PATH)
"""

import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text

from demo.program import urls
from demo.receiver import WebhookReceiver
from demo.screen import draw
from demo.stack import Ports, Stack
from demo.view import read_view

IMAGES = Path("docs/images")
WIDTH = 150
ALERTS = 2
"""How many alerts the demo leads to."""
ALERTS_SECONDS = 120.0
METRICS = (
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "gpugauge_allocation_info",
    "gpugauge_source_up",
    "gpugauge_build_info",
)
STATUS_PAGE = 1200, 760
"""Width and height of the part of the page that is shown."""
GPUS = ('gpu="4"', 'gpu="5"', 'gpu="7"')


def save(name: str, title: str, drawing: RenderableType) -> None:
    """Write an SVG that loads no fonts from elsewhere."""
    console = Console(record=True, width=WIDTH, file=sys.stderr)
    console.print(drawing)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title=title), flags=re.DOTALL)
    svg = re.sub(r"\s*<!--.*?-->", "", svg, flags=re.DOTALL)
    (IMAGES / name).write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")


def photograph(name: str, url: str, width: int, height: int) -> None:
    """Write a PNG of the page at this address, of so many pixels."""
    with tempfile.TemporaryDirectory() as profile:
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        command += [f"--user-data-dir={profile}", f"--window-size={width},{height}", f"--screenshot={IMAGES / name}"]
        subprocess.run([*command, url], check=True, capture_output=True)


def excerpt(exposition: str) -> Text:
    """Highlight the lines of METRICS, and of devices only those of GPUS."""
    lines = [
        line
        for line in exposition.splitlines()
        if any(name in line for name in METRICS)
        and (line[0] == "#" or "gpu=" not in line or any(gpu in line for gpu in GPUS))
    ]
    text = Text("\n".join(lines), no_wrap=False)
    text.highlight_regex(r"(?m)^#.*$", "dim")
    text.highlight_regex(r"(?m)^(DCGM|gpugauge)_\w+", "bold cyan")
    text.highlight_regex(r'"[^"]*"', "green")
    return text


def main() -> None:
    """Run the demo's stack until both alerts fire, then draw."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    ports = Ports()
    with WebhookReceiver() as receiver, Stack(ports, receiver=receiver.url, report=print) as stack:
        end = time.monotonic() + ALERTS_SECONDS
        while len(stack.alertmanager_api.alerts()) < ALERTS and time.monotonic() < end:
            time.sleep(1)
        time.sleep(2)
        view = read_view(stack.prometheus_api, stack.alertmanager_api)
        save("demo.svg", "make demo", draw(view, urls(ports)))
        address = f"http://127.0.0.1:{ports.node}/metrics"
        with urllib.request.urlopen(address) as response:
            save("metrics.svg", f"curl {address}", excerpt(response.read().decode()))
        photograph("status.png", f"http://127.0.0.1:{ports.node}/", *STATUS_PAGE)


if __name__ == "__main__":
    main()
