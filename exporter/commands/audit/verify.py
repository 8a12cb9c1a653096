"""`gpugauge audit --verify`: whether the lines of audit logs are all there and unchanged. No I/O."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import NamedTuple

from exporter.commands.audit.reading import ReadLine
from exporter.commands.terminal import printable
from exporter.node.audit.lines import AnyLine
from exporter.time_text import utc


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What is there of one chain."""

    node: str
    chain: str
    first: int
    last: int
    since: float
    until: float
    head: str
    """SHA-256 of the last line: what is worth keeping elsewhere."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What is there, and what is wrong with it."""

    chains: list[ChainReport]
    findings: list[str]
    """Each shows that something was lost or changed."""
    notes: list[str]
    """What is as it may be: files that were rotated away, and a line that was being written."""


class _Numbered(NamedTuple):
    """A line of a chain, with its place."""

    line: AnyLine
    read: ReadLine


def verify(lines: Sequence[ReadLine]) -> Verification:
    """Compare every line with the one before it in its chain; files may overlap and come in any order."""
    found, notes = list(_strange(lines)), list(_torn(lines))
    reports = []
    for chain in _chains(lines):
        report = _report(chain)
        reports.append(report)
        found += [*_reordered(chain), *_changed(chain), *_missing(chain)]
        if report.first > 1:
            text = f"its lines 1 to {report.first - 1} are in none of the files: rotated away, or not given"
            notes.append(f"chain {report.chain} of node {report.node}: {text}")
    return Verification(sorted(reports, key=lambda each: (each.node, each.since, each.chain)), found, notes)


def _chains(lines: Sequence[ReadLine]) -> list[list[_Numbered]]:
    """The lines of each chain, in the order in which they were read."""
    found: dict[str, list[_Numbered]] = defaultdict(list)
    for each in lines:
        if each.line is not None:
            found[each.line.chain].append(_Numbered(each.line, each))
    return list(found.values())


def _report(chain: Sequence[_Numbered]) -> ChainReport:
    first, last = (chosen(chain, key=lambda each: each.line.seq) for chosen in (min, max))
    times = (first.line.at, last.line.at)
    return ChainReport(first.line.node, first.line.chain, first.line.seq, last.line.seq, *times, last.read.hash)


def _strange(lines: Sequence[ReadLine]) -> Iterator[str]:
    for each in lines:
        if each.line is None and not each.torn:
            yield f"{each.place}: this is no line of an audit log"


def _torn(lines: Sequence[ReadLine]) -> Iterator[str]:
    for each in lines:
        if each.line is None and each.torn:
            yield f"{each.place}: the last line has no end: it was being written"


def _reordered(chain: Sequence[_Numbered]) -> Iterator[str]:
    for before, after in pairwise(chain):
        if before.read.file == after.read.file and after.line.seq <= before.line.seq:
            yield f"{after.read.place}: line {after.line.seq} follows line {before.line.seq}: the order was changed"


def _by_number(chain: Sequence[_Numbered]) -> dict[int, list[_Numbered]]:
    found: dict[int, list[_Numbered]] = defaultdict(list)
    for each in chain:
        found[each.line.seq].append(each)
    return dict(sorted(found.items()))


def _changed(chain: Sequence[_Numbered]) -> Iterator[str]:
    numbered = _by_number(chain)
    for seq, own in numbered.items():
        if len({each.read.hash for each in own}) > 1:
            places = ", ".join(sorted({each.read.place for each in own}))
            yield f"{places}: these are line {seq} of one chain, and differ"
        before = numbered.get(seq - 1, [])
        hashes = {each.read.hash for each in before} or ({""} if seq == 1 else set())
        for each in own:
            if hashes and each.line.prev not in hashes:
                place = before[0].read.place if before else "nothing"
                yield f"{each.read.place}: line {seq} was made to follow another line than {place}: one was changed"


def _missing(chain: Sequence[_Numbered]) -> Iterator[str]:
    for (seq, before), (next_seq, after) in pairwise(_by_number(chain).items()):
        if next_seq > seq + 1:
            one, other = before[0].read, after[0].read
            text = f"lines {seq + 1} to {next_seq - 1} are missing between {one.place} and {other.place}"
            rotated = (
                "" if one.file == other.file else f": the file whose name ends in {next_seq - 1:012}, and any before"
            )
            yield f"{text}{rotated}"


def as_text(verification: Verification) -> str:
    """Write what was found, for people."""
    lines = [
        f"node {each.node}, chain {each.chain}: lines {each.first} to {each.last}, {utc(each.since)} to "
        f"{utc(each.until)}, last SHA-256 {each.head}"
        for each in verification.chains
    ]
    lines += [f"note: {each}" for each in verification.notes]
    lines += [f"wrong: {each}" for each in verification.findings]
    if verification.findings:
        lines.append(f"Not intact: {len(verification.findings)} findings.")
    else:
        lines.append("Intact: every line follows the one before it.")
    return "".join(f"{printable(line)}\n" for line in lines)


def as_json(verification: Verification) -> str:
    """Write the same for programs."""
    chains = [asdict(each) | {"since": utc(each.since), "until": utc(each.until)} for each in verification.chains]
    document = {
        "intact": not verification.findings,
        "chains": chains,
        "findings": verification.findings,
        "notes": verification.notes,
    }
    return json.dumps(document, indent=2) + "\n"
