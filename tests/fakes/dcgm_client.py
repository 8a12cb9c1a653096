"""A client of the fake libdcgm through plain ctypes: the calls that several tests make."""

import ctypes as c
import json
import struct

from exporter.node.simulation.scenario import parse
from tests.fakes.engine_socket import EngineSocket
from tests.fakes.scenario_table import ScenarioTable

FV = 4128
LIVE = 1
GPU, SWITCH, GI, CI, LINK, CORE = 1, 3, 4, 5, 6, 8
ALL_GPUS, ALL_INSTANCES, ALL_COMPUTE = 0x7FFFFFFF, 0x7FFFFFFD, 0x7FFFFFFC
SECOND_US = 10**6


class Engine:
    """A fake library over a scenario table, whose host engine listens at a unix socket in `directory`."""

    def __init__(self, library, directory, document):
        self.lib = library
        self.socket = EngineSocket(directory / "engine.sock")
        self.table = ScenarioTable(parse(json.dumps(document), "test.json"), directory / "table", listening=self.socket)
        self.table.tick(0)
        self.lib.DcgmFieldGetById.restype = c.c_void_p
        self.lib.errorString.restype = c.c_char_p

    def connect(self, address=None, timeout_ms=100):
        """Connect to the engine, or to an address with `host:port`; return the status and the handle."""
        path = self.socket.address.removeprefix("unix://")
        handle, parameters = c.c_size_t(0), (c.c_uint32 * 4)(16 | 2 << 24, 0, timeout_ms, address is None)
        code = self.lib.dcgmConnect_v2((address or path).encode(), parameters, c.byref(handle))
        return code, handle

    def open(self):
        assert self.lib.dcgmInit() == 0
        code, handle = self.connect()
        assert code == 0
        return handle

    def group(self, handle, kind=1):
        """Create an entity group of this type; return the status and the group."""
        group = c.c_size_t(0)
        return self.lib.dcgmGroupCreate(handle, kind, b"g", c.byref(group)), group

    def field_group(self, handle, ids, name=b"g"):
        group = c.c_size_t(0)
        code = self.lib.dcgmFieldGroupCreate(handle, len(ids), (c.c_uint16 * len(ids))(*ids), name, c.byref(group))
        return code, group

    def watch(self, handle, ids, group=ALL_GPUS, name=b"g"):
        code, fields = self.field_group(handle, ids, name)
        assert code == 0
        assert self.watch_groups(handle, c.c_size_t(group), fields) == 0
        return fields

    def watch_groups(self, handle, group, fields, every_us=SECOND_US, keep=60.0, samples=0):
        """Watch a field group of an entity group; return the status."""
        return self.lib.dcgmWatchFields(handle, group, fields, c.c_longlong(every_us), c.c_double(keep), samples)

    def read(self, handle, pairs, ids, flags=0, fill=b"\0"):
        buffer = c.create_string_buffer(fill * (FV * len(pairs) * len(ids)), FV * len(pairs) * len(ids))
        flat = [number for pair in pairs for number in pair]
        code = self.lib.dcgmEntitiesGetLatestValues(
            handle, (c.c_uint32 * len(flat))(*flat), len(pairs), (c.c_uint16 * len(ids))(*ids), len(ids), flags, buffer
        )
        return code, [Record(buffer.raw[i : i + FV]) for i in range(0, len(buffer), FV)] if code == 0 else []

    def devices(self, handle):
        ids, count = (c.c_uint32 * 32)(), c.c_int(0)
        assert self.lib.dcgmGetAllDevices(handle, ids, c.byref(count)) == 0
        return list(ids[: count.value])

    def hierarchy(self, handle):
        buffer = c.create_string_buffer(73480)
        struct.pack_into("<I", buffer, 0, 73480 | 2 << 24)
        assert self.lib.dcgmGetGpuInstanceHierarchy(handle, buffer) == 0
        (count,) = struct.unpack_from("<I", buffer, 4)
        return [struct.unpack_from("<4I128sIIiII", buffer, 8 + 164 * row) for row in range(count)]

    def close(self):
        self.table.close()


class Record:
    """One value of a read, decoded."""

    def __init__(self, raw):
        self.raw = raw
        self.version, self.kind, self.id, self.field, type_, self.status = struct.unpack_from("<IIIHHi", raw)
        self.type = chr(type_)
        self.timestamp, self.int = struct.unpack_from("<qq", raw, 24)
        (self.float,) = struct.unpack_from("<d", raw, 32)
        self.text = raw[32:].split(b"\0")[0].decode(errors="replace")
