"""Reads the peer-to-peer status of each pair of GPUs from the engine, as one table."""

import ctypes
from collections.abc import Iterator

from exporter.node.dcgm.entities.inventory import EngineInventory
from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.dcgm.native.status_scope import OF_THE_ENGINE
from exporter.node.devices.readings.readings import P2pStatus

_OF_THE_ENGINE = OF_THE_ENGINE - {layout.VERSION_MISMATCH, layout.FUNCTION_NOT_FOUND}


def read_p2p(
    connection: EngineConnection, inventory: EngineInventory
) -> tuple[tuple[P2pStatus, ...], tuple[tuple[str, str], ...]]:
    """Return the status of each ordered pair of readable GPUs, and why there is none, as (reason, message).

    Raises StatusError only where the failure is the engine's.
    """
    table = layout.P2pTable(version=layout.P2P_VERSION)
    status = connection.status("dcgmGetNvLinkP2PStatus", ctypes.byref(table))
    if status in _OF_THE_ENGINE:
        raise StatusError("dcgmGetNvLinkP2PStatus", status)
    if status != layout.OK:
        return (), ((DcgmReason.P2P_UNREADABLE, f"dcgmGetNvLinkP2PStatus answered {status}"),)
    rows = table.rows[: min(table.count, layout.MAX_GPUS)]
    # The header does not say whether a row has its statuses by id or by position of the other GPU. While both are the
    # same there is no doubt; otherwise nothing is exposed rather than the status of another pair.
    if [row.entity_id for row in rows] != list(range(len(rows))):
        return (), ((DcgmReason.P2P_UNREADABLE, "the ids of the GPUs are not their positions in the engine's table"),)
    return tuple(_pairs(rows, inventory)), ()


def _pairs(rows: list[layout.P2pRow], inventory: EngineInventory) -> Iterator[P2pStatus]:
    uuids = {
        entity[1]: device.uuid
        for entity, device in zip(inventory.entities, inventory.devices, strict=True)
        if entity is not None and entity[0] == layout.ENTITY_GPU
    }
    for row in rows:
        for peer, status in enumerate(row.statuses[: len(rows)]):
            if peer != row.entity_id and row.entity_id in uuids and peer in uuids:
                yield P2pStatus(uuids[row.entity_id], uuids[peer], status)
