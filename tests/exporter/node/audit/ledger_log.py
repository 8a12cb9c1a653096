"""A ledger with all of its lines, whose clock goes on by one interval with every observation."""

from exporter.node.audit.chain import Chain
from exporter.node.audit.ledger import Ledger
from exporter.node.audit.lines import Checkpoint
from exporter.node.audit.reasons import GapReason
from exporter.node.audit.replay import Replay
from tests.exporter.node.audit.days import BEGIN, INTERVAL, LONGEST, decoded, observed


class Log:
    def __init__(self, **more):
        self.more = more
        self.ledger = Ledger(Chain("node-1", "c0ffee"), LONGEST, **more)
        self.content = self.ledger.begin(BEGIN, "started")
        self.at = BEGIN

    def note(self, *allocations, after=INTERVAL, **more):
        """The lines of an observation."""
        return self._note(allocations, after, more)

    def unknown(self, reason=GapReason.KUBELET, after=INTERVAL):
        return self._note(reason, after, {})

    def _note(self, allocations, after, more):
        self.at += after
        lines = self.ledger.observe(observed(allocations, self.at, **more))
        self.content += lines
        return [line for line in decoded(lines) if not isinstance(line, Checkpoint)]

    def restart(self):
        """A new process goes on with what the log says."""
        replay = Replay()
        for line in self.content.splitlines():
            replay.take(line)
        chain = Chain("node-1", replay.chain, replay.seq, replay.prev)
        self.ledger = Ledger(chain, LONGEST, replay.state(), **self.more)
        lines = self.ledger.begin(self.at + 1, "started")
        self.content += lines
        return decoded(lines)
