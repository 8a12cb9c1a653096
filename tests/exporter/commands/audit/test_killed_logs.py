"""A log that was written by processes that were killed is read: every pod is one allocation, and counts once."""

import random

import pytest

from exporter.commands.audit.reading import distinct, read_lines
from exporter.commands.audit.record import audit_record
from exporter.commands.audit.usage import unobserved_hours
from exporter.commands.audit.verify import verify
from exporter.node.audit.rotated import rotated_files
from tests.exporter.node.audit.days import BEGIN, INTERVAL, churn, observed
from tests.exporter.node.audit.killed import Life

DAY = churn(11, gpus=3, pods=18, seconds=60 * INTERVAL)
TIMES = [BEGIN + number * INTERVAL for number in range(63)]
EVER = (BEGIN - 1, TIMES[-1] + 1)


def written(path, seed):
    """Files of a log whose process was killed again and again."""
    chance = random.Random(seed)
    life = Life(path, BEGIN, chance.randint(12, 60), max_bytes=8000)
    for at in TIMES:
        if not life.note(observed(DAY.allocations(at), at)):
            life = Life(path, at, chance.randint(12, 60), max_bytes=8000)
    life.operations.last = -1
    assert life.finish()
    return [*rotated_files(path), path]


@pytest.mark.parametrize("seed", range(4))
def test_kills_cost_observed_time_and_never_an_allocation(tmp_path, seed):
    files = written(tmp_path / "audit.jsonl", seed)
    assert len(files) > 2
    lines = read_lines([str(file) for file in files])
    assert verify(lines).findings == []
    record = audit_record(distinct(lines).values())
    assert len(record.spans) == len(DAY.runs)
    by_pod = {span.key.pod: span for span in record.spans}
    for run in DAY.runs:
        span, true = by_pod[run.pod], run.end - run.begin
        known, unknown = span.gpu_seconds(EVER), 3600 * unobserved_hours(span, EVER)
        assert known <= true + 2 * INTERVAL
        assert known + unknown >= true - 2 * INTERVAL
        assert span.key.device.uuid == run.gpu
