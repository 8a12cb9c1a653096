"""From answers by device and field to the blocks of a pass; pure."""

from collections import Counter
from collections.abc import Iterable, Mapping

from exporter.node.devices.read_plan import Request
from exporter.node.devices.readings import Block, Cell, Rejection, RejectReason, WantedField
from exporter.node.nvml.values import Answer, Rejected, judged

Answers = Mapping[int, Mapping[int, Answer | None]]
"""By inventory index, by field id. None: nothing to show and nothing to count (no event yet)."""
Counts = Counter[tuple[int, RejectReason]]


def assemble(
    requests: Iterable[Request], answers: Answers, wanted: Mapping[int, WantedField]
) -> tuple[tuple[Block, ...], tuple[Rejection, ...]]:
    """The blocks and what is not shown in them. A device without answers is in no block."""
    counts: Counts = Counter()
    blocks = []
    for request in requests:
        devices = tuple(index for index in request.devices if index in answers)
        columns = tuple(_column(wanted[field], devices, answers, counts) for field in request.fields)
        blocks += [Block(devices, request.fields, columns)] if devices else []
    return tuple(blocks), tuple(Rejection(field, reason, n) for (field, reason), n in sorted(counts.items()))


def _column(wanted: WantedField, devices: tuple[int, ...], answers: Answers, counts: Counts) -> tuple[Cell, ...]:
    return tuple(_cell(wanted, answers[index].get(wanted.id), counts) for index in devices)


def _cell(wanted: WantedField, answer: Answer | None, counts: Counts) -> Cell:
    worth = answer if answer is None else judged(answer, wanted)
    if not isinstance(worth, Rejected):
        return worth
    counts[wanted.id, worth.reason] += 1
    return None
