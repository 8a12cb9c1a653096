"""Audit logs of nodes for tests, made by real ledgers, and what is known to be true of them."""

from dataclasses import dataclass, field

from exporter.commands.audit.reading import ReadLine, distinct
from exporter.commands.audit.record import audit_record
from exporter.node.audit.chain import Chain, digest
from exporter.node.audit.ledger import Ledger
from exporter.node.audit.lines import decode
from exporter.node.audit.reasons import GapReason
from exporter.node.audit.replay import Replay
from tests.exporter.node.audit.days import BEGIN, INTERVAL, LONGEST, observed


@dataclass
class NodeLog:
    """The lines that the exporters of one node write, one observation per interval from BEGIN on."""

    node: str = "node-1"
    chain: str = "c1"
    content: bytes = b""
    at: float = BEGIN
    ledger: Ledger = field(init=False)

    def __post_init__(self):
        self.new_chain(self.chain)

    def new_chain(self, chain):
        """A process that can read nothing of the ones before."""
        self.ledger = Ledger(Chain(self.node, chain), LONGEST)
        self.content += self.ledger.begin(self.at, "started")

    def restart(self, after=0.0):
        """A process that goes on with what the log says."""
        replay = Replay()
        for line in self.content.splitlines():
            replay.take(line)
        self.ledger = Ledger(Chain(self.node, replay.chain, replay.seq, replay.prev), LONGEST, replay.state())
        self.at += after
        self.content += self.ledger.begin(self.at, "started")

    def stop(self):
        """A process that is stopped writes until when it observed."""
        self.content += self.ledger.stop()
        return self

    def note(self, *allocations, times=1):
        """Observe these allocations so often; a reason in place of them is a gap."""
        for _ in range(times):
            known = allocations[0] if allocations and isinstance(allocations[0], GapReason) else allocations
            self.content += self.ledger.observe(observed(known, self.at))
            self.at += INTERVAL

    @property
    def lines(self):
        return self.content.splitlines()


def read_lines_of(*files):
    """The lines of files, whose contents are lists of texts, as they are read."""
    return [
        ReadLine(f"file-{index}", number, decode(text), digest(text))
        for index, file in enumerate(files, 1)
        for number, text in enumerate(file, 1)
    ]


def record_of(*files):
    return audit_record(distinct(read_lines_of(*files)).values())
