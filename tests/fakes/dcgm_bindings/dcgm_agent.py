"""A small substitute for the module of NVIDIA's bindings of DCGM 4: the functions that gpugauge calls, no others."""

import ctypes

import dcgm_structs


def _call(name, *arguments):
    dcgm_structs._dcgmCheckReturn(dcgm_structs._dcgmGetFunctionPointer(name)(*arguments))


def dcgmGroupCreate(dcgm_handle, type, groupName):  # noqa: N802, N803 - NVIDIA's names
    group = ctypes.c_void_p()
    _call("dcgmGroupCreate", dcgm_handle, type, groupName.encode(), ctypes.byref(group))
    return group


def dcgmGroupAddEntity(dcgm_handle, group_id, entityGroupId, entityId):  # noqa: N802, N803 - NVIDIA's names
    _call("dcgmGroupAddEntity", dcgm_handle, group_id, entityGroupId, entityId)


def dcgmHealthSet_v2(dcgm_handle, groupId, systems, updateInterval, maxKeepAge):  # noqa: N802, N803 - NVIDIA's names
    wanted = dcgm_structs.c_dcgmHealthSetParams_v2(
        ctypes.sizeof(dcgm_structs.c_dcgmHealthSetParams_v2) | 2 << 24, groupId, systems, updateInterval, maxKeepAge
    )
    _call("dcgmHealthSet_v2", dcgm_handle, ctypes.byref(wanted))


def dcgmHealthCheck(dcgm_handle, groupId):  # noqa: N802, N803 - NVIDIA's names
    version = ctypes.sizeof(dcgm_structs.c_dcgmHealthResponse_v5) | 5 << 24
    answer = dcgm_structs.c_dcgmHealthResponse_v5(version=version)
    _call("dcgmHealthCheck", dcgm_handle, groupId, ctypes.byref(answer))
    return answer
