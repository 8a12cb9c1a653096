"""A connection to a DCGM engine, remote or embedded, and the calls that describe what it manages."""

import ctypes

from exporter.node.dcgm import layout
from exporter.node.dcgm.address import parse_address
from exporter.node.dcgm.library import Library, version_text
from exporter.source import SourceError

CONNECT_MILLISECONDS = 3000


class Connection:
    """An open connection. It never heals by itself: after `connection_lost` close it and open another."""

    def __init__(self, library: Library, remote: str | None) -> None:
        self.library = library
        self.embedded = remote is None
        self._handle = self._embed() if remote is None else self._connect(remote)
        try:
            self._check_health()
            self.engine_version = self._engine_version()
        except SourceError:
            self.close()
            raise

    def call(self, function: str, *arguments: object) -> None:
        """One call on this connection that must succeed. Raises StatusError."""
        self.library.call(function, self._handle, *arguments)

    def status(self, function: str, *arguments: object) -> int:
        """The bare status of one call on this connection."""
        return self.library.status(function, self._handle, *arguments)

    def close(self) -> None:
        """Gives the connection back; the engine then drops its groups and watches. Never raises."""
        self.status("dcgmStopEmbedded" if self.embedded else "dcgmDisconnect")

    def gpu_ids(self) -> tuple[int, ...]:
        """The engine's ids of all boards, lost ones included; good for this engine's life only."""
        ids, count = (ctypes.c_uint32 * layout.MAX_GPUS)(), ctypes.c_int()
        self.call("dcgmGetAllDevices", ctypes.byref(ids), ctypes.byref(count))
        return tuple(ids[: count.value])

    def gpu_state(self, gpu: int) -> int:
        """DcgmEntityStatus_t of one board."""
        state = ctypes.c_int()
        self.call("dcgmGetGpuStatus", gpu, ctypes.byref(state))
        return state.value

    def architecture(self, gpu: int) -> str:
        """`hopper` and the like; empty when the library cannot say."""
        number = ctypes.c_uint32()
        if self.status("dcgmGetGpuChipArchitecture", gpu, ctypes.byref(number)) != layout.OK:
            return ""
        return layout.ARCHITECTURES.get(number.value, "")

    def hierarchy(self) -> layout.Hierarchy:
        """All GPU instances and compute instances of all boards, as one flat list of rows."""
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
        """Latest values of all fields of all entities, entity by entity, as records into `into`."""
        self.call("dcgmEntitiesGetLatestValues", entities, len(entities), fields, len(fields), flags, into)

    def _connect(self, remote: str) -> int:
        address = parse_address(remote)
        parameters = layout.ConnectParameters(
            version=layout.CONNECT_VERSION, timeout_ms=CONNECT_MILLISECONDS, address_is_unix_socket=address.is_unix
        )
        handle = ctypes.c_size_t()
        self.library.call("dcgmConnect_v2", address.text.encode(), ctypes.byref(parameters), ctypes.byref(handle))
        return handle.value

    def _embed(self) -> int:
        handle = ctypes.c_size_t()
        self.library.call("dcgmStartEmbedded", layout.OPERATION_AUTO, ctypes.byref(handle))
        return handle.value

    def _check_health(self) -> None:
        # A connect whose login failed still answers OK: only a first request tells.
        health = layout.HostengineHealth(version=layout.HEALTH_VERSION)
        self.call("dcgmHostengineIsHealthy", ctypes.byref(health))
        if health.overall_health != 0:
            raise SourceError("engine_unhealthy", f"the engine says it is not healthy ({health.overall_health})")

    def _engine_version(self) -> str:
        info = layout.VersionInfo(version=layout.VERSION_INFO_VERSION)
        if self.status("dcgmHostengineVersionInfo", ctypes.byref(info)) != layout.OK:
            return ""
        return version_text(info)
