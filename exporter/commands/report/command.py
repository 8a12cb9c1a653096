"""Runs `gpugauge report`: asks Prometheus part by part, adds up, and writes the form that was asked for."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from exporter.cluster.prices.price import PriceList
from exporter.cluster.prices.watch import load_prices
from exporter.commands.prometheus.access import access
from exporter.commands.prometheus.client import PrometheusClient, PrometheusError
from exporter.commands.report import receipt_queries
from exporter.commands.report.data import as_csv, as_focus, as_json
from exporter.commands.report.fetch import AnswerFile, Answers, Fetch, expressions
from exporter.commands.report.page import as_html
from exporter.commands.report.period import Part, parts
from exporter.commands.report.prices import DayPrices, of_file, of_samples
from exporter.commands.report.receipt import ReceiptFacts, receipt, receipt_facts, receipt_head, receipt_table
from exporter.commands.report.report import GpuReport
from exporter.commands.report.sections import ReportTable, head, notes, tables
from exporter.commands.report.text import as_text
from exporter.config import Arguments, ConfigError

Progress = Callable[[int], AbstractContextManager[Callable[[], None]]]
"""Shows how far so many queries are, while it is open; what it gives is called after each."""


@dataclass(frozen=True, slots=True)
class ReportTerminal:
    """Where the report is written to, and what a person sees meanwhile."""

    output: TextIO
    on_terminal: bool = False
    progress: Progress = lambda _: nullcontext(lambda: None)


def run(arguments: Arguments, clock: Callable[[], float], terminal: ReportTerminal) -> None:
    """Write the report, or the receipt of one workload. Raises ConfigError."""
    name = _name(arguments)
    _one_form(arguments)
    wanted = parts(getattr(arguments, "from"), arguments.to, clock(), arguments.days)
    prices = load_prices(Path(arguments.prices)) if arguments.prices else None
    found, facts = _asked(arguments, wanted, prices, terminal.progress, of_one=bool(name))
    problems = () if prices is None else prices.problems
    said = [*notes(found), *(f"A price is left out: {problem}" for problem in problems)]
    if name:
        _write_receipt(arguments, terminal, found, (facts, *name), said)
    else:
        _write(arguments, terminal, found, said)


def _name(arguments: Arguments) -> tuple[str, str] | None:
    if len(arguments.operands) > 1:
        raise ConfigError(f"report takes one NAMESPACE/WORKLOAD, and was given {' '.join(arguments.operands)}")
    if not arguments.operands:
        return None
    namespace, _, workload = arguments.operands[0].rpartition("/")
    if not namespace or not workload:
        raise ConfigError(f"report: {arguments.operands[0]!r} is not NAMESPACE/WORKLOAD")
    return namespace, workload


def _one_form(arguments: Arguments) -> None:
    forms = [name for name in ("json", "csv", "focus", "html") if getattr(arguments, name)]
    if len(forms) > 1:
        raise ConfigError(f"{' and '.join(f'--{name}' for name in forms)} cannot both be written")
    if arguments.operands and forms not in ([], ["json"]):
        raise ConfigError(f"the receipt of a workload is text or --json, not --{forms[0]}")
    if not arguments.prometheus:
        raise ConfigError("report needs --prometheus; see gpugauge report --help")


def _asked(
    arguments: Arguments, wanted: list[Part], prices: PriceList | None, progress: Progress, *, of_one: bool
) -> tuple[GpuReport, ReceiptFacts]:
    """Ask for every part. Raises ConfigError; what was answered until then is in the file of --resume."""
    asked = expressions() | (expressions(receipt_queries) if of_one else {})
    given = access(arguments)
    kept = AnswerFile(Path(arguments.resume) if arguments.resume else None, given.url)
    found, facts = GpuReport(), ReceiptFacts()

    def valid(part: Part, answers: Answers) -> DayPrices:
        return of_samples(answers["PRICES"]) if prices is None else of_file(prices.prices, part.start)

    try:
        with progress(len(wanted) * len(asked)) as advance, closing(PrometheusClient(given)) as client:
            for each in Fetch(client, arguments.cluster, kept, advance).all(wanted, asked):
                found.add(each, valid)
                if of_one:
                    facts.add(each)
    except PrometheusError as error:
        raise ConfigError(f"{error} ({_how_to_go_on(arguments.resume)})") from error
    return found, facts


def _how_to_go_on(file: str) -> str:
    if file:
        return f"the same command goes on where it was: the answers until then are in {file}"
    return "with --resume FILE the same command goes on where it was"


def _write(arguments: Arguments, terminal: ReportTerminal, found: GpuReport, said: list[str]) -> None:
    by, shown = arguments.by, tables(found, arguments.by, arguments.top)
    if arguments.json:
        terminal.output.write(as_json(found, by))
    elif arguments.csv:
        terminal.output.write(as_csv(found, by))
    elif arguments.focus:
        terminal.output.write(as_focus(found))
    elif arguments.html:
        terminal.output.write(as_html(found, head(found), shown, said))
    else:
        _write_tables(terminal, head(found), shown, said)


def _write_receipt(
    arguments: Arguments,
    terminal: ReportTerminal,
    found: GpuReport,
    about: tuple[ReceiptFacts, str, str],
    said: list[str],
) -> None:
    made = receipt(found, *about)
    if arguments.json:
        terminal.output.write(json.dumps({**receipt_facts(made), "notes": said}, indent=2) + "\n")
    else:
        _write_tables(terminal, receipt_head(made), [receipt_table(made)], said)


def _write_tables(terminal: ReportTerminal, first: list[str], shown: list[ReportTable], said: list[str]) -> None:
    if terminal.on_terminal:
        from exporter.commands.report.screen import draw  # noqa: PLC0415 - rich is loaded for a terminal alone

        draw(first, shown, said, terminal.output)
    else:
        terminal.output.write(as_text(first, shown, said))
