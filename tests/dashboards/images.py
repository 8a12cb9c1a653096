"""Draws every dashboard with the data of the demo, as docs/images/<uid>.png.

Usage: python -m tests.dashboards.images [UID …]   (needs chromium on PATH)
"""

import sys
import time
from pathlib import Path

from dashboards import DASHBOARDS
from dashboards.panels import render
from demo.receiver import WebhookReceiver
from demo.stack import HISTORY_SECONDS, Ports, Stack
from tests.dashboards.renderer.answers import Source, TimeRange
from tests.dashboards.renderer.page import draw
from tests.dashboards.renderer.screenshot import photograph

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WIDTH = 1440
PORTS = Ports(prometheus=29090, alertmanager=29093, node=29400, watcher=29410)
ALERTS = 2
"""How many alerts the demo leads to."""
ALERTS_SECONDS = 120.0
CHOICES = {"gpu-node": {"node": "gpu-a"}, "gpu-device": {"node": "gpu-b", "uuid": ".*"}}
"""Values of variables that are chosen on a dashboard; without them, it shows everything."""


def wait_for_alerts(stack):
    end = time.monotonic() + ALERTS_SECONDS
    while len(stack.alertmanager_api.alerts()) < ALERTS and time.monotonic() < end:
        time.sleep(1)
    time.sleep(15)  # what fires is in two evaluations


def main(wanted):
    with WebhookReceiver() as receiver, Stack(PORTS, receiver=receiver.url, report=print) as stack:
        wait_for_alerts(stack)
        now = time.time()
        times = TimeRange(now - HISTORY_SECONDS, now, step=60, rate=240)
        for each in DASHBOARDS:
            if not wanted or each.uid in wanted:
                source = Source(stack.prometheus_api.url, times, CHOICES.get(each.uid, {}))
                photograph(draw(render(each), source, WIDTH), WIDTH, IMAGES / f"{each.uid}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
