"""`gpugauge demo`: starts the stack, shows it until Ctrl-C, and leaves nothing behind."""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from demo.processes import DemoError
from demo.receiver import WebhookReceiver
from demo.stack import Ports, Stack
from demo.view import Picture, lines, look

REFRESH_SECONDS = 2.0
LINES_SECONDS = 30.0

Show = Callable[[Picture], None]
Urls = Sequence[tuple[str, str]]


def run(arguments: argparse.Namespace) -> int:
    """Run until Ctrl-C, SIGTERM or `--seconds`; the exit code is 1 when something cannot run, with one sentence."""
    ports = Ports(arguments.prometheus_port, arguments.alertmanager_port, arguments.node_port, arguments.watcher_port)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs start with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    try:
        with WebhookReceiver() as receiver, Stack(ports, receiver=receiver.url, say=_say) as stack:
            _show(stack, ports, arguments.seconds)
    except KeyboardInterrupt:
        _say("ended; nothing is left running")
    except DemoError as error:
        sys.stderr.write(f"gpugauge demo: {error}\n")
        return 1
    return 0


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def _show(stack: Stack, ports: Ports, seconds: float) -> None:
    places = urls(ports)
    end = time.monotonic() + seconds if seconds else float("inf")
    pace = REFRESH_SECONDS if sys.stdout.isatty() else LINES_SECONDS
    with _screen(places) if sys.stdout.isatty() else _plain(places) as show:
        shown = 0
        while time.monotonic() < end:
            if (ended := stack.ended()) is not None:
                raise DemoError(ended)
            picture = _look(stack)
            if picture is not None and (sys.stdout.isatty() or len(picture.alerts) != shown or not shown):
                show(picture)
                shown = len(picture.alerts)
            time.sleep(min(pace if shown else REFRESH_SECONDS, max(end - time.monotonic(), 0)))


def _look(stack: Stack) -> Picture | None:
    try:
        picture = look(stack.prometheus_api, stack.alertmanager_api)
    except OSError:
        return None
    return picture if picture.gpus else None


def urls(ports: Ports) -> Urls:
    targets = ports.targets()
    return (
        ("Prometheus", f"http://127.0.0.1:{ports.prometheus}/alerts"),
        ("Alertmanager", f"http://127.0.0.1:{ports.alertmanager}"),
        *((f"node {name}", f"http://{address}/metrics") for name, address in targets.nodes.items()),
        ("watcher", f"http://{targets.watcher}/metrics"),
    )


@contextmanager
def _plain(places: Urls) -> Iterator[Show]:
    yield lambda picture: _say("\n".join(lines(picture, places)))


@contextmanager
def _screen(places: Urls) -> Iterator[Show]:
    from rich.live import Live  # noqa: PLC0415 - only the demo on a terminal needs it

    from demo.screen import draw  # noqa: PLC0415

    with Live(screen=False, auto_refresh=False) as live:
        yield lambda picture: live.update(draw(picture, places), refresh=True)
