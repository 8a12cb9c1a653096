"""Draws docs/images: the demo's screen and a part of a page, from a stack that really runs."""

import re
import sys
import time
import urllib.request
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text

from demo.program import urls
from demo.receiver import WebhookReceiver
from demo.screen import draw
from demo.stack import Ports, Stack
from demo.view import look

IMAGES = Path("docs/images")
PATIENCE = 120.0
WANTED = (
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "gpugauge_allocation_info",
    "gpugauge_source_up",
    "gpugauge_build_info",
)
GPUS = ('gpu="4"', 'gpu="5"', 'gpu="7"')


def save(name: str, title: str, width: int, picture: RenderableType) -> None:
    """One SVG, without fonts from elsewhere."""
    console = Console(record=True, width=width, file=sys.stderr)
    console.print(picture)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title=title), flags=re.DOTALL)
    svg = re.sub(r"\s*<!--.*?-->", "", svg, flags=re.DOTALL)
    (IMAGES / name).write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")


def excerpt(page: str) -> Text:
    """Some lines of a page, enough to see how it speaks."""
    lines = [
        line
        for line in page.splitlines()
        if any(name in line for name in WANTED)
        and (line[0] == "#" or "gpu=" not in line or any(g in line for g in GPUS))
    ]
    text = Text("\n".join(lines), no_wrap=False)
    text.highlight_regex(r"(?m)^#.*$", "dim")
    text.highlight_regex(r"(?m)^(DCGM|gpugauge)_\w+", "bold cyan")
    text.highlight_regex(r'"[^"]*"', "green")
    return text


def main() -> None:
    """Run the demo's stack until both alerts stand, then draw."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    ports = Ports()
    with WebhookReceiver() as receiver, Stack(ports, receiver=receiver.url, say=print) as stack:
        end = time.monotonic() + PATIENCE
        while len(stack.alertmanager_api.alerts()) < 2 and time.monotonic() < end:  # noqa: PLR2004 - both
            time.sleep(1)
        time.sleep(2)
        save("demo.svg", "make demo", 150, draw(look(stack.prometheus_api, stack.alertmanager_api), urls(ports)))
        with urllib.request.urlopen(f"http://127.0.0.1:{ports.node}/metrics") as answer:
            save("page.svg", "curl http://127.0.0.1:9400/metrics", 150, excerpt(answer.read().decode()))


if __name__ == "__main__":
    main()
