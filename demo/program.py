"""Runs the demo: starts everything (`stack.py`) and shows GPUs and alerts on the terminal until Ctrl-C."""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from demo.processes import DemoError
from demo.receiver import WebhookReceiver
from demo.stack import Ports, Stack
from demo.view import DemoView, lines, read_view

REFRESH_SECONDS = 2.0
LINES_SECONDS = 30.0
"""How often the view is checked for something new to print where the output is not a terminal."""

Show = Callable[[DemoView], None]
Urls = Sequence[tuple[str, str]]
"""Name and address of everything to look at."""


def run(arguments: argparse.Namespace) -> int:
    """Run until Ctrl-C, SIGTERM or `--seconds`. Returns 1, after one message, when something cannot run."""
    ports = Ports(arguments.prometheus_port, arguments.alertmanager_port, arguments.node_port, arguments.watcher_port)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts background jobs with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    try:
        with WebhookReceiver() as receiver, Stack(ports, receiver=receiver.url, report=_print) as stack:
            _show(stack, ports, arguments.seconds)
    except KeyboardInterrupt:
        _print("ended; nothing is left running")
    except DemoError as error:
        sys.stderr.write(f"demo: {error}\n")
        return 1
    return 0


def _print(message: str) -> None:
    sys.stdout.write(f"{message}\n")
    sys.stdout.flush()


def _show(stack: Stack, ports: Ports, seconds: float) -> None:
    """Show the view every few seconds for so long, or until Ctrl-C with 0. Raises DemoError when a process ends."""
    terminal = sys.stdout.isatty()
    end = time.monotonic() + seconds if seconds else float("inf")
    pause = REFRESH_SECONDS if terminal else LINES_SECONDS
    with _screen(urls(ports)) if terminal else _plain(urls(ports)) as show:
        alerts_shown = 0
        while time.monotonic() < end:
            if (ended := stack.ended()) is not None:
                raise DemoError(ended)
            view = _view(stack)
            if view is not None and (terminal or len(view.alerts) != alerts_shown or not alerts_shown):
                show(view)
                alerts_shown = len(view.alerts)
            time.sleep(min(pause if alerts_shown else REFRESH_SECONDS, max(end - time.monotonic(), 0)))


def _view(stack: Stack) -> DemoView | None:
    """The present view; None while there is nothing to show yet."""
    try:
        view = read_view(stack.prometheus_api, stack.alertmanager_api)
    except OSError:
        return None
    return view if view.devices else None


def urls(ports: Ports) -> Urls:
    """What a user of the demo can open."""
    targets = ports.targets()
    return (
        ("Prometheus", f"http://127.0.0.1:{ports.prometheus}/alerts"),
        ("Alertmanager", f"http://127.0.0.1:{ports.alertmanager}"),
        *((f"node {name}", f"http://{address}/metrics") for name, address in targets.nodes.items()),
        ("watcher", f"http://{targets.watcher}/metrics"),
    )


@contextmanager
def _plain(addresses: Urls) -> Iterator[Show]:
    yield lambda view: _print("\n".join(lines(view, addresses)))


@contextmanager
def _screen(addresses: Urls) -> Iterator[Show]:
    from rich.live import Live  # noqa: PLC0415 - only the demo on a terminal needs it

    from demo.screen import draw  # noqa: PLC0415 - likewise

    with Live(screen=False, auto_refresh=False) as live:
        yield lambda view: live.update(draw(view, addresses), refresh=True)
