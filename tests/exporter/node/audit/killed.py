"""A process that ends at a chosen call of the operating system, and a writer that works when a test says so."""

import os

from exporter.node.audit.file_operations import FileOperations
from exporter.node.audit.log_file import AuditFile
from exporter.node.audit.writer import AuditWriter
from tests.clock import Clock
from tests.exporter.node.audit.days import LONGEST


class Killed(BaseException):
    """The process has ended: nothing in it may handle this."""


class CountedOperations(FileOperations):
    """Ends the process at the call with the number `last`: before it, or in the middle of a write."""

    def __init__(self, last=-1):
        self.last, self.calls = last, 0
        self.opened = set()
        self.synced = {}
        """By inode, the size that is certainly on the disk."""

    def _count(self):
        self.calls += 1
        if self.calls == self.last:
            raise Killed

    def open(self, path):
        self._count()
        descriptor = super().open(path)
        self.opened.add(descriptor)
        return descriptor

    def close(self, descriptor):
        self.opened.discard(descriptor)
        super().close(descriptor)

    def write(self, descriptor, content):
        self.calls += 1
        if self.calls == self.last:
            super().write(descriptor, content[: len(content) * 2 // 3])
            raise Killed
        return super().write(descriptor, content)

    def truncate(self, descriptor, size):
        self._count()
        super().truncate(descriptor, size)

    def sync(self, descriptor):
        self._count()
        super().sync(descriptor)
        found = os.fstat(descriptor)
        self.synced[found.st_ino] = found.st_size

    def sync_folder(self, folder):
        self._count()
        super().sync_folder(folder)

    def rename(self, path, target):
        self._count()
        super().rename(path, target)

    def remove(self, path):
        self._count()
        super().remove(path)

    def end(self):
        """What the kernel does when a process ends: close its files, and so end its locks."""
        for descriptor in list(self.opened):
            self.close(descriptor)


class Life:
    """One process that writes the log at `path`, until it is ended."""

    def __init__(self, path, now, last=-1, *, max_bytes=1 << 20, max_rotated=0):
        self.operations = CountedOperations(last)
        self.clock = Clock(now)
        file = AuditFile(path, max_bytes, max_rotated, self.operations)
        self.writer = AuditWriter(file, "node-1", LONGEST, clock=self.clock, wall=self.clock)

    def note(self, observation):
        """Write an observation; returns whether the process lives on."""
        self.clock.now = observation.at
        return self._does(lambda: (self.writer.put(observation), self.writer.step()))

    def finish(self):
        """Stop it as a signal does; returns whether that went to its end."""
        return self._does(self.writer.finish)

    def _does(self, work):
        try:
            work()
        except Killed:
            self.operations.end()
            return False
        return True
