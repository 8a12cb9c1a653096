"""docs/compatibility.md: `compare --uses` says of every public consumer what the table says, and nothing after that.

What each consumer needs is tested on a real Prometheus in test_public_consumers.py.
"""

import re
from functools import cache
from pathlib import Path

import pytest

from exporter.commands.compare.reasons import CompareReason
from exporter.commands.compare.response import parsed
from exporter.commands.compare.uses.judging import UsesJudge
from exporter.commands.compare.uses.passages import Passage
from tests.consumers.history import at_time, consumers, pages
from tests.exporter.node.scenario_flow import SimulatedFlow, default_counters

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"
ROW = re.compile(r"^\| (?P<name>[^|]+) \| (?P<queries>\d+) \| (?P<verdict>[^|]+) \|$", re.MULTILINE)
CONSUMERS = consumers()
WORKS_NOWHERE = {"AKS KEDA GPU scaling guide": ('avg(DCGM_FI_DEV_GPU_UTIL{deployment="my-gpu-workload"})',)}
"""Queries that find nothing with dcgm-exporter either."""
NEEDS = {
    CompareReason.HOST_LABEL: "`--hostname-label both`",
    CompareReason.GPU_QUANTITY_BY_INSTANCE: "`--mig-gpu-quantities repeat`",
    CompareReason.HPC_JOB: "`--hpc-job-mapping-dir`",
    CompareReason.NOT_IN_COUNTERS_FILE: "its counters file",
    CompareReason.HEALTH_BINDINGS: "NVIDIA's bindings",
}
OF_SOME_MODELS = {CompareReason.UNSUPPORTED_HERE}
"""A license of vGPUs, which the GPU of the scenario has not."""


@cache
def response_by_default():
    return parsed(SimulatedFlow("whole", default_counters()).exposition(5.0).text.decode(), "new")


def reasons(queries, new):
    return {each.reason for each in UsesJudge(new).judge(Passage(query, query) for query in queries)}


def predicted(queries):
    found = reasons(queries, response_by_default()) - OF_SOME_MODELS
    if CompareReason.FROM_ELSEWHERE in found:
        return "not at all: neither exporter writes `deployment`"
    needed = [text for reason, text in NEEDS.items() if reason in found]
    assert found <= NEEDS.keys()
    return f"with {', '.join(needed)}" if needed else "unmodified"


def test_compare_predicts_every_verdict_of_the_document():
    listed = {each.name: each.queries for each in CONSUMERS} | WORKS_NOWHERE
    written = {row["name"]: (int(row["queries"]), row["verdict"]) for row in ROW.finditer(DOCUMENT.read_text())}
    assert written == {name: (len(queries), predicted(queries)) for name, queries in listed.items()}


@pytest.mark.slow
@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda each: each.name)
def test_with_what_it_needs_a_consumer_loses_nothing(consumer, tmp_path):
    texts = pages(consumer, tmp_path)
    new = parsed("".join(at_time(each, 1_800_000_000) for each in texts.values()), "new")
    assert reasons(consumer.queries, new) <= {CompareReason.FROM_ELSEWHERE}
