"""What a real Prometheus answered about the fleet of `fleet.py`, kept in a file for fast tests."""

import json
from pathlib import Path

from exporter.commands.prometheus.answer import PrometheusSample
from exporter.commands.report.fetch import PartAnswers
from exporter.commands.report.period import Part
from exporter.commands.report.prices import of_samples
from exporter.commands.report.receipt import ReceiptFacts
from exporter.commands.report.report import GpuReport

FILE = Path(__file__).parent / "recorded.json"


def write(found):
    """Keep the answers for some parts of the time."""
    parts = [
        {
            "start": each.part.start,
            "end": each.part.end,
            "answers": {
                name: [[dict(sorted(sample.labels.items())), round(sample.value, 6)] for sample in samples]
                for name, samples in each.answers.items()
            },
        }
        for each in found
    ]
    FILE.write_text(json.dumps(parts, separators=(",", ":")).replace("]],", "]],\n") + "\n", encoding="utf-8")


def parts():
    """The answers that were kept."""
    for each in json.loads(FILE.read_text(encoding="utf-8")):
        answers = {
            name: [PrometheusSample(labels, value) for labels, value in samples]
            for name, samples in each["answers"].items()
        }
        yield PartAnswers(Part(each["start"], each["end"]), answers)


def recorded_report():
    """The report of what was kept, and what a receipt needs besides."""
    found, facts = GpuReport(), ReceiptFacts()
    for each in parts():
        found.add(each, lambda _, answers: of_samples(answers["PRICES"]))
        facts.add(each)
    return found, facts
