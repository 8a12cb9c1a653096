"""Reads which GPUs, GPU instances and compute instances an engine lists, which shows cheaply whether that changed."""

import ctypes
from dataclasses import dataclass
from typing import NamedTuple

from exporter.node.dcgm import layout
from exporter.node.dcgm.connection import EngineConnection
from exporter.node.dcgm.library import StatusError
from exporter.node.dcgm.live_reader import Entity
from exporter.node.dcgm.reasons import DcgmReason


class HierarchyEntry(NamedTuple):
    """One row of the engine's MIG hierarchy: a GPU instance (ci -1) or a compute instance."""

    entity: Entity
    parent: Entity
    gi: int
    ci: int


@dataclass(frozen=True, slots=True)
class EngineTopology:
    """The GPUs and instances that the engine lists.

    Read in every collection: while it is unchanged, groups and watches remain valid.
    """

    gpus: tuple[tuple[int, int], ...]
    """Engine id and state of each GPU."""
    hierarchy: bytes
    """The engine's rows, unchanged.

    They contain the GPU's UUID, the NVML ids and the profile, not only entity ids: an entity id is its GPU's id times
    the number of possible instances plus an index, and is used again after a change of MIG (4.6.0, source).
    """
    problem: str = ""
    """Why the hierarchy cannot be read; empty when it can."""

    @property
    def readable(self) -> tuple[int, ...]:
        """The engine ids of the GPUs that have values."""
        return tuple(gpu_id for gpu_id, state in self.gpus if state not in layout.GPU_UNREADABLE)


def read_topology(connection: EngineConnection) -> EngineTopology:
    """Read the GPUs and instances that the engine lists now. Raises SourceError."""
    gpus = tuple((gpu_id, connection.gpu_state(gpu_id)) for gpu_id in connection.gpu_ids())
    try:
        rows = connection.hierarchy()
    except StatusError as error:
        if error.reason in (DcgmReason.CONNECTION_LOST, DcgmReason.TIMEOUT):
            raise
        # An engine without root rights answers -29 (4.6.0, source); its GPUs can be read all the same.
        return EngineTopology(gpus, b"", str(error))
    # Only the rows in use: what is behind them in the record is not defined.
    size = layout.Hierarchy.rows.offset + ctypes.sizeof(layout.HierarchyRow) * rows.count
    return EngineTopology(gpus, bytes(memoryview(rows).cast("B")[:size]))


def hierarchy_rows(raw: bytes) -> tuple[HierarchyEntry, ...]:
    """Decode the `hierarchy` of an EngineTopology."""
    begin = layout.Hierarchy.rows.offset
    step = ctypes.sizeof(layout.HierarchyRow)
    rows = (layout.HierarchyRow.from_buffer_copy(raw, offset) for offset in range(begin, len(raw), step))
    return tuple(
        HierarchyEntry(
            (row.entity.kind, row.entity.id),
            (row.parent.kind, row.parent.id),
            row.nvml_instance_id,
            ci=_compute_instance_id(row),
        )
        for row in rows
    )


def _compute_instance_id(row: layout.HierarchyRow) -> int:
    """The field is unsigned, but on the row of a GPU instance it contains -1 (4.6.0, source)."""
    return int(ctypes.c_int32(row.nvml_compute_instance_id).value)
