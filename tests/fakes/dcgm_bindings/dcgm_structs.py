"""A small substitute for the module of NVIDIA's bindings of DCGM 4: the names that gpugauge uses, and no others."""

import ctypes

dcgmLib = None  # noqa: N816 - NVIDIA's name

DCGM_GROUP_EMPTY = 1
MAX_INCIDENTS = 1024


class DCGMError(Exception):
    """A function returned a status other than 0; `value` is the status."""

    def __init__(self, value):
        super().__init__(f"status {value}")
        self.value = value


def _dcgmGetFunctionPointer(name):  # noqa: N802 - NVIDIA's name
    if dcgmLib is None:
        raise DCGMError(-10)
    return getattr(dcgmLib, name)


def _dcgmCheckReturn(status):  # noqa: N802 - NVIDIA's name
    if status != 0:
        raise DCGMError(status)
    return status


class c_dcgmGroupEntityPair_t(ctypes.Structure):  # noqa: N801 - NVIDIA's name
    _fields_ = (("entityGroupId", ctypes.c_uint32), ("entityId", ctypes.c_uint32))


class c_dcgmDiagErrorDetail_t(ctypes.Structure):  # noqa: N801 - NVIDIA's name
    _fields_ = (("msg", ctypes.c_char * 1024), ("code", ctypes.c_uint32))


class c_dcgmIncidentInfo_t(ctypes.Structure):  # noqa: N801 - NVIDIA's name
    _fields_ = (
        ("system", ctypes.c_uint32),
        ("health", ctypes.c_uint32),
        ("error", c_dcgmDiagErrorDetail_t),
        ("entityInfo", c_dcgmGroupEntityPair_t),
    )


class c_dcgmHealthResponse_v5(ctypes.Structure):  # noqa: N801 - NVIDIA's name
    _fields_ = (
        ("version", ctypes.c_uint32),
        ("overallHealth", ctypes.c_uint32),
        ("incidentCount", ctypes.c_uint32),
        ("incidents", c_dcgmIncidentInfo_t * MAX_INCIDENTS),
    )


class c_dcgmHealthSetParams_v2(ctypes.Structure):  # noqa: N801 - NVIDIA's name
    _fields_ = (
        ("version", ctypes.c_uint32),
        ("groupId", ctypes.c_void_p),
        ("systems", ctypes.c_uint32),
        ("updateInterval", ctypes.c_int64),
        ("maxKeepAge", ctypes.c_double),
    )
