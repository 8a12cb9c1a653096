"""Makes the calls of recorded_calls.yaml on the fake libdcgm, and states what it answers in the words of that file.

    python -m tests.fakes.recorded_calls LIBRARY FOLDER NUMBER

makes the calls of one question, for those that end the process.
"""

import ctypes as c
import mmap
import os
import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path

import yaml

from exporter.node.devices.fields.field import fields as known_fields
from tests.fakes.dcgm_client import CI, FV, GI, GPU, LIVE, SECOND_US, Engine
from tests.fakes.scenario_table import VARIABLE
from tests.fakes.table_bytes import BLANK_FLOAT, BLANK_INT, SENTINELS

QUESTIONS = yaml.safe_load((Path(__file__).parent / "recorded_calls.yaml").read_text())
EPOCH = 1000
UUIDS = tuple(f"GPU-00000000-0000-0000-0000-00000000000{number}" for number in "012")
KINDS = {"none": 0, "gpu": GPU, "gi": GI, "ci": CI}
EMPTY_GROUP = 1
AT_MOST_MS = 5000


def _gpu(number, architecture="hopper", **more):
    fields = {"155": 300.5, "156": {"shape": "counter", "rate": 1000}, "203": 55, "1004": 0.25}
    spec = {"uuid": UUIDS[number], "index": number, "pci_bus_id": f"00000000:0{number}:00.0", "model": "NVIDIA GPU"}
    return {**spec, "memory_mib": 81559, "architecture": architecture, "mig": False, "fields": fields, **more}


def _node(*gpus, events=(), **more):
    versions = {"dcgm": "4.6.0"}
    return {"about": "a node", "epoch": EPOCH, "devices": gpus, "events": events, "versions": versions, **more}


_COMPUTE = {"ci": 0, "uuid": "MIG-a"}
_INSTANCE = {"gi": 3, "profile": "1g.10gb", "slices": 1, "memory_mib": 9984, "compute": [_COMPUTE]}
_LOSS = {"event": "lost", "device": UUIDS[1]}
NODES = {
    "two GPUs": _node(_gpu(0), _gpu(1)),
    "mig": _node(_gpu(0, mig=True, instances=[_INSTANCE])),
    "lost": _node(_gpu(0), _gpu(1), events=[{**_LOSS, "at": 10}]),
    "unsupported": _node(_gpu(0), _gpu(1), events=[{**_LOSS, "at": 0, "state": "unsupported"}]),
    "mixed": _node(_gpu(0), _gpu(1, architecture="turing"), profiling_module=False),
}


def node_of(question):
    return NODES[question.get("node", "two GPUs")]


def _pair(text):
    kind, number = text.split()
    return KINDS[kind], int(number)


def _shown(record):
    """A record as a value of the file."""
    kind = next(name for name, number in KINDS.items() if number == record.kind)
    value = {"i": record.int, "d": record.float, "s": record.text}[record.type]
    blank = BLANK_INT if record.type == "i" else BLANK_FLOAT
    if record.type != "s" and value >= blank:
        value = SENTINELS[int(value - blank)]
    at = f"{record.timestamp / SECOND_US - EPOCH:g} s" if record.timestamp else "no time"
    return f"{kind} {record.id}, {record.field}: {record.type} {value}, status {record.status}, at {at}"


