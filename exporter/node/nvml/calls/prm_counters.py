"""Reads counters of the ports of NVLinks from the driver's PRM registers, as DCGM's fields 580 to 592 and 1509.

They say how often a link was recovered and what its physical layer had to correct. All links of a GPU are read with one
call, in which each counter has a return code of its own. The call is newer than driver R580 (nvidia-ml-py 13.590). Ids,
and which number a link has as a port, are those of `nvml.h` and of DCGM (4.6.0, source).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pynvml

from exporter.node.devices.fields import field_ids
from exporter.node.nvml.calls.field_values import union_value
from exporter.node.nvml.native.values import NvmlValue, RejectedValue, nvml_value, rejected

COUNTERS: Mapping[int, int] = {
    field_ids.NVLINK_PPRM_OPER_RECOVERY: pynvml.NVML_PRM_COUNTER_ID_PPRM_OPER_RECOVERY,
    **{
        field: getattr(pynvml, f"NVML_PRM_COUNTER_ID_PPCNT_{name}")
        for name, field in field_ids.NVLINK_PPCNT_COUNTERS.items()
    },
}
"""DCGM field -> NVML's number of the counter."""
FIRST_PORT = 1
"""The port of link 0. Only the counter of the InfiniBand group numbers ports as links."""


def read_prm_counters(handle: Any, links: Sequence[int], fields: Collection[int]) -> dict[tuple[int, int], NvmlValue]:
    """Read these fields of COUNTERS of these links of a GPU, by link and field. Raises as `read_call` does."""
    keys = [(link, field) for link in links for field in fields]
    counters = (pynvml.c_nvmlPRMCounter_v1_t * len(keys))()
    for counter, (link, field) in zip(counters, keys, strict=True):
        counter.counterId = COUNTERS[field]
        unshifted = field == field_ids.NVLINK_PPCNT_IBPC_PORT_XMIT_WAIT
        counter.inputValue.localPort = link if unshifted else link + FIRST_PORT
    try:
        pynvml.nvmlDeviceReadPRMCounters_v1(handle, pynvml.c_nvmlPRMCounterList_v1_t(len(keys), counters))
    except pynvml.NVMLError as error:
        return dict.fromkeys(keys, rejected(error.value))
    return {key: _value(key[1], counter.outputValue) for key, counter in zip(keys, counters, strict=True)}


def _value(field: int, result: Any) -> NvmlValue:
    raw = union_value(result.status, result.outputType, result.outputValue)
    return raw if isinstance(raw, RejectedValue) else nvml_value(field, raw)
