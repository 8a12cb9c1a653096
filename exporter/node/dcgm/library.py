"""Finding and loading libdcgm, its functions with their C signatures, and what its status codes mean."""

import ctypes
import os
import re
from collections.abc import Callable, Iterator, Mapping

from exporter.node.dcgm import layout
from exporter.source import SourceError

_HANDLE = ctypes.c_size_t
_UINT = ctypes.c_uint32
_INT = ctypes.c_int
_OUT = ctypes.c_void_p
_TEXT = ctypes.c_char_p

SIGNATURES: Mapping[str, tuple[type, ...]] = {
    "dcgmInit": (),
    "dcgmShutdown": (),
    "dcgmVersionInfo": (_OUT,),
    "dcgmConnect_v2": (_TEXT, _OUT, _OUT),
    "dcgmDisconnect": (_HANDLE,),
    "dcgmStartEmbedded": (_INT, _OUT),
    "dcgmStopEmbedded": (_HANDLE,),
    "dcgmHostengineIsHealthy": (_HANDLE, _OUT),
    "dcgmHostengineVersionInfo": (_HANDLE, _OUT),
    "dcgmGetAllDevices": (_HANDLE, _OUT, _OUT),
    "dcgmGetGpuStatus": (_HANDLE, _UINT, _OUT),
    "dcgmGetGpuChipArchitecture": (_HANDLE, _UINT, _OUT),
    "dcgmGetGpuInstanceHierarchy": (_HANDLE, _OUT),
    "dcgmGroupCreate": (_HANDLE, _INT, _TEXT, _OUT),
    "dcgmGroupAddEntity": (_HANDLE, _HANDLE, _INT, _UINT),
    "dcgmGroupDestroy": (_HANDLE, _HANDLE),
    "dcgmFieldGroupCreate": (_HANDLE, _INT, _OUT, _TEXT, _OUT),
    "dcgmFieldGroupDestroy": (_HANDLE, _HANDLE),
    "dcgmWatchFields": (_HANDLE, _HANDLE, _HANDLE, ctypes.c_longlong, ctypes.c_double, _INT),
    "dcgmUnwatchFields": (_HANDLE, _HANDLE, _HANDLE),
    "dcgmEntitiesGetLatestValues": (_HANDLE, _OUT, _UINT, _OUT, _UINT, _UINT, _OUT),
}
"""Argument types of what we call (`dcgm_agent.h`); every function returns a dcgmReturn_t."""

REASONS: Mapping[int, str] = {
    -1: "bad_parameter",
    -3: "engine_error",
    -6: "not_supported",
    -8: "driver_error",
    -10: "connection_lost",
    -11: "timeout",
    -12: "version_mismatch",
    -13: "unknown_field",
    -17: "no_permission",
    -18: "gpu_lost",
    -19: "reset_required",
    -20: "function_missing",
    -21: "connection_lost",
    -24: "limit_reached",
    -26: "name_taken",
    -29: "requires_root",
    -33: "module_not_loaded",
    -36: "profiling_not_supported",
    -37: "profiling_in_use",
    -38: "profiling_multi_pass",
    -54: "paused",
    -56: "driver_missing",
    -57: "driver_timeout",
    -67: "gpu_detached",
}


class StatusError(SourceError):
    """A call answered with a status other than OK; `status` is the dcgmReturn_t."""

    def __init__(self, function: str, status: int) -> None:
        reason = REASONS.get(status, "engine_error")
        super().__init__(reason, f"{function} answered {status} ({reason.replace('_', ' ')})")
        self.status = status


class Library:
    """A loaded libdcgm; `major` decides how many entities one call may name."""

    def __init__(self, path: str) -> None:
        self._functions = _bind(path)
        self.call("dcgmInit")
        self.version = self._own_version(path)
        # The smaller of what it says and what its file is called: limits are the one thing that differs.
        self.major = min(int(self.version.partition(".")[0]), _major_of(path) or max(layout.SUPPORTED_MAJORS))

    def status(self, function: str, *arguments: object) -> int:
        """The bare dcgmReturn_t of one call; a function this library lacks answers -20 as the library would."""
        bound = self._functions.get(function)
        return -20 if bound is None else bound(*arguments)

    def call(self, function: str, *arguments: object) -> None:
        """One call that must succeed. Raises StatusError."""
        status = self.status(function, *arguments)
        if status != layout.OK:
            raise StatusError(function, status)

    def _own_version(self, path: str) -> str:
        info = layout.VersionInfo(version=layout.VERSION_INFO_VERSION)
        self.call("dcgmVersionInfo", ctypes.byref(info))
        version = version_text(info)
        if version.partition(".")[0] not in map(str, layout.SUPPORTED_MAJORS):
            raise SourceError(
                "library_unsupported", f"{path} is DCGM {version or 'of unknown version'}; 3.x and 4.x are supported"
            )
        return version


def version_text(info: layout.VersionInfo) -> str:
    """`4.5.3` out of the build information; empty when it holds none."""
    found = re.search(r"(?:^|;)version:([0-9][0-9.]*)", info.build_info.decode("utf-8", "replace"))
    return found.group(1) if found else ""


def open_library(path: str | None = None) -> Library:
    """Loads libdcgm: the given file alone, else `.so.4` then `.so.3` by the loader and in the usual folders.

    Raises SourceError `library_missing`, or `library_unsupported` for a major we do not know.
    """
    if path is not None:
        _refuse_other_major(path)
        return _loaded(path)
    for candidate in _candidates():
        try:
            ctypes.CDLL(candidate)
        except OSError:
            continue
        return _loaded(candidate)
    raise SourceError("library_missing", "neither libdcgm.so.4 nor libdcgm.so.3 can be loaded")


def _loaded(path: str) -> Library:
    try:
        return Library(path)
    except OSError as error:
        raise SourceError("library_missing", f"libdcgm cannot be loaded: {error}") from error


def _candidates() -> Iterator[str]:
    folders = (f"/usr/lib/{os.uname().machine}-linux-gnu", "/usr/lib64")
    for major in layout.SUPPORTED_MAJORS:
        name = f"libdcgm.so.{major}"
        yield name
        yield from (path for folder in folders if os.path.exists(path := f"{folder}/{name}"))  # noqa: PTH110 - plain strings go to the loader


def _refuse_other_major(path: str) -> None:
    major = _major_of(path)
    if major and major not in layout.SUPPORTED_MAJORS:
        raise SourceError("library_unsupported", f"{path} is libdcgm.so.{major}; .so.4 and .so.3 are supported")


def _major_of(path: str) -> int:
    """4 for libdcgm.so.4 and what links to it; 0 when the name does not tell."""
    found = re.search(r"\.so\.([0-9]+)", os.path.realpath(path)) or re.search(r"\.so\.([0-9]+)", path)
    return int(found.group(1)) if found else 0


def _bind(path: str) -> dict[str, Callable[..., int]]:
    library = ctypes.CDLL(path)  # CDLL, not PyDLL: the interpreter lock is free during calls
    functions: dict[str, Callable[..., int]] = {}
    for name, arguments in SIGNATURES.items():
        function = getattr(library, name, None)
        if function is not None:
            function.argtypes, function.restype = arguments, ctypes.c_int
            functions[name] = function
    return functions