class Calls:
    """Makes calls one after the other; each method is the `call` of its name and returns what came back."""

    def __init__(self, engine: Engine, *, connected=True):
        self._engine, self._lib = engine, engine.lib
        self._handle = engine.open() if connected else c.c_size_t(0)
        self._names = count()
        self._group = self._fields = c.c_size_t(0)

    def make(self, step):
        """Make the call of a step; return the step with the results that came back instead of those recorded."""
        arguments = {key: value for key, value in step.items() if key not in ("call", *RESULTS)}
        began = time.monotonic()
        came = getattr(self, step["call"])(**arguments)
        results = came if isinstance(came, dict) else {"status": came}
        if "takes" in step and step["takes"] <= time.monotonic() - began:
            results["takes"] = step["takes"]
        given = {key: value for key, value in results.items() if key in step or (key, value) != ("status", 0)}
        return {"call": step["call"], **arguments, **given}

    def init(self):
        return self._lib.dcgmInit()

    def shutdown(self):
        return self._lib.dcgmShutdown()

    def wait(self, until):
        self._engine.table.tick(until)
        return 0

    def connect(self, to="engine", timeout_ms=AT_MOST_MS):
        if to == "unix nobody":
            self._engine.table.close()
        status, self._handle = self._engine.connect("127.0.0.1:1" if to == "nobody" else None, timeout_ms)
        return status

    def disconnect(self):
        return self._lib.dcgmDisconnect(self._handle)

    def start_embedded(self):
        handle = c.c_size_t(0)
        status = self._lib.dcgmStartEmbedded(1, c.byref(handle))
        self._handle = handle if handle.value else self._handle
        return {"status": status, "answer": handle.value}

    def stop_embedded(self):
        return self._lib.dcgmStopEmbedded(self._handle)

    def devices(self, handle=None):
        ids, number = (c.c_uint32 * 32)(), c.c_int(0)
        return self._lib.dcgmGetAllDevices(self._handle if handle is None else c.c_size_t(handle), ids, c.byref(number))

    def gpu_status(self, gpu):
        return self._number(self._lib.dcgmGetGpuStatus, gpu)

    def architecture(self, gpu):
        return self._number(self._lib.dcgmGetGpuChipArchitecture, gpu)

    def _number(self, function, gpu):
        answer = c.c_uint32(77)
        return {"status": function(self._handle, gpu, c.byref(answer)), "answer": answer.value}

    def group(self, kind=EMPTY_GROUP, times=1):
        return self._repeated(times, lambda: self._new_group(kind))

    def _new_group(self, kind):
        status, self._group = self._engine.group(self._handle, kind)
        return status

    def add(self, entity):
        return self._lib.dcgmGroupAddEntity(self._handle, self._group, *_pair(entity))

    def destroy_group(self):
        return self._lib.dcgmGroupDestroy(self._handle, self._group)

    def field_group(self, fields, name="", times=1):
        ids = sorted(known_fields())[:1] * fields if isinstance(fields, int) else fields
        return self._repeated(times, lambda: self._new_field_group(ids, name or f"g{next(self._names)}"))

    def _new_field_group(self, ids, name):
        status, self._fields = self._engine.field_group(self._handle, ids, name.encode())
        return status

    @staticmethod
    def _repeated(times, call):
        statuses = Counter(call() for _ in range(times))
        return {"statuses": dict(statuses)} if times > 1 else next(iter(statuses))

    def groups(self, entities, fields):
        """Make an entity group and a field group, for `watch` and `unwatch`."""
        statuses = [self.group(), *(self.add(entity) for entity in entities), self.field_group(fields)]
        return next((status for status in statuses if status), 0)

    def watch(self, entities, fields, every_us=SECOND_US, keep=60.0, samples=0):
        assert self.groups(entities, fields) == 0
        return self._engine.watch_groups(self._handle, self._group, self._fields, every_us, keep, samples)

    def unwatch(self):
        return self._lib.dcgmUnwatchFields(self._handle, self._group, self._fields)

    def read(self, entities, fields, flags=0):
        status, records = self._engine.read(self._handle, list(map(_pair, entities)), fields, flags)
        return {"status": status} | ({"values": list(map(_shown, records))} if records else {})

    def live(self, entities, fields):
        return self.read(entities, fields, LIVE)

    def read_many(self, entities, field, fields=128):
        """Read one field of one GPU many times in one call, into memory that is mapped for it alone."""
        with mmap.mmap(-1, entities * fields * FV) as memory:
            pairs, ids = (c.c_uint32 * (2 * entities))(*(GPU, 0) * entities), (c.c_uint16 * fields)(*[field] * fields)
            into = (c.c_char * len(memory)).from_buffer(memory)
            status = self._lib.dcgmEntitiesGetLatestValues(self._handle, pairs, entities, ids, fields, 0, into)
            del into
        return status


RESULTS = ("status", "statuses", "answer", "values", "takes")


def main(library, folder, number):
    os.environ[VARIABLE] = str(Path(folder) / "table")
    question = QUESTIONS[int(number)]
    calls = Calls(Engine(c.CDLL(library), Path(folder), node_of(question)))
    for step in question["calls"]:
        calls.make(step)


if __name__ == "__main__":
    main(*sys.argv[1:])
