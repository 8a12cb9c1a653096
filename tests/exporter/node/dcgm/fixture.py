"""A DCGM engine of a scenario: the fake library, its scenario table, and the clock of both."""

import json
import os

from exporter.node.dcgm.clocks import Clocks
from exporter.node.dcgm.native.library import open_library
from exporter.node.dcgm.source import DcgmSource
from exporter.node.devices.entities.driver_bindings import driver_bindings
from exporter.node.devices.fields.device_source import ReaderConfig
from exporter.node.devices.fields.field import fields as known_fields
from exporter.node.simulation.scenario import load, parse
from exporter.node.simulation.source import readings as simulated_readings
from tests.fakes.build import build
from tests.fakes.engine_socket import EngineSocket
from tests.fakes.scenario_table import VARIABLE, ScenarioTable

EPOCH = 1_800_000_000.0
AT_ITS_SOCKET = "the engine's socket"
SONAMES = ("libdcgm.so.4", "libdcgm.so.3")


def uuid_of(number):
    """Return the UUID that gpu_spec gives to a GPU."""
    return f"GPU-00000000-0000-0000-0000-{number:012d}"


def gpu_spec(number=0, **more):
    spec = {
        "uuid": uuid_of(number),
        "index": number,
        "pci_bus_id": f"00000000:{number + 7:02X}:00.0",
        "model": "NVIDIA H100 80GB HBM3",
        "memory_mib": 81920,
        "architecture": "hopper",
        "fields": {"150": 40 + number, "155": 100.5, "156": 2**40, "203": 50, "252": 1000, "1004": 0.25},
    }
    return spec | more


def instance_spec(gi, *cis, profile="1g.10gb", tensor=0.5, tag=""):
    compute = [{"ci": ci, "uuid": f"MIG-{tag}{gi}-{ci}"} for ci in (cis or (0,))]
    fields = {"252": 100 + gi, "1004": tensor, "1005": 0.125}
    return {"gi": gi, "profile": profile, "slices": 1, "memory_mib": 9856, "compute": compute, "fields": fields}


def document(*gpus, events=(), **more):
    return {"about": "a test", "devices": list(gpus), "events": list(events), **more}


def wanted(*numbers):
    return tuple(known_fields()[number].wanted() for number in numbers)


class EngineFixture:
    """An engine, and sources that read from it.

    `at` sets the time of the engine and of its sources. With a real `clock` time passes by itself instead: `tick`
    updates the table, and `jump` sets the time of the scenario.
    """

    def __init__(self, directory, scenario, soname="libdcgm.so.4", clock=lambda: EPOCH):
        scenario = load(scenario) if isinstance(scenario, str) else parse(json.dumps(scenario), "test")
        self.library = build(directory / "lib", only=soname)[soname]
        self.socket = EngineSocket(directory / "engine.sock")
        self.table = ScenarioTable(scenario, directory / "table", clock=clock, listening=self.socket)
        self.t = 0.0
        os.environ[VARIABLE] = str(directory / "table")
        self._sources = []
        self.at(0.0)

    def at(self, t):
        self.t = t
        self.state = self.table.tick(t)
        return self.state

    def tick(self):
        self.state = self.table.tick()

    def jump(self, t):
        self.state = self.table.jump(t)

    def tick_with_clock_behind(self, seconds):
        """Write the table as an engine whose clock is behind ours."""
        self.table._begin -= seconds
        self.table.tick(self.t)
        self.table._begin += seconds

    def config(self, *numbers, interval=1.0, remote=AT_ITS_SOCKET, **more):
        """`remote` None is an embedded engine."""
        remote = self.socket.address if remote == AT_ITS_SOCKET else remote
        return ReaderConfig("dcgm", wanted(*numbers), interval, remote=remote, libdcgm=str(self.library), **more)

    def source(self, *numbers, load=open_library, bindings=driver_bindings, **more):
        clocks = Clocks(wall=lambda: self.now, steady=lambda: self.t)
        self._sources.append(DcgmSource(self.config(*numbers, **more), clocks, load, bindings=bindings))
        return self._sources[-1]

    def settled(self, source):
        """Return the readings one interval after a first read: profiling fields are blank before."""
        source.read()
        self.at(self.t + 1.0)
        return source.read()

    @property
    def now(self):
        return self.table._begin + self.t

    def simulated(self, config):
        return simulated_readings(self.state, config, self.now)

    def close(self):
        for source in self._sources:
            source.close()
        self.table.close()
        os.environ.pop(VARIABLE, None)


def samples(readings):
    """Return every exposed value by (uuid, gi, ci, field)."""
    exposed = {}
    for batch in readings.batches:
        for field, column in zip(batch.fields, batch.columns, strict=True):
            for index, value in zip(batch.devices, column, strict=True):
                device = readings.inventory[index]
                key = (device.uuid, device.gi, device.ci, field)
                assert key not in exposed, f"{key} is exposed twice"
                if value is not None:
                    exposed[key] = value
    return exposed


def samples_of_gpu(readings, number=0):
    """Return the values of one GPU itself, without its MIG devices, by field."""
    return {key[3]: value for key, value in samples(readings).items() if key[:3] == (uuid_of(number), -1, -1)}


def rejected(readings):
    """Return the number of rejected values by (field, reason)."""
    return {(entry.field, entry.reason): entry.count for entry in readings.rejections}
