"""Finds and loads libdcgm, declares the C signatures of its functions, and raises an error for a status that is not OK.

The result is a `DcgmLibrary`, through which every other module of this package calls libdcgm.
"""

import ctypes
import os
import re
from collections.abc import Callable, Iterator, Mapping

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.reasons import BY_STATUS, DcgmReason
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
    "dcgmConnect_v3": (_TEXT, _OUT, _OUT),
    "dcgmDisconnect": (_HANDLE,),
    "dcgmStartEmbedded": (_INT, _OUT),
    "dcgmStopEmbedded": (_HANDLE,),
    "dcgmHostengineIsHealthy": (_HANDLE, _OUT),
    "dcgmHostengineVersionInfo": (_HANDLE, _OUT),
    "dcgmGetAllDevices": (_HANDLE, _OUT, _OUT),
    "dcgmGetEntityGroupEntities": (_HANDLE, _INT, _OUT, _OUT, _UINT),
    "dcgmGetGpuStatus": (_HANDLE, _UINT, _OUT),
    "dcgmGetGpuChipArchitecture": (_HANDLE, _UINT, _OUT),
    "dcgmGetGpuInstanceHierarchy": (_HANDLE, _OUT),
    "dcgmGetNvLinkP2PStatus": (_HANDLE, _OUT),
    "dcgmGetCpuHierarchy": (_HANDLE, _OUT),
    "dcgmGetCpuHierarchy_v2": (_HANDLE, _OUT),
    "dcgmGetNvLinkLinkStatus": (_HANDLE, _OUT),
    "dcgmGroupCreate": (_HANDLE, _INT, _TEXT, _OUT),
    "dcgmGroupAddEntity": (_HANDLE, _HANDLE, _INT, _UINT),
    "dcgmGroupDestroy": (_HANDLE, _HANDLE),
    "dcgmFieldGroupCreate": (_HANDLE, _INT, _OUT, _TEXT, _OUT),
    "dcgmFieldGroupDestroy": (_HANDLE, _HANDLE),
    "dcgmWatchFields": (_HANDLE, _HANDLE, _HANDLE, ctypes.c_longlong, ctypes.c_double, _INT),
    "dcgmUnwatchFields": (_HANDLE, _HANDLE, _HANDLE),
    "dcgmGetValuesSince_v2": (_HANDLE, _HANDLE, _HANDLE, ctypes.c_longlong, _OUT, layout.TAKE_STORED, _OUT),
    "dcgmEntitiesGetLatestValues": (_HANDLE, _OUT, _UINT, _OUT, _UINT, _UINT, _OUT),
}
"""Argument types of every function that we call (`dcgm_agent.h`); each returns a dcgmReturn_t.

Handles and group ids are as wide as a pointer: without these types ctypes would pass them as a 32-bit int.
"""


class StatusError(SourceError):
    """A function returned a status other than OK. `status` is its dcgmReturn_t."""

    def __init__(self, function: str, status: int) -> None:
        reason = BY_STATUS.get(status, DcgmReason.ENGINE_ERROR)
        super().__init__(reason, f"{function} answered {status} ({reason.replace('_', ' ')})")
        self.status = status


