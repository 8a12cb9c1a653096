"""Asks an engine what it has beside its GPUs: NVSwitches, CPUs and cores, and the NVLinks of GPUs and NVSwitches."""

import ctypes
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from exporter.node.dcgm.native import layout, listing_layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.native.values import text_reason

_OTHER_VERSION = frozenset({layout.VERSION_MISMATCH, layout.FUNCTION_NOT_FOUND})
"""Statuses of a library that has another version of a record or function."""
_NO_LINK_STATES = _OTHER_VERSION | {layout.NOT_SUPPORTED}
"""Statuses of a library or an engine that does not list links in the way that was asked for."""


class LinkStates(NamedTuple):
    """The states of NVLinks (LINK_UP and so on) by number, by the engine's id of each GPU and each NVSwitch."""

    gpus: Mapping[int, tuple[int, ...]]
    switches: Mapping[int, tuple[int, ...]]


class ListedCpu(NamedTuple):
    """A CPU that the engine lists."""

    number: int
    cores: tuple[int, ...]
    """As Linux numbers them."""
    serial: str
    """Empty where the library does not give it."""


def switch_ids(connection: EngineConnection) -> tuple[int, ...]:
    """Return the engine's ids of all NVSwitches. Raises StatusError."""
    ids, count = (ctypes.c_uint32 * listing_layout.MAX_SWITCHES)(), ctypes.c_int(listing_layout.MAX_SWITCHES)
    connection.call("dcgmGetEntityGroupEntities", layout.ENTITY_SWITCH, ctypes.byref(ids), ctypes.byref(count), 0)
    return tuple(ids[: count.value])


def cpus(
    connection: EngineConnection, lists: Sequence[listing_layout.CpuList] = listing_layout.CPU_LISTS
) -> tuple[ListedCpu, ...]:
    """Return the CPUs, by the first of these functions that the library has. Raises StatusError.

    DCGM knows NVIDIA's own CPUs only; where there are others the engine answers -6 or -33 (header).
    """
    (function, record, version), *older = lists
    answer = record(version=version)
    try:
        connection.call(function, ctypes.byref(answer))
    except StatusError as error:
        if older and error.status in _OTHER_VERSION:
            return cpus(connection, older)
        raise
    return tuple(_cpu(row) for row in answer.cpus[: answer.count])


def link_states(connection: EngineConnection) -> LinkStates:
    """Return the states of the NVLinks of GPUs and NVSwitches. Raises StatusError.

    Empty where the library has none of the records that are known, as before 4.0, or the engine has no answer to the
    question.
    """
    for record, version in listing_layout.LINK_STATES:
        answer = record(version=version)
        try:
            connection.call("dcgmGetNvLinkLinkStatus", ctypes.byref(answer))
        except StatusError as error:
            if error.status in _NO_LINK_STATES:
                continue
            raise
        gpus, switches = answer.gpus[: answer.gpu_count], answer.switches[: answer.switch_count]
        return LinkStates(
            {gpu.gpu_id: tuple(gpu.states) for gpu in gpus},
            {switch.switch_id: tuple(switch.states) for switch in switches},
        )
    return LinkStates({}, {})


def _cpu(row: listing_layout.Cpu1 | listing_layout.Cpu2) -> ListedCpu:
    words = enumerate(row.cores.words)
    cores = (64 * position + bit for position, word in words for bit in range(64) if word >> bit & 1)
    serial = row.serial.decode("utf-8", "replace") if isinstance(row, listing_layout.Cpu2) else ""
    return ListedCpu(row.cpu_id, tuple(cores), serial if text_reason(serial) is None else "")
