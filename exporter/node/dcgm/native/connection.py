"""A connection to a DCGM engine, and the calls on it that describe the engine and its GPUs.

The engine is either a host engine, which runs in another process (nv-hostengine), or an embedded engine, which libdcgm
starts inside this one.
"""

import ctypes
from typing import NamedTuple

from exporter.node.dcgm.host_engine.address import parse_address
from exporter.node.dcgm.host_engine.probe import refusal
from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.library import DcgmLibrary, version_text
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.devices.entities.architecture import architecture_name
from exporter.source import SourceError

CONNECT_MILLISECONDS = 3000
"""How long dcgmConnect_v2 tries; 0 would mean 5000 (header).

It tries again every 50 ms until this time is over (4.6.0, source), also when the port refuses connections: a connect
to a dead engine takes the whole 3 s (4.6.0, measured). A plain socket finds that out at once.
"""
PROBE_SECONDS = 1.0
"""How long that socket tries to connect, at most."""


class StoredValue(NamedTuple):
    """One stored value of an integer field."""

    entity: tuple[int, int]
    field: int
    type: int
    """TYPE_… of layout.py; the value is a number only with TYPE_INT64."""
    status: int
    timestamp: int
    """Microseconds since the epoch, by the engine's clock."""
    value: int


class EngineConnection:
    """An open connection to an engine. libdcgm never reconnects (4.6.0, source).

    Once a call failed with `connection_lost`, every later one does: close the connection and open another.
    """

    def __init__(self, library: DcgmLibrary, remote: str | None, probe_seconds: float = PROBE_SECONDS) -> None:
        """Connect to the engine at `remote`, or start an embedded engine for None. Raises SourceError."""
        self.library, self._probe_seconds = library, probe_seconds
        self.embedded = remote is None
        self._handle = self._embed() if remote is None else self._connect(remote)
        try:
            self._check_health()
            self.engine_version = self._engine_version()
        except SourceError:
            self.close()
            raise

    @property
    def handle(self) -> int:
        """The handle of libdcgm's own."""
        return self._handle

    def call(self, function: str, *arguments: object) -> None:
        """Call a function of libdcgm on this connection. Raises StatusError for any status other than OK.

        An engine that does not answer blocks it for 60 s, then the status is -11; that limit is built into libdcgm
        (4.6.0, source). The parent process ends a reader process that takes longer than its own deadline.
        """
        self.library.call(function, self._handle, *arguments)

    def status(self, function: str, *arguments: object) -> int:
        """Call a function of libdcgm on this connection and return its dcgmReturn_t."""
        return self.library.status(function, self._handle, *arguments)

    def close(self) -> None:
        """Close the connection, or stop the embedded engine. Never raises.

        The engine then drops the groups, field groups and watches of this connection (4.6.0, source), because
        `_connect` leaves `persist_after_disconnect` at 0.
        """
        self.status("dcgmStopEmbedded" if self.embedded else "dcgmDisconnect")

    def gpu_ids(self) -> tuple[int, ...]:
        """Return the engine's ids of all GPUs, lost ones included. Ids are valid until the engine restarts."""
        ids, count = (ctypes.c_uint32 * layout.MAX_GPUS)(), ctypes.c_int()
        # All, not only those that DCGM supports: a GPU that cannot be read is reported as down, not left out.
        self.call("dcgmGetAllDevices", ctypes.byref(ids), ctypes.byref(count))
        return tuple(ids[: count.value])

    def gpu_state(self, gpu_id: int) -> int:
        """Return the DcgmEntityStatus_t of a GPU."""
        state = ctypes.c_int()
        self.call("dcgmGetGpuStatus", gpu_id, ctypes.byref(state))
        return state.value

    def architecture(self, gpu_id: int) -> str:
        """Return the architecture of a GPU, such as `hopper`; empty when it is not known."""
        number = ctypes.c_uint32()
        # A label only, so no status of this call is a failure: libdcgm may even lack the function.
        if self.status("dcgmGetGpuChipArchitecture", gpu_id, ctypes.byref(number)) != layout.OK:
            return ""
        return architecture_name(number.value)

    def hierarchy(self) -> layout.Hierarchy:
        """Return all GPU instances and compute instances of all GPUs as one flat list of rows. Raises StatusError.

        An engine that does not run as root answers -29 (4.6.0, source).
        """
        answer = layout.Hierarchy(version=layout.HIERARCHY_VERSION)
        self.call("dcgmGetGpuInstanceHierarchy", ctypes.byref(answer))
        return answer

    def read(
        self,
        entities: "ctypes.Array[layout.EntityPair]",
        fields: "ctypes.Array[ctypes.c_uint16]",
        flags: int,
        into: "ctypes.Array[ctypes.c_char]",
    ) -> None:
        """Read the newest value of every field of every entity, as records into `into`. Raises StatusError.

        The header does not promise an order of the records. They came entity by entity, watched fields in the order
        asked for, but with LIVE_DATA the fields that map to an NVML field last (4.6.0, measured). A field id that the
        engine does not know fails a read of watched fields as a whole, with -3 (4.6.0, measured).
        """
        # One call costs two 4 MiB messages that are zero-filled, whatever it asks for (4.6.0, source): so callers ask
        # for many entities at once, not GPU by GPU.
        self.call("dcgmEntitiesGetLatestValues", entities, len(entities), fields, len(fields), flags, into)

    def stored_values(self, groups: tuple[int, int], since: int) -> tuple[int, list[StoredValue]]:
        """Return a status, and the values that the engine has stored since a time in microseconds (0: all of them).

        `groups` are an entity group and a field group. It costs a request for each entity and field, so it is for event
        fields alone (4.6.0, source).
        """
        found: list[StoredValue] = []

        def take(kind: int, entity: int, records: int, count: int, _: object) -> int:
            for index in range(count):
                raw = ctypes.string_at(records + index * layout.STORED_SIZE, layout.STORED.size)
                _, field, type_, status, timestamp, value = layout.STORED.unpack(raw)
                found.append(StoredValue((kind, entity), field, type_, status, timestamp, value))
            return 0

        # It is called during the call and on this thread, and must be alive until the call returns.
        callback, upto = layout.TAKE_STORED(take), ctypes.c_longlong()
        status = self.status("dcgmGetValuesSince_v2", *groups, since, ctypes.byref(upto), callback, None)
        return status, found

    def _connect(self, remote: str) -> int:
        address = parse_address(remote)
        if address.is_vsock:
            return self._connect_to_url(address.text)
        if reason := refusal(address, self._probe_seconds):
            raise SourceError(DcgmReason.CONNECTION_LOST, reason)
        parameters = layout.ConnectParameters(
            version=layout.CONNECT_VERSION, timeout_ms=CONNECT_MILLISECONDS, address_is_unix_socket=address.is_unix
        )
        handle = ctypes.c_size_t()
        # Every libdcgm from 3.1 on has _v2; _v3 is missing before 4.5 (header).
        self.library.call("dcgmConnect_v2", address.text.encode(), ctypes.byref(parameters), ctypes.byref(handle))
        return handle.value

    def _connect_to_url(self, url: str) -> int:
        # Not asked before with a plain socket: instead this attempt is as short as one of those.
        milliseconds = round(self._probe_seconds * 1000)
        parameters = layout.UrlConnectParameters(version=layout.URL_CONNECT_VERSION, timeout_ms=milliseconds)
        handle = ctypes.c_size_t()
        self.library.call("dcgmConnect_v3", url.encode(), ctypes.byref(parameters), ctypes.byref(handle))
        return handle.value

    def _embed(self) -> int:
        handle = ctypes.c_size_t()
        # A process has one embedded engine at most: a second start answers OK without setting the handle (4.6.0,
        # measured). DcgmSource closes a connection before it opens the next.
        self.library.call("dcgmStartEmbedded", layout.OPERATION_AUTO, ctypes.byref(handle))
        return handle.value

    def _check_health(self) -> None:
        # When the TCP connect works but the login fails, dcgmConnect_v2 drops the connection and returns OK all the
        # same (4.6.0, source). Only the next request fails, with -21; so one is made at once.
        health = layout.HostengineHealth(version=layout.HEALTH_VERSION)
        self.call("dcgmHostengineIsHealthy", ctypes.byref(health))
        if health.overall_health != 0:
            raise SourceError(
                DcgmReason.ENGINE_UNHEALTHY, f"the engine reports that it is not healthy ({health.overall_health})"
            )

    def _engine_version(self) -> str:
        # dcgmVersionInfo gives the library's version, which can differ from the engine's.
        info = layout.VersionInfo(version=layout.VERSION_INFO_VERSION)
        if self.status("dcgmHostengineVersionInfo", ctypes.byref(info)) != layout.OK:
            return ""
        return version_text(info)