class DcgmLibrary:
    """A loaded and initialized libdcgm. `major` decides how many entities one call may name."""

    def __init__(self, path: str) -> None:
        """Load the file. Raises OSError when it is no library, SourceError when it is not a supported libdcgm."""
        self.path = path
        self._functions = _bind(path)
        self.call("dcgmInit")
        self.version = self._own_version(path)
        # Of the version that it reports and that of its file name, the smaller one: ENTITIES_PER_CALL is the only
        # limit that differs between them, and the smaller limit fits both.
        self.major = min(int(self.version.partition(".")[0]), _major_of(path) or max(layout.SUPPORTED_MAJORS))

    @property
    def lets_go_of_gpus(self) -> bool:
        """Whether an embedded engine closes the GPUs when the driver is unbound from one: from 4.5 on (source)."""
        return tuple(map(int, self.version.split(".")[:2])) >= (4, 5)

    def status(self, function: str, *arguments: object) -> int:
        """Call a function and return its dcgmReturn_t; FUNCTION_NOT_FOUND when this library does not have it."""
        bound = self._functions.get(function)
        return layout.FUNCTION_NOT_FOUND if bound is None else bound(*arguments)

    def call(self, function: str, *arguments: object) -> None:
        """Call a function. Raises StatusError for any status other than OK."""
        status = self.status(function, *arguments)
        if status != layout.OK:
            raise StatusError(function, status)

    def _own_version(self, path: str) -> str:
        info = layout.VersionInfo(version=layout.VERSION_INFO_VERSION)
        self.call("dcgmVersionInfo", ctypes.byref(info))
        version = version_text(info)
        if version.partition(".")[0] not in map(str, layout.SUPPORTED_MAJORS):
            raise SourceError(
                DcgmReason.LIBRARY_UNSUPPORTED,
                f"{path} is DCGM {version or 'of unknown version'}; 3.x and 4.x are supported",
            )
        return version


def version_text(info: layout.VersionInfo) -> str:
    """Return the version, such as `4.5.3`, out of the build information; empty when there is none in it."""
    found = re.search(r"(?:^|;)version:([0-9][0-9.]*)", info.build_info.decode("utf-8", "replace"))
    return found.group(1) if found else ""


def open_library(path: str | None = None) -> DcgmLibrary:
    """Load libdcgm: the given file only, or else the first of `.so.4` and `.so.3` that can be loaded.

    Raises SourceError `library_missing`, or `library_unsupported` for a major version other than 3 and 4.
    """
    if path is not None:
        _reject_other_major(path)
        return _loaded(path)
    for candidate in _candidates():
        try:
            ctypes.CDLL(candidate)
        except OSError:
            continue
        return _loaded(candidate)
    raise SourceError(DcgmReason.LIBRARY_MISSING, "neither libdcgm.so.4 nor libdcgm.so.3 can be loaded")


def _loaded(path: str) -> DcgmLibrary:
    try:
        return DcgmLibrary(path)
    except OSError as error:
        raise SourceError(DcgmReason.LIBRARY_MISSING, f"libdcgm cannot be loaded: {error}") from error


def _candidates() -> Iterator[str]:
    # A bare soname lets the loader search its cache and LD_LIBRARY_PATH. The folders are those in which NVIDIA's own
    # bindings look (dcgm_structs.py of 4.6.0); an image may have the files there without a loader cache.
    folders = (f"/usr/lib/{os.uname().machine}-linux-gnu", "/usr/lib64")
    for major in layout.SUPPORTED_MAJORS:
        name = f"libdcgm.so.{major}"
        yield name
        yield from (path for folder in folders if os.path.exists(path := f"{folder}/{name}"))  # noqa: PTH110 - plain strings go to the loader


def _reject_other_major(path: str) -> None:
    """Raise SourceError for a file that is named after another major version, before any of its code runs."""
    major = _major_of(path)
    if major and major not in layout.SUPPORTED_MAJORS:
        raise SourceError(
            DcgmReason.LIBRARY_UNSUPPORTED, f"{path} is libdcgm.so.{major}; .so.4 and .so.3 are supported"
        )


def _major_of(path: str) -> int:
    """Return 4 for libdcgm.so.4 and for a link to it; 0 when no name contains a major version."""
    found = re.search(r"\.so\.([0-9]+)", os.path.realpath(path)) or re.search(r"\.so\.([0-9]+)", path)
    return int(found.group(1)) if found else 0


def _bind(path: str) -> dict[str, Callable[..., int]]:
    # CDLL releases the interpreter lock during a call, PyDLL does not: a call can block for 60 s (4.6.0, source).
    library = ctypes.CDLL(path)
    functions: dict[str, Callable[..., int]] = {}
    for name, arguments in SIGNATURES.items():
        function = getattr(library, name, None)
        if function is not None:  # an older libdcgm may lack one; then only the call that uses it fails
            function.argtypes, function.restype = arguments, ctypes.c_int
            functions[name] = function
    return functions
