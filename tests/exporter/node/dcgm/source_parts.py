"""The parts that several tests of the dcgm source share."""

from collections import Counter

import pytest

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.library import DcgmLibrary
from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import (
    gpu_spec,
    uuid_of,
)


def reason(read):
    with pytest.raises(SourceError) as caught:
        read()
    return caught.value.reason


class CountingLibrary(DcgmLibrary):
    """libdcgm that counts the calls of each function."""

    def __init__(self, path):
        self.calls = Counter()
        super().__init__(path)

    def status(self, function, *arguments):
        self.calls[function] += 1
        return super().status(function, *arguments)


def mig_gpu_spec(*instances, number=0, **more):
    return gpu_spec(number, mig=True, instances=list(instances), **more)


class WatchTimes(DcgmLibrary):
    """libdcgm that records when fields are watched."""

    def __init__(self, path, engine):
        self.engine, self.times = engine, []
        super().__init__(path)

    def status(self, function, *arguments):
        if function == "dcgmWatchFields" and self.engine.t not in self.times:
            self.times.append(self.engine.t)
        return super().status(function, *arguments)


def lost(number, at, **more):
    return {"event": "lost", "device": uuid_of(number), "at": at, **more}


class DiscoveryTimes(WatchTimes):
    """libdcgm that records when the driver is asked, which only a discovery does."""

    def status(self, function, *arguments):
        live = function == "dcgmEntitiesGetLatestValues" and arguments[5] == layout.LIVE_DATA
        if live and self.engine.t not in self.times:
            self.times.append(self.engine.t)
        return DcgmLibrary.status(self, function, *arguments)
