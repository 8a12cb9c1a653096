"""Runs the demo: starts everything (`stack.py`) and shows GPUs and alerts on the terminal until Ctrl-C."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from demo.parent import end_with_parent
from demo.processes import DemoError
from demo.receiver import WebhookReceiver
from demo.stack import Ports, Stack
from demo.view import DemoView, lines, read_view

REFRESH_SECONDS = 2.0
LINES_SECONDS = 30.0
"""How often the view is checked for something new to print where the output is not a terminal."""

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Show = Callable[[DemoView], None]
Urls = Sequence[tuple[str, str]]
"""Name and address of everything to look at."""


def run(arguments: argparse.Namespace) -> int:
    """Run until Ctrl-C, SIGTERM, `--seconds`, or the end of the terminal or of the parent process.

    Returns 1, after one message, when something cannot run.
    """
    ports = Ports(arguments.prometheus_port, arguments.alertmanager_port, arguments.node_port, arguments.watcher_port)
    _handle_signals()
    try:
        with WebhookReceiver() as receiver, Stack(ports, receiver=receiver.url, report=_print) as stack:
            _show(stack, ports, arguments.seconds)
    except KeyboardInterrupt:
        _print("ended; nothing is left running")
    except DemoError as error:
        sys.stderr.write(f"demo: {error}\n")
        return 1
    return 0


def _handle_signals() -> None:
    """End the demo at the first of these signals. Under nohup it outlives its terminal and its parent process."""
    for number in ENDING_SIGNALS:  # a shell starts background jobs with SIGINT ignored
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)
    if signal.getsignal(signal.SIGHUP) == _interrupt:
        end_with_parent(os.getppid())


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt once: the end of a terminal sends several signals, which must not interrupt the end."""
    for number in ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.write(stream.fileno(), b"")
        except OSError:  # a terminal that is gone: a message for it would be an error
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    raise KeyboardInterrupt


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
